/*
 * The pool of op records, and of the blocks that hold what does not fit into a record. Producers acquire and reserve
 * in the launch path; the thread that retires an op releases. Any threads at once, lock-free. It allocates only while
 * it warms up, and for single blocks beyond the largest class. It never reads what an op means.
 *
 * Free records, the free blocks of each size class, and unused block numbers are stacks of indices. There are as many
 * block numbers as records (REC-1): a class that is empty when all are in use takes a block from another class.
 *
 * C  stack_push_chain: last use of the item, link, top release -> stack_pop_hint: top acquire, read link, use the
 *    item.
 *    Broken: two owners write one record or block at once. Every change of `top` is a read-modify-write, so a pop
 *    synchronises with all pushes before it, not only with the last one.
 */
#include "window/record.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BYTES_MIN = 512,
    BLOCK_CLASSES = 13, /* 512 B ... 2 MiB */
    BLOCK_EXACT = BLOCK_CLASSES,
    PART_ALIGN = 16,
    FETCHED_BYTES = offsetof(acs_record, inline_bytes) + 2 * ACS_CACHE_LINE /* more arguments than these are rare */
};

/*
 * Treiber's stack. The upper half of `top` is a tag that each change increments, against ABA; the lower half is index
 * + 1.
 */
struct stack {
    /* A cache line each: producers and retiring threads use different stacks without disturbing each other. */
    _Alignas(ACS_CACHE_LINE) _Atomic uint64_t top;
};

/* The head of a block; the parts of a record follow. */
struct block {
    uint64_t bytes;
    uint32_t number; /* of a pooled block: index into pool->blocks */
    uint32_t reserved;
};
_Static_assert(sizeof(struct block) % PART_ALIGN == 0, "parts stay aligned");

struct acs_record_pool {
    /* constant */
    unsigned char *records;
    uint64_t stride;
    uint32_t count;
    /* owned through the stacks: the thread that popped an index owns its element */
    _Atomic uint32_t *record_links;
    _Atomic uint32_t *block_links; /* shared by `classes`, `unused` and chains: a number is in one of them at most */
    struct block *_Atomic *blocks; /* by number; atomic because prefetches read elements of other owners */
    /* any thread */
    _Atomic uint64_t block_bytes;
    struct stack free;
    struct stack classes[BLOCK_CLASSES];
    struct stack unused;
};

/* The next value of `top`: a new tag, and `entry` (index + 1; 0: empty). */
static uint64_t stack_word(uint64_t top, uint32_t entry)
{
    return (((top >> 32) + 1) << 32) | entry;
}

/* Push entries that are linked already: `first` on top, `last` at the bottom. */
static void stack_push_chain(struct stack *stack, _Atomic uint32_t *links, uint32_t first, uint32_t last)
{
    /* relaxed: a stale top fails the exchange */
    uint64_t top = atomic_load_explicit(&stack->top, memory_order_relaxed);
    do {
        /* relaxed: the exchange publishes it (C); a pop that read the old link fails its own exchange, by the tag */
        atomic_store_explicit(&links[last], (uint32_t)top, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&stack->top, &top, stack_word(top, first + 1), memory_order_release,
                                                    memory_order_relaxed)); /* C; relaxed on failure: tried again */
}

static void stack_push(struct stack *stack, _Atomic uint32_t *links, uint32_t index)
{
    stack_push_chain(stack, links, index, index);
}

/* Pop an index; false: empty. `*below`: the next entry, index + 1, or 0; only a guess if other threads pop too. */
static bool stack_pop_hint(struct stack *stack, _Atomic uint32_t *links, uint32_t *index, uint32_t *below)
{
    uint64_t top = atomic_load_explicit(&stack->top, memory_order_acquire); /* C */
    do {
        if ((uint32_t)top == 0)
            return false;
        /* relaxed: ordered by C; if the entry was popped meanwhile the value is useless, and the tag says so */
        *below = atomic_load_explicit(&links[(uint32_t)top - 1], memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&stack->top, &top, stack_word(top, *below), memory_order_acquire,
                                                    memory_order_acquire)); /* C */
    *index = (uint32_t)top - 1;
    return true;
}

static bool stack_pop(struct stack *stack, _Atomic uint32_t *links, uint32_t *index)
{
    uint32_t below;
    return stack_pop_hint(stack, links, index, &below);
}

/* Fill a stack before other threads know it: index 0 on top, so that few pages are touched. */
static void stack_fill(struct stack *stack, _Atomic uint32_t *links, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        atomic_init(&links[i], i + 1 < count ? i + 2 : 0);
    atomic_init(&stack->top, 1);
}

/* `align` is a power of two. */
static uint64_t align_up(uint64_t bytes, uint64_t align)
{
    return (bytes + align - 1) & ~(align - 1);
}

/*
 * Prefetch memory that the next launch will write. The thread that retired its last op used it, on another core.
 * Without the prefetch a launch waits for a dozen cache lines, at its first locked instruction after the writes;
 * measured: less than half of the time remains. Only a hint: another thread may own or have freed the memory.
 */
static void fetch_for_write(const void *memory, uint64_t bytes)
{
    for (uint64_t i = 0; memory && i < bytes; i += ACS_CACHE_LINE) {
        const char *line = (const char *)memory + i;
#if defined(__x86_64__)
        __asm__ volatile("prefetchw %0" : : "m"(*line)); /* on a baseline x86-64 the builtin prefetches for reading */
#else
        __builtin_prefetch(line, 1);
#endif
    }
}

static struct block *block_at(const acs_record_pool *pool, uint32_t number)
{
    /* relaxed: the owner of the number got it through C; others only prefetch */
    return atomic_load_explicit(&pool->blocks[number], memory_order_relaxed);
}

static void block_set(acs_record_pool *pool, uint32_t number, struct block *block)
{
    /* relaxed: passed on with the number, through C */
    atomic_store_explicit(&pool->blocks[number], block, memory_order_relaxed);
}

acs_status acs_record_pool_create(uint32_t records, acs_record_pool **pool)
{
    if (records == 0 || records == UINT32_MAX)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "a pool of %u records", records);

    acs_record_pool *p = aligned_alloc(ACS_CACHE_LINE, sizeof *p);
    if (!p)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a pool of records");
    p->count = records;
    p->stride = align_up(sizeof(acs_record), ACS_CACHE_LINE);
    p->records = acs_zeros(records, p->stride);
    p->record_links = acs_zeros(records, sizeof *p->record_links);
    p->block_links = acs_zeros(records, sizeof *p->block_links);
    p->blocks = acs_zeros(records, sizeof *p->blocks);
    if (!p->records || !p->record_links || !p->block_links || !p->blocks) {
        acs_zeros_free(p->records);
        acs_zeros_free(p->record_links);
        acs_zeros_free(p->block_links);
        acs_zeros_free(p->blocks);
        free(p);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for %u records", records);
    }
    stack_fill(&p->free, p->record_links, records);
    stack_fill(&p->unused, p->block_links, records);
    for (int c = 0; c < BLOCK_CLASSES; c++)
        atomic_init(&p->classes[c].top, 0);
    atomic_init(&p->block_bytes, 0);
    *pool = p;
    return ACS_OK;
}

void acs_record_pool_destroy(acs_record_pool *pool)
{
    if (!pool)
        return;
    /* All pooled blocks, cached or in use, are in this array. Blocks without a class are freed with their records. */
    for (uint32_t i = 0; i < pool->count; i++)
        free(block_at(pool, i));
    acs_zeros_free(pool->blocks);
    acs_zeros_free(pool->block_links);
    acs_zeros_free(pool->record_links);
    acs_zeros_free(pool->records);
    free(pool);
}

acs_record *acs_record_acquire(acs_record_pool *pool)
{
    uint32_t index, next;
    if (ACS_UNLIKELY(!stack_pop_hint(&pool->free, pool->record_links, &index, &next)))
        return NULL;
    if (next)
        fetch_for_write(pool->records + (next - 1) * pool->stride, FETCHED_BYTES);

    /* Only what holds for every kind is set: the producer writes site, union and rows, which are not cleared first. */
    ACS_ASSERT(index < pool->count); /* REC-1 */
    acs_record *record = (acs_record *)(void *)(pool->records + index * pool->stride);
    record->seq = 0;
    record->asked = ACS_KIND_KERNEL;
    record->kind = ACS_KIND_KERNEL; /* a kind that owns nothing, in case the caller gives up and releases */
    record->any = 0;
    record->flags = 0;
    record->type = 0;
    record->device = 0;
    record->segment_count = 0;
    record->arg_count = 0;
    record->arg_bytes_used = 0;
    record->segments = record->inline_segments;
    record->args = record->inline_args;
    record->arg_bytes = record->inline_bytes;
    record->block = NULL;
    record->block_class = 0;
    record->index = index;
    return record;
}

void acs_record_drop_reuses(acs_record *record)
{
    if (ACS_LIKELY(!(record->flags & ACS_RECORD_REUSES)))
        return;
    record->flags &= (uint8_t)~ACS_RECORD_REUSES;
    while (record->reuses) {
        acs_reuse *reuse = record->reuses;
        record->reuses = reuse->next;
        free(reuse);
    }
}

/* The smallest class of at least `bytes`; BLOCK_EXACT: none. */
static uint32_t class_of(uint64_t bytes)
{
    uint32_t c = 0;
    while (c < BLOCK_CLASSES && ((uint64_t)BLOCK_BYTES_MIN << c) < bytes)
        c++;
    return c;
}

static struct block *block_malloc(acs_record_pool *pool, uint64_t bytes)
{
    struct block *block = malloc(bytes);
    if (!block)
        return NULL;
    block->bytes = bytes;
    /* relaxed: a statistic */
    atomic_fetch_add_explicit(&pool->block_bytes, bytes, memory_order_relaxed);
    return block;
}

static void block_free(acs_record_pool *pool, struct block *block)
{
    if (!block)
        return;
    /* relaxed: a statistic */
    atomic_fetch_sub_explicit(&pool->block_bytes, block->bytes, memory_order_relaxed);
    free(block);
}

/* Take a number without a block: an unused one, or that of a cached block of another class, which is freed. */
static bool number_take(acs_record_pool *pool, uint32_t *number)
{
    if (stack_pop(&pool->unused, pool->block_links, number))
        return true;
    for (int c = 0; c < BLOCK_CLASSES; c++) {
        if (stack_pop(&pool->classes[c], pool->block_links, number)) {
            block_free(pool, block_at(pool, *number));
            block_set(pool, *number, NULL);
            return true;
        }
    }
    return false; /* numbers moved between the stacks meanwhile */
}

/* Take a block of at least `bytes`; `*class_used`: its class, or BLOCK_EXACT. NULL: memory is exhausted. */
static struct block *block_take(acs_record_pool *pool, uint64_t bytes, uint32_t *class_used)
{
    uint32_t c = class_of(bytes), number, next;
    *class_used = c;
    if (c == BLOCK_EXACT)
        return block_malloc(pool, bytes);
    if (ACS_LIKELY(stack_pop_hint(&pool->classes[c], pool->block_links, &number, &next))) {
        if (next)
            fetch_for_write(block_at(pool, next - 1), bytes);
        ACS_ASSERT(block_at(pool, number)->number == number); /* REC-1 */
        ACS_ASSERT(block_at(pool, number)->bytes == (uint64_t)BLOCK_BYTES_MIN << c);
        return block_at(pool, number);
    }

    /* No second attempt, which might repeat for ever: this block is not pooled. */
    if (!number_take(pool, &number)) {
        *class_used = BLOCK_EXACT;
        return block_malloc(pool, bytes);
    }
    struct block *block = block_malloc(pool, (uint64_t)BLOCK_BYTES_MIN << c);
    if (!block) {
        stack_push(&pool->unused, pool->block_links, number);
        return NULL;
    }
    ACS_ASSERT(number < pool->count && !block_at(pool, number)); /* REC-1 */
    block->number = number;
    block_set(pool, number, block);
    return block;
}

acs_status acs_record_reserve(acs_record_pool *pool, acs_record *record, uint32_t args, uint32_t arg_bytes,
                              uint32_t segments)
{
    /* What fits inside the record stays there: it is in the cache already. */
    uint64_t segment_part = segments > ACS_INLINE_SEGMENTS ? (uint64_t)segments * sizeof(acs_segment) : 0;
    uint64_t arg_part = args > ACS_INLINE_ARGS ? (uint64_t)args * sizeof(acs_arg_slot) : 0;
    uint64_t byte_part = arg_bytes > ACS_INLINE_ARG_BYTES ? arg_bytes : 0;
    if (ACS_LIKELY(!(segment_part | arg_part | byte_part)))
        return ACS_OK;

    /* Layout of the block: head, segments, table of arguments, argument bytes; each part is aligned. */
    uint64_t arg_offset = sizeof(struct block) + align_up(segment_part, PART_ALIGN);
    uint64_t byte_offset = arg_offset + align_up(arg_part, PART_ALIGN);
    uint32_t class_used;
    struct block *block = block_take(pool, byte_offset + byte_part, &class_used);
    if (!block)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for an op with %u arguments of %u bytes and %u segments", args,
                        arg_bytes, segments);
    unsigned char *start = (unsigned char *)block;
    record->block = block;
    record->block_class = (uint16_t)class_used;
    if (segment_part)
        record->segments = (acs_segment *)(void *)(start + sizeof(struct block));
    if (arg_part)
        record->args = (acs_arg_slot *)(void *)(start + arg_offset);
    if (byte_part)
        record->arg_bytes = start + byte_offset;
    return ACS_OK;
}

acs_status acs_record_copy(acs_record_pool *pool, acs_record *to, const acs_record *from)
{
    ACS_TRY(acs_record_reserve(pool, to, from->arg_count, from->arg_bytes_used, from->segment_count));
    memcpy(to->segments, from->segments, from->segment_count * sizeof *to->segments);
    memcpy(to->args, from->args, from->arg_count * sizeof *to->args);
    memcpy(to->arg_bytes, from->arg_bytes, from->arg_bytes_used);
    to->site = from->site;
    to->kind = from->kind;
    to->any = from->any;
    to->asked = from->asked;
    to->type = from->type;
    to->segment_count = from->segment_count;
    to->content = from->content;
    to->flags |= from->flags & ACS_RECORD_DECISION;
    to->cell = from->cell;
    to->grid = from->grid;
    to->arg_count = from->arg_count;
    to->arg_bytes_used = from->arg_bytes_used;
    to->u = from->u;
    if (from->kind == ACS_KIND_HOST && from->u.host.closure == from->arg_bytes)
        to->u.host.closure = to->arg_bytes;
    if (from->kind == ACS_KIND_CALL && from->u.call.closure == from->arg_bytes)
        to->u.call.closure = to->arg_bytes;
    return ACS_OK;
}

static void release_block(acs_record_pool *pool, const acs_record *record)
{
    struct block *block = record->block;
    if (block && record->block_class == BLOCK_EXACT)
        block_free(pool, block);
    else if (block)
        stack_push(&pool->classes[record->block_class], pool->block_links, block->number);
}

/* The block first: once the record is pushed, another thread may own it. */
void acs_record_release(acs_record_pool *pool, acs_record *record)
{
    ACS_ASSERT((unsigned char *)record == pool->records + record->index * pool->stride); /* REC-2 */
    release_block(pool, record);
    stack_push(&pool->free, pool->record_links, record->index);
}

static void release_blocks(acs_record_pool *pool, acs_record_chain *chain)
{
    if (chain->blocks_first)
        stack_push_chain(&pool->classes[chain->blocks_class], pool->block_links, chain->blocks_first - 1,
                         chain->blocks_last - 1);
    chain->blocks_first = chain->blocks_last = 0;
}

/* Most ops of a program have a few sizes, so a block of another class than the chain's is rare. */
static void gather_block(acs_record_pool *pool, acs_record_chain *chain, const acs_record *record)
{
    const struct block *block = record->block;
    ACS_ASSERT(record->block_class <= BLOCK_EXACT);
    if (record->block_class == BLOCK_EXACT) {
        release_block(pool, record);
        return;
    }
    if (chain->blocks_class != record->block_class)
        release_blocks(pool, chain);
    chain->blocks_class = record->block_class;
    /* relaxed: as in acs_record_gather */
    atomic_store_explicit(&pool->block_links[block->number], chain->blocks_first, memory_order_relaxed);
    chain->blocks_first = block->number + 1;
    if (!chain->blocks_last)
        chain->blocks_last = block->number + 1;
}

void acs_record_gather(acs_record_pool *pool, acs_record_chain *chain, acs_record *record)
{
    uint32_t index = record->index;
    ACS_ASSERT((unsigned char *)record == pool->records + index * pool->stride); /* REC-2 */
    if (record->block)
        gather_block(pool, chain, record);
    /* relaxed: no other thread sees it before the chain is pushed (C) */
    atomic_store_explicit(&pool->record_links[index], chain->first, memory_order_relaxed);
    chain->first = index + 1;
    if (!chain->last)
        chain->last = index + 1;
}

void acs_record_release_all(acs_record_pool *pool, acs_record_chain *chain)
{
    release_blocks(pool, chain);
    if (!chain->first)
        return;
    stack_push_chain(&pool->free, pool->record_links, chain->first - 1, chain->last - 1);
    *chain = (acs_record_chain){0};
}

uint64_t acs_record_pool_bytes(const acs_record_pool *pool)
{
    uint64_t rows = pool->stride + sizeof *pool->record_links + sizeof *pool->block_links + sizeof *pool->blocks;
    /* relaxed: a statistic */
    return sizeof *pool + pool->count * rows + atomic_load_explicit(&pool->block_bytes, memory_order_relaxed);
}

/* -------------------------------------------------------------------------------------------------------------- names */

const char *acs_label_name(acs_label label)
{
    const char *name = label.name;
    if (!name)
        return "?";
    return *name == '&' ? name + 1 : name;
}

acs_site acs_label_site(acs_label label)
{
    const char *name = label.name ? acs_label_name(label) : NULL;
    return label.site ? (acs_site){name, label.site->file, label.site->line} : (acs_site){name, NULL, 0};
}

/*
 * The table of allocations (see allocations.h): blocks in use are in a balanced tree by address (tsearch), those that
 * are being freed also in a list. The latest freed ones are in a ring for diagnostics. Called by acs_malloc, acs_free,
 * ACS_CHECK and acs_close, from any thread, under one lock. It allocates only its own nodes, and never calls a backend.
 *
 * Blocks in the tree never overlap, and overlapping ranges compare as equal. So a single byte finds the block that holds
 * it.
 */
#include "devices/allocations.h"

#include "base/lock.h"
#include "base/tuning.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>

/* A node of the tree, and of one of the lists. */
typedef struct node {
    acs_allocation block;
    struct node *next, *previous;
} node;

struct acs_allocations {
    acs_lock lock; /* rank POOL; guards all fields below */
    void *tree;    /* tree of nodes, LIVE and FREEING */
    node live, freeing; /* heads of rings; FREEING ones in the order in which they began */
    acs_allocation freed[TUNE_FREED_KEPT]; /* ring of freed blocks; freed_total counts all that ever entered */
    uint64_t freed_total;
    uint32_t last_id;
};

/* ------------------------------------------------------------------------------------------------------- tree, lists */

static void list_init(node *head)
{
    head->next = head->previous = head;
}

static void list_append(node *head, node *n)
{
    n->next = head;
    n->previous = head->previous;
    n->previous->next = n->next->previous = n;
}

static void list_remove(node *n)
{
    n->next->previous = n->previous;
    n->previous->next = n->next;
}

static void change_state(node *n, acs_allocation_state state, node *head)
{
    n->block.state = state;
    list_remove(n);
    list_append(head, n);
}

static int compare(const void *left, const void *right)
{
    const acs_allocation *a = left, *b = right;
    if (a->base + a->bytes <= b->base)
        return -1;
    return b->base + b->bytes <= a->base;
}

acs_status acs_allocations_create(acs_allocations **table)
{
    acs_allocations *t = calloc(1, sizeof *t);
    if (!t)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a table of allocations");
    int error = acs_lock_init(&t->lock, ACS_RANK_POOL);
    if (error) {
        free(t);
        return ACS_FAIL(ACS_ERR_MEMORY, error, "no mutex for a table of allocations");
    }
    list_init(&t->live);
    list_init(&t->freeing);
    *table = t;
    return ACS_OK;
}

void acs_allocations_destroy(acs_allocations *table)
{
    acs_allocation block;
    if (!table)
        return;
    while (acs_allocations_take(table, &block))
        continue;
    acs_lock_fini(&table->lock);
    free(table);
}

/* A block that has a byte in the range, or NULL. */
static node *in_range_locked(acs_allocations *table, uint64_t base, uint64_t bytes)
{
    const acs_allocation key = {.base = base, .bytes = bytes};
    node **found = tfind(&key, &table->tree, compare);
    return found ? *found : NULL;
}

/* The block that holds the address, or NULL. */
static node *holding_locked(acs_allocations *table, uint64_t address)
{
    return address == UINT64_MAX ? NULL : in_range_locked(table, address, 1); /* no block contains the last address */
}

/* The block that starts at ptr, or NULL. */
static node *starting_at_locked(acs_allocations *table, const void *ptr)
{
    node *n = holding_locked(table, (uint64_t)(uintptr_t)ptr);
    return n && n->block.base == (uint64_t)(uintptr_t)ptr ? n : NULL;
}

static bool holds(const acs_allocation *block, uint64_t address)
{
    return address - block->base < block->bytes; /* below the base the difference wraps and is large */
}

/*
 * The freed block that held the address, or has this id if that is not 0. Newest first, since an address may have been in
 * several. A linear search: the ring is only for diagnostics.
 */
static acs_allocation *latest_freed_locked(acs_allocations *table, uint64_t address, uint32_t id)
{
    for (uint64_t i = 1; i <= acs_min(table->freed_total, TUNE_FREED_KEPT); i++) {
        acs_allocation *block = &table->freed[(table->freed_total - i) % TUNE_FREED_KEPT];
        if (id ? block->id == id : holds(block, address))
            return block;
    }
    return NULL;
}

static void remove_locked(acs_allocations *table, node *n)
{
    (void)tdelete(&n->block, &table->tree, compare);
    list_remove(n);
    free(n);
}

static void remember_freed_locked(acs_allocations *table, node *n)
{
    n->block.state = ACS_ALLOCATION_FREED;
    table->freed[table->freed_total++ % TUNE_FREED_KEPT] = n->block;
    remove_locked(table, n);
}

/* --------------------------------------------------------------------------------------------------------------- add */

/*
 * Remove blocks from the range, which the allocator gave out again. So a block there that is being freed was given back
 * already, and its acs_allocations_end_free will follow; a live block is a defect.
 */
static acs_status clear_range_locked(acs_allocations *table, uint64_t base, uint64_t bytes)
{
    node *n;
    while ((n = in_range_locked(table, base, bytes)) != NULL) {
        if (n->block.state != ACS_ALLOCATION_FREEING)
            return ACS_FAIL(ACS_ERR_INTERNAL, 0,
                            "a new block of %" PRIu64 " bytes at 0x%" PRIx64 " overlaps a live one of %" PRIu64
                            " bytes at 0x%" PRIx64,
                            bytes, base, n->block.bytes, n->block.base);
        remember_freed_locked(table, n);
    }
    return ACS_OK;
}

static acs_status insert_block_locked(acs_allocations *table, const acs_allocation *block)
{
    ACS_TRY(clear_range_locked(table, block->base, block->bytes));
    if (table->last_id == UINT32_MAX)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "all %" PRIu32 " numbers of allocations are used up", table->last_id);
    node *n = malloc(sizeof *n);
    if (n)
        n->block = *block;
    if (!n || !tsearch(&n->block, &table->tree, compare)) {
        free(n);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the table of allocations");
    }
    n->block.id = ++table->last_id;
    list_append(&table->live, n);
    return ACS_OK;
}

acs_status acs_allocations_add(acs_allocations *table, acs_block *from)
{
    const acs_allocation block = {.base = (uint64_t)(uintptr_t)from->ptr, .bytes = from->bytes, .state = ACS_ALLOCATION_LIVE,
                                  .memory = (uint8_t)from->kind, .site = from->site};
    if (!from->ptr || from->bytes == 0 || block.base + block.bytes < block.base)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%zu bytes at %p are no block of memory", from->bytes, from->ptr);
    ACS_HOLD(&table->lock);
    acs_status status = insert_block_locked(table, &block);
    from->id = table->last_id;
    return status;
}

/* -------------------------------------------------------------------------------------------------------------- free */

/* Say why `ptr` cannot be freed: a program's author sees this message alone. */
static acs_status refuse_free_locked(acs_allocations *table, const void *ptr)
{
    uint64_t address = (uint64_t)(uintptr_t)ptr;
    const node *holder = holding_locked(table, address);
    const acs_allocation *live = holder ? &holder->block : NULL;
    const acs_allocation *freed = live ? NULL : latest_freed_locked(table, address, 0);

    if (live && live->base == address)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%p is being freed already, by op %" PRIu64, ptr, live->freed_by);
    if (live)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0,
                        "%p lies %" PRIu64 " bytes inside the block of %" PRIu64 " bytes at 0x%" PRIx64
                        "; free its start",
                        ptr, address - live->base, live->bytes, live->base);
    if (freed)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0,
                        "%p was freed before, by op %" PRIu64 ", as the block of %" PRIu64 " bytes at 0x%" PRIx64, ptr,
                        freed->freed_by, freed->bytes, freed->base);
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%p is not a block of acs_malloc of this context", ptr);
}

/*
 * The state changes when the free is asked for, not when it runs. So a second acs_free, and a later op that names the
 * block, are refused on the caller's thread, where the mistake is.
 */
acs_status acs_allocations_begin_free(acs_allocations *table, const void *ptr, acs_allocation *copy)
{
    ACS_HOLD(&table->lock);
    node *n = starting_at_locked(table, ptr);
    if (!n || n->block.state != ACS_ALLOCATION_LIVE)
        return refuse_free_locked(table, ptr);
    change_state(n, ACS_ALLOCATION_FREEING, &table->freeing);
    *copy = n->block;
    return ACS_OK;
}

void acs_allocations_cancel_free(acs_allocations *table, const void *ptr)
{
    ACS_HOLD(&table->lock);
    node *n = starting_at_locked(table, ptr);
    if (n && n->block.state == ACS_ALLOCATION_FREEING)
        change_state(n, ACS_ALLOCATION_LIVE, &table->live);
}

/* The free op may have run already when its queueing thread comes here, and the address may be another block's. */
void acs_allocations_set_freed_by(acs_allocations *table, const void *ptr, uint32_t id, acs_op op)
{
    ACS_HOLD(&table->lock);
    node *n = starting_at_locked(table, ptr);
    acs_allocation *block = n && n->block.id == id ? &n->block : latest_freed_locked(table, 0, id);
    if (block)
        block->freed_by = op;
}

/* Does nothing if the address was given out again already: clear_range_locked has moved the block. */
void acs_allocations_end_free(acs_allocations *table, const void *ptr)
{
    ACS_HOLD(&table->lock);
    node *n = starting_at_locked(table, ptr);
    if (n && n->block.state == ACS_ALLOCATION_FREEING)
        remember_freed_locked(table, n);
}

bool acs_allocations_next_free(acs_allocations *table, int memory, acs_op *op, uint64_t *freed)
{
    bool any = false;
    *op = 0;
    ACS_HOLD(&table->lock);
    for (const node *n = table->freeing.next; n != &table->freeing && !*op; n = n->next) {
        any |= n->block.memory == memory;
        *op = n->block.memory == memory ? n->block.freed_by : 0;
    }
    if (!any && table->freed_total > 0) {
        any = true;
        *op = table->freed[(table->freed_total - 1) % TUNE_FREED_KEPT].freed_by;
    }
    *freed = table->freed_total;
    return any;
}

bool acs_allocations_find(acs_allocations *table, uint64_t address, acs_allocation *copy)
{
    ACS_HOLD(&table->lock);
    const node *n = holding_locked(table, address);
    const acs_allocation *block = n ? &n->block : latest_freed_locked(table, address, 0);
    if (block)
        *copy = *block;
    return block != NULL;
}

bool acs_allocations_meet(acs_allocations *table, uint64_t base, uint64_t bytes, acs_allocation *copy)
{
    ACS_HOLD(&table->lock);
    const node *n = in_range_locked(table, base, bytes);
    bool live = n && n->block.state == ACS_ALLOCATION_LIVE;
    if (live)
        *copy = n->block;
    return live;
}

void acs_allocations_each(acs_allocations *table, void (*visit)(void *user, const acs_block *block), void *user)
{
    ACS_HOLD(&table->lock);
    for (const node *n = table->live.next; n != &table->live; n = n->next) {
        const acs_block block = acs_allocation_block(&n->block);
        visit(user, &block);
    }
}

bool acs_allocations_take(acs_allocations *table, acs_allocation *copy)
{
    ACS_HOLD(&table->lock);
    node *n = table->live.next != &table->live ? table->live.next : table->freeing.next;
    if (n == &table->freeing)
        return false;
    *copy = n->block;
    remove_locked(table, n);
    return true;
}

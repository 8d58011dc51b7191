/*
 * Queues ops through the public API as a step asks, right or wrong. For each wrong call the status that acs.h documents is
 * expected, and that nothing was queued. Called by run.c, one step at a time; judges nothing that happens later.
 */
#include "calls.h"

#include <string.h>

static const char g_only_gpu; /* what a kernel without a host body points to */
static const char g_keys[4];

#define PHANTOM (1ull << 32) /* nothing is mapped from here to where programs and heaps are */

/* --------------------------------------------------------------------------------------------------------- refusals */

void fuzz_expect(const fuzz_event *e, acs_status got, acs_status expected)
{
    acs_error error = {.size = sizeof error};
    if (got != expected)
        fuzz_fail("step %u (%s): %s, should be %s", e->step->index, fuzz_kind_name(e->step->kind), acs_status_name(got),
                  acs_status_name(expected));
    if (expected == ACS_OK)
        return;
    if (acs_last_error(&error) != expected || !error.text[0] || !error.where)
        fuzz_fail("step %u (%s): acs_last_error does not tell of %s", e->step->index, fuzz_kind_name(e->step->kind),
                  acs_status_name(expected));
}

static acs_statistics stats_of(const fuzz_session *s)
{
    acs_statistics stats = {.size = sizeof stats};
    if (acs_stats(s->context, &stats) != ACS_OK)
        fuzz_fail("acs_stats failed");
    return stats;
}

/* What a call that queues returned, against what it should have. */
static void conclude(fuzz_session *s, fuzz_event *e, acs_op op, acs_status expected)
{
    acs_statistics now;
    bool latest = e->step->kind == FUZZ_FREE && s->open.options.pool != ACS_POOL_OFF && s->last; /* a pool's free is no op */
    acs_op right = latest ? s->last : s->last + 1;
    e->op = op;
    if (op) {
        if (expected != ACS_OK || op != right)
            fuzz_fail("step %u (%s) became op %llu; should be %s of op %llu", e->step->index, fuzz_kind_name(e->step->kind),
                      (unsigned long long)op, acs_status_name(expected), (unsigned long long)right);
        s->last = op;
        return;
    }
    now = stats_of(s);
    if (now.queued != s->last)
        fuzz_fail("step %u (%s) was refused and queued", e->step->index, fuzz_kind_name(e->step->kind));
    if (e->step->no_wait && acs_last_error(NULL) == ACS_ERR_FULL) {
        if (s->under_way < (uint64_t)s->open.options.fifo)
            fuzz_fail("step %u: full with %llu ops under way", e->step->index, (unsigned long long)s->under_way);
        return;
    }
    if (expected == ACS_OK)
        expected = ACS_ERR_FULL; /* which was not asked for: a failure */
    fuzz_expect(e, acs_last_error(NULL), expected);
    s->refused |= 1u << expected;
}

/* --------------------------------------------------------------------------------------------------------- segments */

static fuzz_memory *live_block(fuzz_session *s, uint32_t which)
{
    fuzz_memory *found = NULL;
    uint32_t live = 0;
    for (uint32_t i = 0; i < s->block_count; i++)
        live += s->blocks[i].live;
    for (uint32_t i = 0, k = 0; live && i < s->block_count && !found; i++)
        if (s->blocks[i].live && k++ == which % live)
            found = &s->blocks[i];
    return found;
}

static acs_segment make(uint32_t extent, uint32_t access, uint64_t base, uint64_t row_bytes, uint64_t rows, uint64_t pitch)
{
    return acs_make_segment((acs_extent)extent, (acs_access)access, base, row_bytes, rows, pitch);
}

void fuzz_resolve(fuzz_session *s, fuzz_event *e, uint32_t i)
{
    const fuzz_segment *from = &e->step->segments[i];
    fuzz_memory *block = from->area == FUZZ_IN_BLOCK ? live_block(s, from->block) : NULL;
    uint64_t offset = from->offset, base = PHANTOM + offset, bytes = from->row_bytes;

    e->memory[i] = NULL;
    if (block) {
        offset %= block->bytes;
        bytes = bytes < block->bytes - offset ? bytes : block->bytes - offset;
        e->memory[i] = block;
    } else if (from->area <= FUZZ_IN_BLOCK || from->area == FUZZ_ALL) {
        e->memory[i] = &s->arena;
    }
    if (e->memory[i])
        base = (uint64_t)(uintptr_t)e->memory[i]->real + offset;
    if (from->rows > 1 && bytes > from->pitch) /* rows that overlap are refused: they touch */
        bytes = from->pitch;
    if (from->area == FUZZ_TOP)
        base = UINT64_MAX - 4095 + 16 * offset;
    if (from->area == FUZZ_TOKEN)
        e->segments[i] = make(ACS_EXTENT_TOKEN, from->access, offset, 0, 0, 0);
    else if (from->area == FUZZ_ALL)
        e->segments[i] = make(ACS_EXTENT_ALL, from->access, 0, 0, 0, 0);
    else
        e->segments[i] = make(ACS_EXTENT_BYTES, from->access, base, bytes, from->rows, from->pitch);
}

/* A segment that must be refused, by what is wrong; false if it is something else that is. */
static bool wrong_segment(fuzz_session *s, const fuzz_step *step, acs_segment *bad)
{
    const acs_segment wraps[] = {
        make(ACS_EXTENT_BYTES, ACS_READ, UINT64_MAX - 10, 12, 1, 0),
        make(ACS_EXTENT_BYTES, ACS_WRITE, 0, 1, (1ull << 33) + 1, 1ull << 31 | step->a | 1),
        make(ACS_EXTENT_BYTES, ACS_UPDATE, 2, UINT64_MAX, 1, 0),
        make(ACS_EXTENT_BYTES, ACS_READ, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX),
        make(ACS_EXTENT_BYTES, ACS_READ, UINT64_MAX - 100, 1, 3, 50 + step->a % 100),
        make(ACS_EXTENT_BYTES, ACS_WRITE, 1, 2, UINT64_MAX, 1),
    };
    fuzz_memory *block = live_block(s, step->a);
    *bad = make(ACS_EXTENT_BYTES, ACS_READ, PHANTOM, 16, 1, 0);
    switch (step->wrong) {
    case FUZZ_ACCESS: bad->access = (uint8_t)((step->a & 1) ? 0 : 4 + step->a % 252); return true;
    case FUZZ_EXTENT: bad->extent = (uint8_t)(3 + step->a % 253); return true;
    case FUZZ_WRAPS:
        *bad = wraps[step->a % 6];
        /* The product of rows and pitch may just fit. */
        if (step->a % 6 == 1)
            bad->rows = UINT64_MAX / bad->pitch_bytes + 2;
        if (step->a % 6 == 4)
            bad->pitch_bytes += 1;
        return true;
    case FUZZ_OUTSIDE:
        if (!block || s->open.options.check != ACS_CHECK_OVERLAP)
            return false;
        *bad = make(ACS_EXTENT_BYTES, ACS_READ, (uint64_t)(uintptr_t)block->real + step->a % block->bytes, block->bytes + 1,
                    1, 0);
        return true;
    default: return false;
    }
}

static acs_status segment_status(const fuzz_step *step)
{
    return step->wrong == FUZZ_OUTSIDE ? ACS_ERR_CHECK : ACS_ERR_ARGUMENT;
}

/* The footprint as the call is given it; `list` has room for one more than a step has. *expected is what it is worth. */
static acs_uses uses_of(fuzz_session *s, fuzz_event *e, acs_segment *list, acs_status *expected)
{
    const fuzz_step *step = e->step;
    acs_uses uses = {list, step->segment_count - step->computed, NULL, e, step->any};
    for (uint32_t i = 0; i < step->segment_count; i++)
        fuzz_resolve(s, e, i);
    memcpy(list, e->segments, sizeof e->segments);
    bool strange = step->wrong == FUZZ_IMPURE || step->wrong == FUZZ_COUNTLESS;
    if (step->computed || step->many || strange)
        uses.footprint = fuzz_footprint;
    if (wrong_segment(s, step, &list[uses.count]))
        uses.count++, *expected = segment_status(step);
    else if (strange || step->wrong == FUZZ_NO_SEGMENTS || step->wrong == FUZZ_MANY_SEGMENTS)
        *expected = ACS_ERR_ARGUMENT;
    if (step->wrong == FUZZ_NO_SEGMENTS)
        uses = (acs_uses){NULL, 1 + step->a, NULL, NULL, 0};
    if (step->wrong == FUZZ_MANY_SEGMENTS)
        uses.count = SIZE_MAX - step->a;
    return uses;
}

/* ----------------------------------------------------------------------------------------------------------- kernels */

/* A struct may have pointers in its whole words of 8 bytes alone, and there is no other type behind those two. */
static acs_status type_status(const acs_arg *arg)
{
    if (arg->type % 4 != ACS_ARG_POINTERS)
        return ACS_ERR_ARGUMENT;
    for (uint32_t word = arg->size / 8; word < 30; word++)
        if (arg->type & ACS_POINTER_AT(word))
            return ACS_ERR_ARGUMENT;
    return ACS_OK;
}

/* Make one value of the launch wrong; returns what the call must then say, ACS_OK where nothing is. */
static acs_status spoil_launch(const fuzz_step *step, acs_launch_params *p, acs_kernel *kernel, acs_arg *args)
{
    acs_arg *last = &args[p->args.count - 1];
    switch (step->wrong) {
    case FUZZ_BAD_SIZE: p->size += 1u + step->a; return ACS_ERR_ARGUMENT;
    case FUZZ_NO_FUNCTION:
        kernel->host = NULL;
        p->kernel = (step->a & 1) ? kernel : NULL;
        return ACS_ERR_ARGUMENT;
    case FUZZ_ONLY_GPU:
        kernel->host = NULL;
        kernel->function = &g_only_gpu;
        kernel->kind = ACS_KERNEL_FUNCTION;
        return ACS_ERR_UNSUPPORTED;
    case FUZZ_ZERO_GRID: *((step->a & 1) ? &p->grid.z : &p->block.y) = 0; return ACS_ERR_ARGUMENT;
    case FUZZ_LARGE_GRID: *((step->a & 1) ? &p->grid.x : &p->grid.y) = 1u << 31; return ACS_ERR_ARGUMENT;
    case FUZZ_LARGE_BLOCK: *((step->a & 1) ? &p->block.x : &p->block.z) = 1025; return ACS_ERR_ARGUMENT;
    case FUZZ_MANY_THREADS: p->block = (acs_dim3){32, 33, 1}; return ACS_ERR_ARGUMENT;
    case FUZZ_LARGE_SHARED: p->shared_bytes = (step->a & 1) ? UINT64_MAX : 1u << 30; return ACS_ERR_ARGUMENT;
    case FUZZ_NO_ARGS: p->args.list = NULL; return ACS_ERR_ARGUMENT;
    case FUZZ_NULL_ARG: last->value = NULL; return ACS_ERR_ARGUMENT;
    case FUZZ_EMPTY_ARG: last->size = 0; return ACS_ERR_ARGUMENT;
    case FUZZ_ARG_TYPE: last->type = 2 + step->a; return type_status(last);
    case FUZZ_LARGE_ARGS: last->size = (step->a & 1) ? UINT32_MAX : ACS_ARG_BYTES_MAX + 1; return ACS_ERR_ARGUMENT;
    case FUZZ_CLUSTER: p->attributes.cluster = (acs_dim3){1, (step->a & 1) ? 0 : 3, 1}; return ACS_ERR_ARGUMENT;
    case FUZZ_PROGRAMMATIC: p->attributes.programmatic = 1; return ACS_ERR_UNSUPPORTED;
    default: return ACS_OK;
    }
}

static void queue_kernel(fuzz_session *s, fuzz_event *e)
{
    static const acs_site site = {"fuzzed kernel", __FILE__, __LINE__};
    const fuzz_step *step = e->step;
    uint8_t bytes[FUZZ_ARGS][1000];
    acs_segment list[FUZZ_SEGMENTS + 1];
    acs_arg args[FUZZ_ARGS + 1] = {{&e, sizeof e, ACS_ARG_POINTER}};
    acs_kernel kernel = ACS_KERNEL_HOST_INIT((step->a & 2) ? "fuzzed" : NULL, fuzz_kernel_body);
    acs_status expected = ACS_OK, spoilt;
    for (uint32_t i = 0; i < step->arg_count; i++) {
        for (uint32_t k = 0; k < step->arg_bytes[i]; k++)
            bytes[i][k] = fuzz_arg_byte(e, i, k);
        args[i + 1] = (acs_arg){bytes[i], step->arg_bytes[i], ACS_ARG_VALUE};
    }
    acs_launch_params p = {.size = sizeof p, .kernel = &kernel, .grid = {1 + step->a, 1, 2}, .block = {1, 2, 1},
                           .shared_bytes = step->a, .args = {args, step->arg_count + 1u},
                           .uses = uses_of(s, e, list, &expected), .site = (step->a & 1) ? &site : NULL,
                           .no_wait = step->no_wait};
    spoilt = spoil_launch(step, &p, &kernel, args);
    if (step->wrong == FUZZ_NO_PARAMS)
        spoilt = ACS_ERR_ARGUMENT;
    acs_op op = acs_launch(s->context, step->wrong == FUZZ_NO_PARAMS ? NULL : &p);
    memset(bytes, 0xee, sizeof bytes); /* copied before the call returned: nobody reads these again */
    memset(list, 0xee, sizeof list);
    conclude(s, e, op, spoilt ? spoilt : expected);
}

/* --------------------------------------------------------------------------------- host functions and library calls */

static const void *closure_of(fuzz_event *e, fuzz_closure *c, size_t *bytes)
{
    static const uint8_t words[] = {0, 1, 11, FUZZ_CLOSURE_WORDS};
    c->event = e;
    e->closure = words[e->step->a & 3];
    for (uint32_t i = 0; i < e->closure; i++)
        c->words[i] = fuzz_mix(e->step->index + i);
    *bytes = sizeof c->event + e->closure * sizeof *c->words;
    if (e->step->wrong == FUZZ_LARGE_CLOSURE)
        *bytes = ACS_ARG_BYTES_MAX + 1u + e->step->a;
    return e->step->wrong == FUZZ_NO_CLOSURE ? NULL : c;
}

static bool closure_is_wrong(const fuzz_step *step)
{
    return step->wrong == FUZZ_LARGE_CLOSURE || step->wrong == FUZZ_NO_CLOSURE || step->wrong == FUZZ_NO_FUNCTION;
}

static void queue_host(fuzz_session *s, fuzz_event *e)
{
    static const acs_site site = {"fuzzed host function", __FILE__, __LINE__};
    const fuzz_step *step = e->step;
    acs_segment list[FUZZ_SEGMENTS + 1];
    acs_status expected = ACS_OK;
    fuzz_closure c;
    size_t bytes;
    const void *closure = closure_of(e, &c, &bytes);
    acs_op_params params = {&site, step->no_wait};
    acs_uses uses = uses_of(s, e, list, &expected);
    if (closure_is_wrong(step))
        expected = ACS_ERR_ARGUMENT;
    acs_op op;
    if (step->borrowed && !closure_is_wrong(step))
        op = acs_host_op(s->context, fuzz_host_borrowed, e, 0, uses, &params);
    else
        op = acs_host_op(s->context, step->wrong == FUZZ_NO_FUNCTION ? NULL : fuzz_host_body, closure, bytes, uses,
                         step->no_wait ? &params : NULL);
    memset(&c, 0xee, sizeof c);
    conclude(s, e, op, expected);
}

static void queue_call(fuzz_session *s, fuzz_event *e)
{
    const fuzz_step *step = e->step;
    acs_segment list[FUZZ_SEGMENTS + 1];
    acs_status expected = ACS_OK;
    fuzz_closure c;
    acs_call_params p = {.size = sizeof p, .function = fuzz_call_body, .scratch_bytes = step->a & 0xf0u,
                         .place_key = (step->a & 3) ? &g_keys[step->a & 3] : NULL, .place_destroy = fuzz_place_destroy,
                         .uses = uses_of(s, e, list, &expected), .no_wait = step->no_wait};
    p.closure = closure_of(e, &c, &p.closure_bytes);
    if (step->wrong == FUZZ_BAD_SIZE)
        p.size -= 1u + step->a % sizeof p;
    if (step->wrong == FUZZ_NO_FUNCTION)
        p.function = NULL;
    if (step->wrong == FUZZ_BAD_SIZE || step->wrong == FUZZ_NO_PARAMS || closure_is_wrong(step))
        expected = ACS_ERR_ARGUMENT;
    acs_op op = acs_call(s->context, step->wrong == FUZZ_NO_PARAMS ? NULL : &p);
    memset(&c, 0xee, sizeof c);
    conclude(s, e, op, expected);
}

/* -------------------------------------------------------------------------------------------------------------- others */

static void queue_copy(fuzz_session *s, fuzz_event *e)
{
    const fuzz_step *step = e->step;
    acs_op_params params = {NULL, step->no_wait};
    acs_status expected = ACS_OK;
    acs_segment bad;
    uint32_t ends = step->kind == FUZZ_MEMCPY ? 2 : 1;
    void *at[2] = {NULL, NULL};
    size_t bytes = SIZE_MAX;
    for (uint32_t i = 0; i < ends; i++) { /* decode.c names arena or block only, in one row */
        fuzz_resolve(s, e, i);
        at[i] = (void *)(uintptr_t)e->segments[i].base;
        bytes = e->segments[i].row_bytes < bytes ? e->segments[i].row_bytes : bytes;
    }
    e->length = (uint32_t)bytes;
    for (uint32_t i = 0; i < ends; i++) {
        e->segments[i].row_bytes = bytes;
        e->segments[i].access = i ? ACS_READ : ACS_WRITE;
    }
    if (step->wrong == FUZZ_NULL_PLACE && bytes) {
        at[(step->a & 1) % ends] = NULL;
        expected = ACS_ERR_ARGUMENT;
    } else if ((step->wrong == FUZZ_WRAPS || step->wrong == FUZZ_OUTSIDE) && wrong_segment(s, step, &bad)) {
        at[0] = (void *)(uintptr_t)(step->wrong == FUZZ_WRAPS ? UINT64_MAX - 2 : bad.base);
        bytes = step->wrong == FUZZ_WRAPS ? 4 : bad.row_bytes;
        at[1] = ends == 2 && step->wrong == FUZZ_WRAPS ? s->arena.real : at[1]; /* a block may be shorter: wrong, too */
        expected = segment_status(step);
    }
    acs_op op = step->kind == FUZZ_MEMCPY ? acs_memcpy_op(s->context, at[0], at[1], bytes, &params)
                                          : acs_memset_op(s->context, at[0], step->a, bytes, &params);
    conclude(s, e, op, expected);
}

static void queue_free(fuzz_session *s, fuzz_event *e)
{
    fuzz_memory *block = live_block(s, e->step->a), *gone = NULL;
    acs_op_params params = {NULL, e->step->no_wait};
    void *at = block ? block->real : NULL;
    for (uint32_t i = 0; i < s->block_count; i++)
        if (s->blocks[i].gone)
            gone = &s->blocks[i];
    for (uint32_t i = 0; gone && i < s->block_count; i++)
        if (s->blocks[i].live && s->blocks[i].real == gone->real)
            gone = NULL; /* given out again */
    if (e->step->wrong == FUZZ_FOREIGN)
        at = s->arena.real;
    else if (e->step->wrong == FUZZ_INTERIOR && block)
        at = block->real + 1;
    else if (e->step->wrong == FUZZ_TWICE && gone)
        at = gone->real;
    if (!at) { /* freeing NULL is allowed and no op, but for the first: there is no op to name yet */
        const acs_op op = acs_free_op(s->context, NULL, &params);
        if (op != (s->last ? s->last : 1))
            fuzz_fail("step %u: freeing NULL is not the latest op", e->step->index);
        s->last = op;
        return;
    }
    bool right = block && at == block->real;
    acs_op op = acs_free_op(s->context, at, &params);
    if (op && right) {
        e->block = block;
        block->live = false;
        block->gone = true;
    }
    conclude(s, e, op, right ? ACS_OK : ACS_ERR_ARGUMENT);
}

static void queue_retire(fuzz_session *s, fuzz_event *e)
{
    acs_op target = e->target >= 0 ? s->events[e->target].op : 0;
    acs_retire_fn function = e->step->wrong == FUZZ_NO_FUNCTION ? NULL : fuzz_retire_body;
    if (e->step->wrong == FUZZ_OP_ZERO)
        target = 0;
    if (e->step->wrong == FUZZ_OP_LATER)
        target = s->last + 1 + e->step->a;
    bool right = function && target && target <= s->last;
    conclude(s, e, acs_on_retire(s->context, target, function, e), right ? ACS_OK : ACS_ERR_ARGUMENT);
}

static void queue_after_stream(fuzz_session *s, fuzz_event *e)
{
    acs_segment list[FUZZ_SEGMENTS + 1];
    acs_status expected = ACS_OK;
    acs_uses uses = uses_of(s, e, list, &expected);
    conclude(s, e, acs_after_stream(s->context, NULL, uses), expected);
}

/* Waits that are ops: a refusal is a status, and they are through when they return. */
static void wait_as_op(fuzz_session *s, fuzz_event *e)
{
    acs_segment list[FUZZ_SEGMENTS + 1];
    acs_status expected = ACS_OK;
    if (e->step->kind == FUZZ_STREAM_AFTER) {
        acs_uses uses = uses_of(s, e, list, &expected);
        e->result = acs_stream_after(s->context, NULL, uses);
    } else {
        fuzz_resolve(s, e, 0);
        list[0] = e->segments[0];
        if (e->step->wrong != FUZZ_EXTENT && wrong_segment(s, e->step, &list[0]) && list[0].rows == 1)
            expected = segment_status(e->step);
        else
            list[0] = e->segments[0];
        e->result = acs_wait_range(s->context, (void *)(uintptr_t)list[0].base, list[0].row_bytes,
                                   (acs_access)list[0].access);
    }
    bool refused = e->result != ACS_OK && e->result != ACS_ERR_SKIPPED;
    if (refused && e->result != acs_last_error(NULL))
        fuzz_fail("step %u returned %s", e->step->index, acs_status_name(e->result));
    conclude(s, e, refused ? 0 : s->last + 1, expected);
}

void fuzz_queue(fuzz_session *s, fuzz_event *e)
{
    if (e->step->no_wait) {
        const acs_statistics before = stats_of(s);
        s->under_way = before.queued - before.retired;
    }
    switch (e->step->kind) {
    case FUZZ_KERNEL: queue_kernel(s, e); break;
    case FUZZ_HOST: queue_host(s, e); break;
    case FUZZ_CALL: queue_call(s, e); break;
    case FUZZ_MEMCPY:
    case FUZZ_MEMSET: queue_copy(s, e); break;
    case FUZZ_AFTER_STREAM: queue_after_stream(s, e); break;
    case FUZZ_FREE: queue_free(s, e); break;
    case FUZZ_RETIRE: queue_retire(s, e); break;
    default: wait_as_op(s, e); break;
    }
}

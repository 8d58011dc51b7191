/*
 * Ops around a kernel that find bytes which it did not write (see check_outputs.h). Called by acs_launch where ACS_CHECK
 * asks for it. Before the kernel a copy fills each out segment with made-up bytes; behind it a copy brings them back,
 * and a host function compares. The launch waits for that, since a program that knows its kernel to have ended may
 * change the memory.
 *
 * Out segments that overlap what the kernel reads are not checked, since their bytes have to stay. The first copy is
 * queued once the kernel's record is bound and checked, so a refused launch fills nothing.
 */
#include "checks/check_outputs.h"

#include "capture/capture.h"
#include "groups/group.h"

#include "api/program_order.h"
#include "api/draft.h"
#include "api/failures.h"
#include "api/wait.h"
#include "base/inside.h"
#include "base/tuning.h"
#include "window/regions.h"

#include <string.h>

enum { SEGMENTS_MOST = 64 };

static const acs_site g_unnamed = {"(unnamed op)", NULL, 0};

/* An out segment that is checked, and the pinned memory through which its bytes come and go, row after row. */
typedef struct checked_segment {
    acs_context *context;
    acs_segment segment;
    uint32_t index;
    uint64_t rows; /* number of rows that are checked */
    uint64_t seed;
    unsigned char *bytes;
    const acs_site *site; /* call of the kernel */
    const char *name;     /* name of the kernel, or NULL */
    acs_op kernel;
} checked_segment;

static acs_label label_of(const checked_segment *w)
{
    return (acs_label){w->site, w->name ? w->name : w->site->name};
}

static void fill_pattern(const checked_segment *w, uint64_t row, unsigned char *to)
{
    acs_random random = {w->seed + row};
    for (uint64_t i = 0; i < w->segment.row_bytes; i += sizeof random.state) {
        const uint64_t left = w->segment.row_bytes - i, word = acs_random_next(&random);
        memcpy(to + i, &word, left < sizeof word ? left : sizeof word);
    }
}

/* ------------------------------------------------------------------------------------------------------------- look */

/* Made-up bytes that remained. */
typedef struct leftover {
    uint64_t bytes, row, offset; /* number of bytes; place of the first one */
} leftover;

/*
 * Count sequences of made-up bytes in the row that are too long to be chance. A shorter row counts if all of it
 * remained.
 */
static void look_at_row(const checked_segment *w, uint64_t row, leftover *found)
{
    const uint64_t bytes = w->segment.row_bytes, least = bytes < TUNE_CHECK_LEFT ? bytes : TUNE_CHECK_LEFT;
    const unsigned char *now = w->bytes + row * bytes;
    acs_random random = {w->seed + row};
    uint64_t word = 0, run = 0;
    for (uint64_t i = 0; i <= bytes; i++) {
        if (i % sizeof word == 0)
            word = acs_random_next(&random);
        if (i < bytes && now[i] == (unsigned char)(word >> i % sizeof word * 8)) {
            run++;
            continue;
        }
        const bool tail = i == bytes && row + 1 == w->segment.rows;
        if (run >= (tail ? TUNE_CHECK_TAIL : least)) {
            if (found->bytes == 0)
                *found = (leftover){.row = row, .offset = i - run};
            found->bytes += run;
        }
        run = 0;
    }
}

static int look(void *closure)
{
    const checked_segment *w = closure;
    leftover found = {0};
    for (uint64_t row = 0; row < w->rows; row++)
        look_at_row(w, row, &found);
    if (found.bytes)
        acs_failures_unwritten(w->context, w->kernel, label_of(w), w->index, found.bytes, w->rows * w->segment.row_bytes,
                               found.row * w->segment.pitch_bytes + found.offset);
    return 0;
}

/* -------------------------------------------------------------------------------------------------------------- ops */

static bool overlaps_what_is_read(const acs_segment *segments, size_t count, const acs_shape *shape)
{
    for (size_t i = 0; i < count; i++) {
        acs_shape other;
        if (segments[i].extent == ACS_EXTENT_ALL)
            return true;
        if ((segments[i].access & ACS_READ) && acs_shape_of(&segments[i], &other) == ACS_OK &&
            acs_shape_overlap(&other, shape))
            return true;
    }
    return false;
}

/* Whether the segment can be checked. acs_launch refuses wrong segments. */
static bool can_be_checked(const acs_segment *segments, size_t count, const acs_segment *s)
{
    acs_shape shape;
    if (s->access != ACS_WRITE || s->extent != ACS_EXTENT_BYTES || s->row_bytes < TUNE_CHECK_TAIL ||
        acs_shape_of(s, &shape) != ACS_OK)
        return false;
    return (s->rows == 1 || s->pitch_bytes >= s->row_bytes) && !overlaps_what_is_read(segments, count, &shape);
}

static void *row_at(const checked_segment *w, uint64_t row)
{
    return (void *)(uintptr_t)(w->segment.base + row * w->segment.pitch_bytes);
}

/* Take pinned memory for the made-up bytes. False: there is none, and the segment is not checked. */
static bool take_bytes(checked_segment *w)
{
    const acs_op_params params = {w->site, 0};
    const acs_error before = *acs_error_thread(); /* a segment that is not checked is no error of the launch */
    void *memory = NULL;
    if (acs_malloc_op(w->context, (size_t)(w->rows * w->segment.row_bytes), ACS_MEMORY_HOST, &memory, &params) != ACS_OK) {
        acs_log(ACS_LOG_WARN, "'%s': segment %u is not looked at: %s", acs_label_name(label_of(w)), w->index,
                acs_error_thread()->text);
        *acs_error_thread() = before;
        return false;
    }
    w->bytes = memory;
    return true;
}

/*
 * Queue a copy to `to`, an address that devices know. The caller holds the lock of relocatable blocks, so the block
 * stays there.
 */
static acs_op queue_fill(const checked_segment *w, uint64_t to, const void *from, uint64_t bytes)
{
    acs_draft draft = {.context = w->context, .site = w->site, .own = true};
    acs_backend *backend = w->context->backend;
    if (!acs_draft_begin(&draft, ACS_KIND_MEMCPY))
        return 0;
    acs_record *record = draft.record;
    if (acs_record_reserve(w->context->records, record, 0, 0, 2) != ACS_OK)
        return acs_draft_drop(&draft);
    record->segments[0] = ACS_IN(from, bytes);
    record->segments[1] = ACS_OUT(to, bytes);
    record->segment_count = 2;
    record->u.copy.dst = (void *)(uintptr_t)to;
    record->u.copy.src = from;
    record->u.copy.bytes = bytes;
    record->u.copy.rows = 1;
    if (backend->ops->adapt)
        backend->ops->adapt(backend, record);
    return acs_draft_queue(&draft);
}

/* Queue the fills of one segment. `bound` is the same segment in the kernel's record, which is bound. */
static void poison(checked_segment *w, const acs_segment *bound)
{
    const uint64_t bytes = w->segment.row_bytes;
    for (uint64_t row = 0; row < w->rows; row++) {
        unsigned char *from = w->bytes + row * bytes;
        fill_pattern(w, row, from);
        if (!queue_fill(w, bound->base + row * bound->pitch_bytes, from, bytes))
            w->rows = row; /* the context keeps the error; the other rows are not checked */
    }
}

/* Queue the comparison of one segment. Returns its last op, or 0 with an error. */
static acs_op compare(const checked_segment *w)
{
    const uint64_t bytes = w->segment.row_bytes;
    const acs_op_params params = {w->site, 0};
    const acs_segment all = ACS_IN(w->bytes, w->rows * bytes);
    for (uint64_t row = 0; row < w->rows; row++)
        if (!acs_memcpy_op(w->context, w->bytes + row * bytes, row_at(w, row), (size_t)bytes, &params))
            return 0;
    return acs_host_op(w->context, look, w, sizeof *w, (acs_uses){&all, 1, NULL, NULL, 0}, &params);
}

/* A launch with its checks. It holds program order; its cleanup also runs when a footprint function throws. */
typedef struct filled_launch {
    acs_context *context;
    checked_segment segments[SEGMENTS_MOST];
    uint32_t count;
} filled_launch;

static void filled_left(filled_launch *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        (void)acs_free_op(f->context, f->segments[i].bytes, NULL);
    acs_order_unlock(f->context);
}

/* Choose the segments to check. The record is not bound yet, so its segments are those of the program. */
static void choose_segments(filled_launch *f, const acs_record *record, const acs_site *site)
{
    const uint32_t named = record->segment_count;
    for (uint32_t i = 0; i < named && named <= SEGMENTS_MOST; i++) {
        const acs_segment *s = &record->segments[i];
        if (!can_be_checked(record->segments, named, s))
            continue;
        checked_segment *w = &f->segments[f->count];
        *w = (checked_segment){.context = f->context, .segment = *s, .index = i, .site = site,
                     .name = record->u.launch.kernel.name,
                     .rows = s->rows < TUNE_CHECK_ROWS ? s->rows : TUNE_CHECK_ROWS,
                     .seed = (acs_fifo_last(f->context->core.fifo) << 20) + i};
        f->count += take_bytes(w);
    }
}

/*
 * Launch the kernel behind its fills. All checks that can refuse the launch come before the first fill; after it only a
 * lost device can.
 */
static acs_op launch_filled(filled_launch *f, const acs_launch_params *p)
{
    acs_draft draft = {.context = f->context};
    if (!acs_launch_fill(&draft, p))
        return 0;
    choose_segments(f, draft.record, p->site ? p->site : &g_unnamed);
    if (!acs_launch_bind(&draft))
        return 0;
    if (acs_draft_begin_contents(&draft) != ACS_OK)
        return acs_draft_drop(&draft);
    for (uint32_t i = 0; i < f->count; i++)
        poison(&f->segments[i], &draft.record->segments[f->segments[i].index]);
    return acs_draft_queue(&draft);
}

/* Launch the kernel and queue the comparisons. *last: the last of them, or 0. */
static acs_op launch_compared(acs_context *context, const acs_launch_params *p, acs_op *last)
{
    __attribute__((cleanup(filled_left))) filled_launch f = {.context = context};
    acs_order_lock(context);
    const acs_op op = launch_filled(&f, p);
    for (uint32_t i = 0; i < f.count; i++) {
        f.segments[i].kernel = op;
        const acs_op compared = op ? compare(&f.segments[i]) : 0;
        *last = compared ? compared : *last;
    }
    return op;
}

acs_op acs_check_outputs_launch(acs_context *context, const acs_launch_params *p)
{
    acs_op last = 0;
    ACS_NOT_CANCELLED;
    if (p->no_wait || p->uses.any || acs_capture_on(context) || acs_group_on(context))
        return acs_launch_unchecked(context, p);
    const acs_op op = launch_compared(context, p, &last);
    if (last)
        acs_context_wait(context, ACS_WAIT_FOR_OP, last);
    return op;
}

/*
 * Drafts and launches (draft.h): fills an op's record from the call and queues it, on the caller's thread. Called by
 * all calls that queue an op. Calls CUDA only through the backend's check of a kernel not seen before. Allocates only
 * while the pool of records warms up. Takes a lock only while the FIFO is full.
 */
#include "api/draft.h"

#include "api/expand.h"
#include "api/failures.h"
#include "api/threads.h"
#include "api/wait.h"
#include "base/tuning.h"
#include "window/nvtx_op.h"

#include <string.h>

const acs_site acs_unknown_site = {"(unnamed op)", NULL, 0};
static const char g_no_room_any_more[] = "the FIFO is full, and nothing will leave it any more; see acs_context_error";

/* ----------------------------------------------------------------------------------------------------------- drafts */

void acs_draft_blame(const acs_draft *draft)
{
    const acs_site site = acs_label_site(acs_draft_label(draft));
    acs_error_at(&site);
}

static bool has_record(acs_context *context, void *draft)
{
    acs_draft *d = draft;
    if (!d->record) /* a wait may ask once more after success */
        d->record = acs_record_acquire(context->records);
    return d->record != NULL;
}

void acs_draft_take_back(acs_draft *draft)
{
    const acs_op_hooks *hooks = draft->context->hooks;
    if (ACS_UNLIKELY(draft->modes & ACS_MODES_LAUNCH) && hooks)
        hooks->drop(draft);
    for (uint32_t i = 1; i < draft->parts; i++)
        acs_record_release(draft->context->records, draft->part[i]);
    if (draft->record)
        acs_record_release(draft->records, draft->record);
    draft->record = NULL;
    draft->parts = 0;
}

acs_op acs_draft_drop(acs_draft *draft)
{
    acs_draft_blame(draft);
    (void)acs_failures_refuse(draft->context, NULL);
    acs_draft_take_back(draft);
    return 0;
}

/* Refuse the call with an error that is not kept: a retry is safe, or the context has the error already. */
static bool refuse_begin(acs_draft *draft)
{
    acs_draft_blame(draft);
    acs_draft_take_back(draft);
    return false;
}

/* Begin an op beside the plain path. The hook may set draft->record. False: refused. */
static bool begin_beside(acs_draft *draft, acs_op_kind kind)
{
    if (draft->context->hooks && !draft->context->hooks->begin(draft, kind))
        return false;
    if (draft->record || !(draft->modes & ACS_MODE_LOST))
        return true;
    ACS_FAIL(ACS_ERR_DEVICE, 0, "the device is lost; see acs_context_error");
    return refuse_begin(draft);
}

/* Wait in a full FIFO. A profiler sees that; the wait is for the oldest op, as a rule. */
static void wait_for_room(acs_draft *draft, acs_try_fn try)
{
    acs_context *context = draft->context;
    atomic_fetch_add_explicit(&context->caller_waits, 1, memory_order_relaxed); /* a counter */
    if (ACS_UNLIKELY(acs_nvtx_taken))
        acs_nvtx_op_push_full(acs_draft_label(draft), acs_core_settled(&context->core) + 1);
    acs_context_wait_room(context, try, draft);
    if (ACS_UNLIKELY(acs_nvtx_taken))
        acs_nvtx_pop();
}

/* The pool has no record: wait for one. False: refused. */
static bool wait_for_record(acs_draft *draft)
{
    if (draft->no_wait) {
        ACS_FAIL(ACS_ERR_FULL, 0, "the FIFO is full");
        return refuse_begin(draft);
    }
    wait_for_room(draft, has_record);
    if (ACS_LIKELY(draft->record != NULL))
        return true;
    ACS_FAIL(ACS_ERR_DEVICE, 0, "%s", g_no_room_any_more);
    (void)acs_draft_drop(draft);
    return false;
}

acs_record *acs_draft_begin(acs_draft *draft, acs_op_kind kind)
{
    acs_context *context = draft->context;
    if (!draft->site)
        draft->site = &acs_unknown_site;
    draft->record = NULL;
    draft->records = context->records;
    draft->kernel = kind == ACS_KIND_KERNEL;
    draft->modes = acs_context_modes(context);
    draft->places = 1;
    if (ACS_UNLIKELY(draft->modes & ACS_MODES_LAUNCH) && !begin_beside(draft, kind))
        return NULL;
    if (ACS_LIKELY(!draft->record))
        draft->record = acs_record_acquire(context->records);
    if (ACS_UNLIKELY(!draft->record) && !wait_for_record(draft))
        return NULL;
    draft->record->kind = draft->record->asked = (uint8_t)kind;
    draft->record->site = draft->site;
    draft->record->any = 0;
    draft->record->flags |= draft->decision;
    draft->record->cell = draft->cell;
    return draft->record;
}

acs_status acs_draft_bind(acs_draft *draft)
{
    return ACS_LIKELY(!(draft->modes & ACS_MODE_BLOCKS)) ? ACS_OK : draft->context->hooks->bind(draft);
}

acs_op acs_draft_push(const acs_draft *draft)
{
    acs_fifo *fifo = draft->context->core.fifo;
    return ACS_LIKELY(!draft->parts) ? acs_fifo_push(fifo, draft->record)
                                     : acs_fifo_push_all(fifo, draft->part, draft->parts);
}

static acs_op push(acs_draft *draft)
{
    const bool repeats = draft->modes & ACS_MODE_REPEATS;
    return ACS_UNLIKELY(repeats) ? draft->context->hooks->push(draft) : acs_draft_push(draft);
}

static bool has_place(acs_context *context, void *draft)
{
    acs_draft *d = draft;
    (void)context;
    if (!d->queued) /* a wait may ask once more after success */
        d->queued = push(d);
    return d->queued != 0;
}

/*
 * ACS_DISABLE: the call issues the op that it queued, unless that comes behind a host function. Completions are looked for
 * once in TUNE_DISABLED_CALLS calls, and by waits: a look costs as much as the launch. Host functions and callbacks have a
 * thread: this one may hold a lock that they need.
 */
static void issue_now(acs_context *context, acs_op op, uint8_t kind)
{
    bool looks = op % TUNE_DISABLED_CALLS == 0;
    if (kind == ACS_KIND_HOST || kind == ACS_KIND_CALLBACK)
        acs_eventcount_notify(&context->host_work);
    while (acs_context_step(context) && (looks || acs_fifo_ready(context->core.fifo)))
        looks = false; /* once: an op may never end */
}

/* The FIFO was full: wait for a place. 0 with an error: the draft was dropped. */
static acs_op wait_for_place(acs_draft *draft)
{
    if (draft->no_wait) {
        ACS_FAIL(ACS_ERR_FULL, 0, "the FIFO is full (%lld ops)", (long long)draft->context->options.fifo);
        return acs_draft_drop(draft);
    }
    wait_for_room(draft, has_place);
    if (ACS_LIKELY(draft->queued != 0))
        return draft->queued;
    ACS_FAIL(ACS_ERR_DEVICE, 0, "%s", g_no_room_any_more);
    return acs_draft_drop(draft);
}

acs_op acs_draft_queue(acs_draft *draft)
{
    acs_context *context = draft->context;
    draft->modes |= acs_context_modes(context); /* blocks may have begun a new life since acs_draft_begin */
    const acs_op_hooks *hooks = ACS_UNLIKELY(draft->modes & ACS_MODES_LAUNCH) ? context->hooks : NULL;
    acs_op op;
    if (ACS_UNLIKELY(hooks != NULL) && hooks->submit(draft, &op))
        return op;
    /* A small copy or fill may have become a kernel. Read now: a queued record belongs to the scheduler. */
    const uint8_t kind = draft->record->kind;
    if (ACS_UNLIKELY(context->recorder != NULL))
        acs_recorder_enter(context->recorder, draft->record, acs_fifo_last(context->core.fifo) + 1);
    op = push(draft);
    if (ACS_UNLIKELY(!op) && (op = wait_for_place(draft)) == 0)
        return 0;
    if (ACS_UNLIKELY(hooks != NULL))
        hooks->queued(draft, op);
    acs_context_queued(context, op, kind == ACS_KIND_KERNEL);
    if (ACS_UNLIKELY(draft->modes & ACS_MODE_ISSUE_NOW))
        issue_now(context, op, kind);
    return op;
}

/* ------------------------------------------------------------------------------------------------------- footprints */

uint32_t acs_decided_segments(acs_segment *segments, uint32_t count, const acs_cell *cell)
{
    for (uint32_t i = 0; i < count; i++)
        if (segments[i].access == ACS_WRITE)
            segments[i].access = ACS_UPDATE;
    segments[count] = ACS_IN(cell, sizeof *cell);
    return count + 1;
}

acs_status acs_draft_uses(acs_draft *draft, const acs_uses *uses, uint32_t args, uint32_t arg_bytes)
{
    acs_record *record = draft->record;
    if (ACS_UNLIKELY(uses->count > ACS_SEGMENTS_MOST || (uses->count && !uses->segments)))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': %zu segments at %p", acs_draft_name(draft), uses->count,
                        (const void *)uses->segments);
    const uint32_t room = ((uint32_t)uses->count + (draft->cell != NULL)) * draft->places;
    ACS_TRY(acs_record_reserve(draft->records, record, args, arg_bytes, room));
    record->segment_count = (uint32_t)uses->count;
    if (uses->count)
        memcpy(record->segments, uses->segments, uses->count * sizeof *uses->segments);
    record->any = uses->any != 0;
    if (ACS_UNLIKELY(draft->cell != NULL))
        record->segment_count = acs_decided_segments(record->segments, record->segment_count, draft->cell);
    ACS_TRY(acs_draft_check_segments(draft));
    bool later = record->kind == ACS_KIND_KERNEL || record->kind == ACS_KIND_MEMCPY || record->kind == ACS_KIND_MEMSET;
    return ACS_LIKELY(later) ? ACS_OK : acs_draft_bind(draft);
}

/* ---------------------------------------------------------------------------------------------------------- kernels */

/* Alignment of an argument, as CUDA lays parameters out: its size rounded up to a power of two, at most 16. */
static uint32_t arg_alignment(uint32_t size)
{
    if (ACS_LIKELY(size == 8 || size == 4))
        return size;
    if (size >= 16)
        return 16;
    return size > 8 ? 16 : size > 4 ? 8 : size > 2 ? 4 : size > 1 ? 2 : 1;
}

/* Whether the argument is a struct with pointers, all of which lie inside it. */
static bool has_good_pointers(const acs_arg *arg)
{
    return (arg->type & 3) == ACS_ARG_POINTERS && (arg->size >= 30 * 8 || arg->type >> 2 >> arg->size / 8 == 0);
}

static inline __attribute__((always_inline)) acs_status measure_args(const acs_draft *draft, const acs_args *args,
                                                                     uint32_t *bytes)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < args->count; i++) {
        const acs_arg *arg = &args->list[i];
        if (ACS_UNLIKELY(!arg->value || !arg->size || (arg->type > ACS_ARG_POINTER && !has_good_pointers(arg))))
            return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': argument %zu (from 0) has value %p, %u bytes and type %u",
                            acs_draft_name(draft), i, arg->value, arg->size, arg->type);
        uint32_t align = arg_alignment(arg->size);
        offset = ((offset + align - 1) & ~(uint64_t)(align - 1)) + arg->size;
    }
    if (ACS_UNLIKELY(offset > ACS_ARG_BYTES_MAX))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': %llu bytes of arguments, at most %d are possible", acs_draft_name(draft),
                        (unsigned long long)offset, ACS_ARG_BYTES_MAX);
    *bytes = (uint32_t)offset;
    return ACS_OK;
}

static void copy_args(acs_record *record, const acs_args *args, uint32_t bytes)
{
    acs_arg_slot *row = record->args;
    unsigned char *to = record->arg_bytes;
    uint32_t offset = 0;
    for (const acs_arg *arg = args->list, *end = args->count ? arg + args->count : arg; arg < end; arg++, row++) {
        uint32_t size = arg->size, align = arg_alignment(size), gap = -offset & (align - 1);
        if (ACS_UNLIKELY(gap)) /* the argument bytes are compared and hashed as a whole, gaps included */
            memset(to + offset, 0, gap);
        offset += gap;
        *row = (acs_arg_slot){.offset = (uint16_t)offset, .size = (uint16_t)size, .type = arg->type & 3u,
                              .words = (arg->type >> 2) & ((1u << 30) - 1)};
        if (ACS_LIKELY(size == 8))
            memcpy(to + offset, arg->value, 8);
        else if (size == 4)
            memcpy(to + offset, arg->value, 4);
        else
            memcpy(to + offset, arg->value, size);
        offset += size;
    }
    record->arg_count = (uint32_t)args->count;
    record->arg_bytes_used = bytes;
}

static bool has_zero(acs_dim3 d)
{
    return !d.x || !d.y || !d.z;
}

/* acs_attributes.on has 8 bits: UINT8_MAX stands for every number that no device can have. */
static acs_status refuse_device(const acs_draft *draft, uint32_t on)
{
    const uint32_t devices = draft->context->backend->devices;
    if (on == UINT8_MAX)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': ACS_ON: no device has this number; the context has %u",
                        acs_draft_name(draft), devices);
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': ACS_ON: there is no device %u; the context has %u", acs_draft_name(draft),
                    on - 1, devices);
}

/* Refuse a device that the context does not have, or on which a CUfunction cannot run (residency/replica_acquire.c). */
static acs_status check_device(const acs_draft *draft, const acs_launch_params *p)
{
    const uint32_t on = p->attributes.on;
    if (ACS_UNLIKELY(on > draft->context->backend->devices))
        return refuse_device(draft, on);
    if (ACS_UNLIKELY(on > 1 && p->kernel->kind == ACS_KERNEL_CUFUNCTION))
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "'%s': ACS_ON(%u): a CUfunction runs on device 0 alone; a cudaKernel_t "
                        "(CUkernel) runs on all (ACS_KERNEL_HANDLE)", acs_draft_name(draft), on - 1);
    return ACS_OK;
}

/* Part of each launch, where it is inlined: as a call it takes a tenth of one. */
static inline __attribute__((always_inline)) acs_status measure(const acs_draft *draft, const acs_launch_params *p,
                                                                uint32_t *arg_bytes)
{
    if (ACS_UNLIKELY(has_zero(p->grid) || has_zero(p->block)))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': grid %u x %u x %u of blocks %u x %u x %u: a dimension is zero",
                        acs_draft_name(draft), p->grid.x, p->grid.y, p->grid.z, p->block.x, p->block.y, p->block.z);
    if (p->args.count && !p->args.list)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': %zu arguments at NULL", acs_draft_name(draft), p->args.count);
    return measure_args(draft, &p->args, arg_bytes);
}

acs_status acs_launch_measure(const acs_draft *draft, const acs_launch_params *p, uint32_t *arg_bytes)
{
    return measure(draft, p, arg_bytes);
}

static acs_status fill_launch(acs_draft *draft, const acs_launch_params *p)
{
    uint32_t bytes = 0;
    acs_record *record = draft->record;
    ACS_TRY(measure(draft, p, &bytes));
    ACS_TRY(check_device(draft, p));
    if (ACS_UNLIKELY(p->attributes.fit > 100))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': a fit of %d percent; 1 to 100 are possible", acs_draft_name(draft),
                        p->attributes.fit);
    if (ACS_UNLIKELY(p->attributes.variant > 1))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': no version number %d: the kernel has none (acs_variants), or "
                        "its grid is read on the GPU", acs_draft_name(draft), p->attributes.variant - 1);
    ACS_TRY(acs_draft_uses(draft, &p->uses, (uint32_t)p->args.count, bytes));
    copy_args(record, &p->args, bytes);
    record->u.launch.kernel = *p->kernel;
    if (!draft->name)
        record->u.launch.kernel.name = draft->site->name;
    record->grid = p->grid;
    record->u.launch.block = p->block;
    record->u.launch.shared_bytes = p->shared_bytes;
    record->u.launch.attributes = p->attributes;
    draft->on = p->attributes.on;
    record->u.launch.attributes.variant = record->u.launch.attributes.fit = 0; /* the version is chosen, or open */
    record->u.launch.attributes.on = 0; /* draft->on has it; kernels that differ in attributes count as different */
    record->u.launch.resolved = NULL;
    record->type = 0;
    if (ACS_UNLIKELY(p->attributes.share))
        ACS_TRY(acs_share_set(draft, p->attributes.share));
    if (ACS_UNLIKELY(p->attributes.programmatic))
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0,
                        "'%s': programmatic dependent launch is refused: it weakens the order against the op before",
                        acs_draft_name(draft));
    return ACS_OK;
}

bool acs_launch_fill(acs_draft *draft, const acs_launch_params *p)
{
    draft->site = &acs_unknown_site;
    if (ACS_UNLIKELY(!p || p->size != sizeof *p)) {
        ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_launch: params %p, size %zu instead of %zu", (const void *)p, p ? p->size : 0,
                 sizeof *p);
        (void)acs_draft_drop(draft);
        return false;
    }
    if (p->site)
        draft->site = p->site;
    if (ACS_UNLIKELY(!p->kernel || (!p->kernel->function && !p->kernel->host))) {
        ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': the kernel is null", acs_draft_name(draft));
        (void)acs_draft_drop(draft);
        return false;
    }
    draft->name = p->kernel->name;
    draft->no_wait = p->no_wait != 0;
    if (ACS_UNLIKELY(!acs_draft_begin(draft, ACS_KIND_KERNEL)))
        return false;
    const acs_status status = fill_launch(draft, p);
    if (ACS_LIKELY(status == ACS_OK))
        return true;
    draft->expands = status == ACS_NOT_READY;
    if (draft->expands)
        acs_draft_take_back(draft);
    else
        (void)acs_draft_drop(draft);
    return false;
}

bool acs_launch_bind(acs_draft *draft)
{
    acs_backend *backend = draft->context->backend;
    if (ACS_LIKELY(acs_draft_bind(draft) == ACS_OK && backend->ops->check(backend, draft->record) == ACS_OK))
        return true;
    (void)acs_draft_drop(draft);
    return false;
}

/* All zero. In two parts, since gcc clears more than 64 bytes at once by a string instruction, which takes 10 ns. */
static inline void clear_draft(acs_draft *draft)
{
    _Static_assert(sizeof *draft > 64 && sizeof *draft <= 128, "each part has at most 64 bytes");
    memset(draft, 0, 64);
    memset((char *)draft + 64, 0, sizeof *draft - 64);
}

acs_op acs_launch_unchecked(acs_context *context, const acs_launch_params *p)
{
    acs_draft draft;
    clear_draft(&draft);
    draft.context = context;
    if (ACS_LIKELY(acs_launch_fill(&draft, p) && acs_launch_bind(&draft)))
        return acs_draft_queue(&draft);
    return ACS_UNLIKELY(draft.expands) ? ACS_OP_EXPANDS : 0;
}

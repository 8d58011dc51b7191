/*
 * The device on which an op runs (see device_choice.h). Called while ops are bound, and when ops end. Owns the topology,
 * the placement and their counts.
 */
#include "residency/device_choice.h"

#include "base/tuning.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Latest acs_on of this thread. opened_ns tells a context from a closed one that had the same address. */
static _Thread_local struct {
    const acs_context *context;
    uint64_t opened_ns;
    uint32_t device; /* one plus the device; 0: none */
} tl_on;

/* ------------------------------------------------------------------------------------------------------ open, close */

/*
 * Load measured links, if there are any. A bad file is no error of the caller, since there is an estimate. Virtual
 * devices cannot be measured.
 */
static void load_topology(acs_topology *t, const acs_context *context)
{
    const bool gpus = context->backend->ops->id == ACS_BACKEND_CUDA && !t->shared;
    acs_topology measured = *t;
    const acs_error before = *acs_error_thread();
    acs_status status = acs_topology_load(&measured);
    const char *why = status == ACS_NOT_READY ? NULL : acs_error_thread()->text;
    if (status == ACS_OK)
        *t = measured;
    else if (gpus)
        acs_log(ACS_LOG_INFO, "links between %u devices are estimated; 'ACS_DEVICES=%u acs-info --measure' measures them"
                "%s%s", t->count, t->count, why ? ": " : "", why ? why : "");
    *acs_error_thread() = before;
}

/* Read the links from the file that the options name; else as measured; else as the backend estimates them. */
static acs_status open_topology(acs_context *context)
{
    acs_topology *t = &context->device_choice->topology;
    const char *name = context->options.topology;
    t->count = context->device_choice->count;
    ACS_TRY(context->backend->ops->links(context->backend, t));
    const acs_topology found = *t;
    if (name[0])
        ACS_TRY(acs_topology_open(t, name));
    else
        load_topology(t, context);
    /* The backend decides what ops may do: a file can remove peer access, but never add it. */
    for (uint32_t a = 0; a <= t->count; a++)
        for (uint32_t b = 0; b <= t->count; b++)
            t->links[a][b].peer = t->links[a][b].peer && found.links[a][b].peer;
    return ACS_OK;
}

acs_status acs_device_choice_open(acs_context *context)
{
    const acs_options *o = &context->options;
    if (context->backend->devices == 1) {
        if (o->topology[0])
            acs_log(ACS_LOG_WARN, "ACS_TOPOLOGY has no effect: there is one device");
        return ACS_OK;
    }
    if (o->pool == ACS_POOL_OFF)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_DEVICES=%u needs pools: ACS_POOL is off", context->backend->devices);
    if (o->rename != 0 || o->check >= ACS_CHECK_WRITES)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_DEVICES=%u: %s is for one device", context->backend->devices,
                        o->rename ? "ACS_RENAME" : "ACS_CHECK=writes, reads or all");
    context->device_choice = calloc(1, sizeof *context->device_choice);
    if (!context->device_choice)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for %u devices", context->backend->devices);
    context->device_choice->count = context->backend->devices;
    acs_context_add_mode(context, ACS_MODE_DEVICES);
    ACS_TRY(open_topology(context));
    acs_placement_init(&context->device_choice->placement, &context->device_choice->topology, o->policy);
    return ACS_OK;
}

void acs_device_choice_close(acs_context *context)
{
    acs_device_choice *s = context->device_choice;
    if (!s)
        return;
    for (uint32_t d = 0; d < s->count; d++)
        acs_log(ACS_LOG_DEBUG, "device %u: %llu ops", d, (unsigned long long)s->placed[d]);
    free(s->parts);
    free(s->failed);
    free(s);
    context->device_choice = NULL;
}

/* ----------------------------------------------------------------------------------------------------------- memory */

uint32_t acs_device_choice_place(acs_context *context, uint64_t address)
{
    const uint32_t host = context->device_choice->count;
    acs_backend *backend = context->backend;
    acs_block block;
    if (acs_memory_find(context->memory, address, &block) == ACS_PLACE_BLOCK)
        return acs_memory_is_device(block.kind) ? acs_memory_device(block.kind) : host;
    return backend->ops->memory_device ? backend->ops->memory_device(backend, address) : host;
}

acs_status acs_device_choice_restrict(const acs_draft *draft, acs_device_choice_op *op, uint32_t device,
                                      uint32_t segment)
{
    const acs_topology *t = &draft->context->device_choice->topology;
    const bool copy = draft->record->kind == ACS_KIND_MEMCPY; /* the driver copies between any devices */
    acs_place_set reach = 0;
    for (uint32_t d = 0; d < t->count; d++)
        reach |= d == device || copy || t->links[d][device].peer ? 1u << d : 0;
    reach &= op->op.allowed;
    /* The device of the memory itself, if that is allowed. */
    if (reach >> device & 1)
        reach = 1u << device;
    if (!reach)
        return ACS_FAIL(
            ACS_ERR_UNSUPPORTED, 0,
            "'%s': segment %u is memory of device %u, which no device reaches that has the memory of the op's "
            "other segments: ACS_RELOCATABLE blocks can be anywhere",
            acs_draft_name(draft), segment, device);
    op->op.allowed = reach;
    return ACS_OK;
}

void acs_device_choice_reads(acs_device_choice_op *op, uint32_t others, uint64_t bytes, acs_place_set places)
{
    for (uint32_t i = others; i < op->op.read_count; i++)
        if (op->reads[i].places == places) {
            op->reads[i].bytes += bytes;
            return;
        }
    if (op->op.read_count < TUNE_DEVICE_READS)
        op->reads[op->op.read_count++] = (acs_placement_read){bytes, places};
}

/* ----------------------------------------------------------------------------------------------------------- choose */

void acs_device_choice_queued(acs_context *context, acs_op op)
{
    acs_device_choice *s = context->device_choice;
    s->ends[op % TUNE_DEVICE_ENDS] = (acs_expected_end){op, s->idles, s->end};
}

void acs_device_choice_waited(acs_context *context, acs_op op)
{
    acs_device_choice *s = context->device_choice;
    if (s) /* relaxed: a hint; either of two threads' values will do */
        atomic_store_explicit(&s->waited, op, memory_order_relaxed);
}

/*
 * Tell the placement of waits. A thread that waited for an op has seen all earlier ops end, and `ended` may tell so
 * late. A device that had much to do before would else seem busy, and later ops would go elsewhere.
 */
static void look_at_waits(acs_device_choice *s)
{
    /* Relaxed: a hint, see acs_device_choice_waited. */
    const acs_op waited = atomic_load_explicit(&s->waited, memory_order_relaxed);
    const acs_expected_end *e = &s->ends[waited % TUNE_DEVICE_ENDS];
    if (waited != s->seen && e->op == waited && e->idles == s->idles)
        acs_placement_seen(&s->placement, e->end);
    s->seen = waited;
}

void acs_device_choice_refresh(acs_device_choice *s)
{
    uint64_t running = 0;
    look_at_waits(s);
    for (uint32_t d = 0; d < s->count; d++) {
        /* Relaxed: a counter, which may lag a little. */
        uint64_t ended = atomic_load_explicit(&s->ended[d], memory_order_relaxed);
        s->placement.running[d] = (uint32_t)(s->placed[d] - ended);
        running += s->placement.running[d];
    }
    if (running == 0) {
        acs_placement_idle(&s->placement);
        s->idles++;
    }
}

void acs_device_choice_add(acs_context *context, acs_record *record, uint32_t device)
{
    context->device_choice->placed[device]++;
    record->device = (uint16_t)device;
    record->flags |= ACS_RECORD_PLACED;
}

void acs_device_choice_drop(acs_context *context, acs_record *record)
{
    if (!(record->flags & ACS_RECORD_PLACED))
        return; /* not counted, so the lock need not be held */
    context->device_choice->placed[record->device]--;
    record->flags &= (uint8_t)~ACS_RECORD_PLACED;
}

static void note_failed(acs_device_choice *s, const acs_record *record)
{
    const acs_segment *to = &record->segments[1]; /* see acs_relocatable_copy_part */
    if (s->failed_count == TUNE_FAILED_COPIES || !ACS_GROW(s->failed, s->failed_room, s->failed_count + 1)) {
        acs_log(ACS_LOG_WARN, "a copy of a block that moves failed after %u others: its bytes are undefined",
                s->failed_count);
        return;
    }
    s->failed[s->failed_count++] = (acs_failed_copy){
        record->carried.block, {record->carried.first, {to->row_bytes, (uint32_t)to->rows, to->pitch_bytes}},
        record->carried.place};
}

void acs_device_choice_ended(acs_context *context, const acs_record *record, acs_status status)
{
    if (record->flags & ACS_RECORD_PLACED) /* relaxed: a counter */
        atomic_fetch_add_explicit(&context->device_choice->ended[record->device], 1, memory_order_relaxed);
    if (ACS_UNLIKELY(status != ACS_OK) && (record->flags & ACS_RECORD_PROPAGATES))
        note_failed(context->device_choice, record);
}

uint32_t acs_device_choice_take_failed(acs_context *context, acs_failed_copy **copies)
{
    acs_device_choice *s = context->device_choice;
    ACS_HOLD(&context->core.lock);
    const uint32_t count = s->failed_count;
    *copies = s->failed;
    s->failed = NULL;
    s->failed_count = s->failed_room = 0;
    return count;
}

uint32_t acs_device_choice_choose(const acs_draft *draft, acs_device_choice_op *op)
{
    acs_device_choice *s = draft->context->device_choice;
    uint32_t on = draft->on ? draft->on : acs_device_choice_hint(draft->context);
    if (on && on <= s->count && (op->op.allowed >> (on - 1) & 1))
        op->op.allowed = 1u << (on - 1);
    op->op.reads = op->reads;
    op->op.copies = draft->record->kind == ACS_KIND_MEMCPY;
    op->op.seconds = TUNE_DEVICE_OP_NS / 1e9 + (double)op->bytes / (TUNE_DEVICE_GB_S * 1e9);
    uint32_t device = acs_placement_choose(&s->placement, &op->op, &s->end);
    acs_device_choice_add(draft->context, draft->record, device);
    return device;
}

uint32_t acs_device_choice_nearest(const acs_context *context, acs_place_set places, uint32_t to, uint64_t bytes)
{
    const acs_topology *t = &context->device_choice->topology;
    uint32_t best = (uint32_t)__builtin_ctz(places);
    double least = acs_topology_seconds(t, best, to, bytes);
    for (acs_place_set left = places & (places - 1); left; left &= left - 1) {
        const uint32_t place = (uint32_t)__builtin_ctz(left);
        const double seconds = acs_topology_seconds(t, place, to, bytes);
        if (seconds < least) {
            best = place;
            least = seconds;
        }
    }
    return best;
}

/* ------------------------------------------------------------------------------------------------------------- hint */

uint32_t acs_device_choice_hint(const acs_context *context)
{
    return tl_on.context == context && tl_on.opened_ns == context->opened_ns ? tl_on.device : 0;
}

acs_status acs_on(acs_context *context, int device)
{
    ACS_ENTER(context);
    if (device < ACS_ANY_DEVICE || device >= (int)context->backend->devices)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_on: there is no device %d; the context has %u", device,
                        context->backend->devices);
    tl_on.context = context;
    tl_on.opened_ns = context->opened_ns;
    tl_on.device = (uint32_t)(device + 1);
    return ACS_OK;
}

int acs_devices(acs_context *context)
{
    context = acs_context_enter(context, __func__);
    return context ? (int)context->backend->devices : -1;
}

/* ------------------------------------------------------------------------------------------------------- statistics */

void acs_device_choice_count(acs_context *context, acs_statistics *s)
{
    if (!context->device_choice)
        return;
    s->transfers = atomic_load_explicit(&context->device_choice->transfers, memory_order_relaxed); /* relaxed: counters */
    s->transfer_bytes = atomic_load_explicit(&context->device_choice->transferred, memory_order_relaxed);
}

/* Report placed ops, with those of the library. The context closes, so no op is placed meanwhile. */
void acs_device_choice_report(acs_context *context, const acs_statistics *s)
{
    const acs_device_choice *choice = context->device_choice;
    if (!choice)
        return;
    char ops[ACS_DEVICES_MOST * 24];
    size_t used = 0;
    for (uint32_t d = 0; d < choice->count; d++)
        used += (size_t)snprintf(ops + used, sizeof ops - used, "%s%" PRIu64, d ? ", " : "", choice->placed[d]);
    fprintf(stderr, "acs: stats: ops by device: %s; %" PRIu64 " transfers of %" PRIu64 " bytes in all\n", ops, s->transfers,
            s->transfer_bytes);
}

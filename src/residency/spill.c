/*
 * Memory for the contents of relocatable blocks, and spilling where it is short (see spill.h): the contents of the block
 * that was named longest ago go to pinned host memory, or on several devices to their canonical place. The copies are
 * ops, and nothing waits for them. Called by lazy.c, by replica_acquire.c, and where acs_malloc or a group finds no
 * room.
 */
#include "residency/spill.h"

#include "residency/recycle.h"
#include "residency/replicas.h"
#include "residency/room.h"

static bool spill_locked(acs_context *context, uint32_t device);

/* ---------------------------------------------------------------------------------------------------- device memory */

/* Take memory without waiting: contents of other blocks are spilled until it fits. */
static acs_status find_at_once(acs_context *context, acs_memory_request request, acs_block *block)
{
    acs_status status;
    context->relocatables->short_of_wait = false;
    request.quiet = true;
    while ((status = acs_memory_take(context->memory, &request, block)) == ACS_NOT_READY)
        if (!spill_locked(context, acs_memory_device(request.kind)))
            break;
    if (status != ACS_NOT_READY)
        return status;
    if (!context->relocatables->short_of_wait &&
        !acs_memory_quarantined_until(context->memory, request.kind)) { /* nothing to wait for: the error says why */
        request.quiet = false;
        status = acs_memory_take(context->memory, &request, block);
    }
    return status != ACS_NOT_READY ? status
                                   : ACS_FAIL(ACS_ERR_FULL, 0, "%zu bytes of device memory would have to be waited for",
                                              request.bytes);
}

acs_status acs_spill_find_memory(acs_context *context, const acs_relocatable *m, int kind, acs_block *block)
{
    const acs_memory_request request = {.bytes = m->bytes, .kind = kind, .early = true, .site = m->site};
    acs_status status = context->relocatables->no_wait ? find_at_once(context, request, block)
                                                   : acs_room_find(context, request, spill_locked, block);
    if (status == ACS_OK)
        acs_context_kept(context, kind);
    return status;
}

/* ------------------------------------------------------------------------------------------------------ host memory */

/* Whether host copies have room for the block's. */
static bool has_host_room(const acs_relocatables *r, const acs_relocatable *m)
{
    return m->bytes <= r->host_most && r->host_bytes <= r->host_most - m->bytes;
}

static acs_status find_pinned(acs_context *context, const acs_relocatable *m, acs_block *block)
{
    const acs_memory_request request = {.bytes = m->bytes, .kind = ACS_MEMORY_HOST, .site = m->site};
    if (!context->relocatables->no_wait)
        return acs_room_find(context, request, NULL, block);
    acs_status status = acs_memory_take(context->memory, &request, block);
    return status != ACS_NOT_READY ? status
                                   : ACS_FAIL(ACS_ERR_FULL, 0, "%zu bytes of pinned memory would have to be waited for",
                                              request.bytes);
}

/* Take memory for the host copy, unless there is some already. */
static acs_status find_host_memory(acs_context *context, acs_relocatable *m)
{
    acs_relocatables *r = context->relocatables;
    acs_block block;
    if (m->host)
        return ACS_OK;
    if (m->bytes > r->host_most)
        return ACS_NOT_READY;
    for (acs_relocatable *o = r->first.next; o != &r->first && !has_host_room(r, m); o = o->next)
        if (o->lazy && o->at && !o->touched) /* its host copy would only save a later copy */
            acs_relocatable_drop_host(context, o, acs_fifo_last(context->core.fifo));
    if (!has_host_room(r, m))
        return ACS_NOT_READY; /* a smaller block may still fit */
    ACS_TRY(find_pinned(context, m, &block));
    m->host = (uint64_t)(uintptr_t)block.ptr;
    m->host_last = 0;
    r->host_bytes += m->bytes;
    return ACS_OK;
}

/* Drop host copies of blocks that are elsewhere, too, until the block's copy fits: they save a later copy at most. */
static void make_host_room(acs_context *context, const acs_relocatable *m)
{
    acs_relocatables *r = context->relocatables;
    const uint32_t host = context->device_choice->count;
    if (!has_host_room(r, m)) /* a host copy that failed is none */
        (void)acs_replicas_restore(context);
    for (acs_relocatable *o = r->first.next; o != &r->first && !has_host_room(r, m); o = o->next) {
        acs_validity sole;
        if (o->replicas->places[host].at && o->replicas->canonical != host && !o->touched && o != m &&
            !acs_coherence_sole(&o->replicas->valid, 0, host, &sole))
            acs_replicas_drop(context, o, host, o->replicas->places[host].last);
    }
}

static acs_status find_replica_host_memory(acs_context *context, const acs_relocatable *m, acs_block *block)
{
    make_host_room(context, m);
    if (!has_host_room(context->relocatables, m))
        return ACS_NOT_READY;
    ACS_TRY(find_pinned(context, m, block));
    context->relocatables->host_bytes += m->bytes;
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------------- one device */

/* Move the contents to the host copy. If no op has changed them since they came back, they are there already. */
acs_status acs_spill_move_out(acs_context *context, acs_relocatable *m)
{
    if (!m->host_valid && m->filled) {
        ACS_TRY(find_host_memory(context, m));
        ACS_TRY(acs_relocatable_begin_life(context, m, m->host, m->host_last));
        acs_op op = acs_relocatable_copy(context, m, m->host, m->at);
        if (!op)
            return acs_error_thread()->status;
        m->host_last = op;
        m->host_valid = true;
        atomic_fetch_add_explicit(&context->relocatables->spilled, m->bytes, memory_order_relaxed); /* relaxed: a counter */
    }
    acs_relocatable_drop(context, m, acs_fifo_last(context->core.fifo));
    return ACS_OK;
}

/* -------------------------------------------------------------------------------------------------- several devices */

acs_status acs_spill_find_memory_at(acs_context *context, acs_relocatable *m, uint32_t place)
{
    acs_replica *replica = &m->replicas->places[place];
    const bool host = place == context->device_choice->count;
    acs_block block;
    if (replica->at && (acs_coherence_any(&m->replicas->valid) >> place & 1))
        return ACS_OK;
    if (replica->at) /* its canonical place, where no byte is valid: former failures there do not count */
        return acs_relocatable_begin_life(context, m, replica->at, replica->last);
    ACS_TRY(host ? find_replica_host_memory(context, m, &block)
                 : acs_spill_find_memory(context, m, acs_memory_kind(place), &block));
    *replica = (acs_replica){.at = (uint64_t)(uintptr_t)block.ptr};
    acs_status status = acs_recycle_begin_life(context, &block);
    if (status != ACS_OK)
        acs_replicas_drop(context, m, place, 0);
    return status;
}

/* Copy what is valid on the device alone to the canonical place, or to a host copy; then drop the replica. */
static acs_status move_replica_out(acs_context *context, acs_relocatable *m, uint32_t device)
{
    struct acs_replicas *r = m->replicas;
    const uint32_t to = r->canonical == ACS_ANY_PLACE ? context->device_choice->count : r->canonical;
    acs_validity sole;
    uint64_t from = 0;
    /* Taking memory looks at failed copies, after which more may be valid there alone. */
    if (acs_coherence_sole(&r->valid, 0, device, &sole))
        ACS_TRY(acs_spill_find_memory_at(context, m, to));
    while (acs_coherence_sole(&r->valid, from, device, &sole)) {
        ACS_TRY(acs_replicas_copy(context, m, to, device, sole.from, sole.to));
        atomic_fetch_add_explicit(&context->relocatables->spilled, sole.to - sole.from,
                                  memory_order_relaxed); /* relaxed: a counter */
        from = sole.to;
    }
    acs_replicas_drop(context, m, device, r->places[device].last);
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------------------ spill */

/* Whether the block has memory on the device that it can do without. */
static bool can_leave(const acs_context *context, const acs_relocatable *m, uint32_t device)
{
    if (!context->device_choice)
        return m->lazy && m->at && !m->borrowed;
    const acs_replica *replica = &m->replicas->places[device];
    return replica->at && !replica->borrowed && m->replicas->canonical != device;
}

/* The block that was named longest ago, of those that the op does not name and that this search has not tried. */
static acs_relocatable *choose_victim(const acs_context *context, uint32_t device)
{
    const acs_relocatables *r = context->relocatables;
    acs_relocatable *best = NULL;
    for (acs_relocatable *m = r->first.next; m != &r->first; m = m->next)
        if (can_leave(context, m, device) && !m->touched && m->tried != r->tries && (!best || m->named < best->named))
            best = m;
    return best;
}

static bool spill_locked(acs_context *context, uint32_t device)
{
    acs_relocatables *r = context->relocatables;
    if (context->device_choice)
        (void)acs_replicas_restore(context); /* which copies failed has to be known before a copy goes */
    r->tries++;
    for (acs_relocatable *m; (m = choose_victim(context, device)) != NULL;) {
        m->tried = r->tries;
        const acs_status status =
            context->device_choice ? move_replica_out(context, m, device) : acs_spill_move_out(context, m);
        if (status == ACS_OK)
            return true;
        r->short_of_wait |= status == ACS_ERR_FULL;
    }
    return false;
}

bool acs_spill(acs_context *context, uint32_t device)
{
    if (acs_relocatables_none(context))
        return false;
    ACS_HOLD_BLOCKS(context);
    return spill_locked(context, device);
}

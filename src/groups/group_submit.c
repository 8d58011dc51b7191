/*
 * acs_group_submit: plan the memory of a group, reserve it at once, and queue the group's ops (see group.h). Called by
 * the thread that holds the group. Until everything is reserved only idle memory changes, so the group can be submitted
 * again.
 */
#include "groups/group_internal.h"
#include "api/draft.h"
#include "api/failures.h"

#include "base/tuning.h"
#include "debug/debug_options.h"
#include "groups/admission.h"
#include "groups/group_schedule.h"
#include "residency/naming.h"
#include "residency/recycle.h"
#include "residency/replicas.h"
#include "residency/room.h"
#include "residency/spill.h"

#include <stdlib.h>
#include <string.h>

enum { NOT_PLANNED = -1 };

typedef struct submission {
    acs_group *group;
    acs_context *context;
    acs_op_sets before;
    acs_liveness plan;
    acs_relocatable **relocatables; /* the relocatable block of each block of the plan */
    uint32_t *users;        /* users of all blocks, block after block */
    bool *soon;
    uint64_t outside;       /* most bytes of lazy blocks outside of the plan that one op names */
    acs_scheduled_group place; /* device and ticket of the group */
    acs_block memory;       /* memory for the plan's blocks; without bytes: none is reserved */
    bool *borrowed;         /* whether each block has its memory */
    uint64_t queued;
    acs_group_report report;
} submission;

static void free_submission(submission *s)
{
    acs_op_sets_destroy(&s->before);
    free(s->plan.blocks);
    free(s->plan.order);
    free(s->relocatables);
    free(s->users);
    free(s->soon);
    free(s->borrowed);
}

/* ------------------------------------------------------------------------------------------------------------- plan */

/* The relocatable block of the plan that holds the address, or NULL. */
static acs_relocatable *planned_around(const submission *s, uint64_t address)
{
    acs_relocatable *m = s->plan.block_count ? acs_relocatable_at(s->context, address) : NULL;
    return m && m->group == s->group->number && m->planned != NOT_PLANNED ? m : NULL;
}

/* The relocatable block of the plan in which the segment begins, or NULL. */
static acs_relocatable *planned_at(const submission *s, const acs_segment *segment)
{
    return acs_segment_has_bytes(segment) ? planned_around(s, segment->base) : NULL;
}

/* Whether the block was made and freed in the group, and has no contents yet. */
static bool can_be_planned(const submission *s, const acs_relocatable *m)
{
    return m->group == s->group->number && m->dying && !m->at && !m->host_valid && !acs_replicas_used(m);
}

/* Most ways in which the op can reach blocks: its segments, and pointers that may touch any memory. */
static uint64_t ways_of(const acs_record *op)
{
    acs_pointer_walk walk = {0};
    uint64_t count = op->segment_count;
    for (uint64_t address; acs_naming_is_any(op) && acs_naming_next_pointer(op, &walk, &address);)
        count++;
    return count;
}

/*
 * List the blocks that are made and freed in the group, and allocate room for their users: as many as there are ways to
 * reach blocks.
 */
static acs_status find_blocks(submission *s)
{
    const acs_relocatables *r = s->context->relocatables;
    uint64_t ways = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->group->count; i++)
        ways += ways_of(s->group->ops[i]);
    for (const acs_relocatable *m = r ? r->first.next : NULL; m && m != &r->first; m = m->next)
        count += can_be_planned(s, m) && count < TUNE_GROUP_PLAN_BLOCKS;
    s->plan.blocks = calloc((size_t)count + 1, sizeof *s->plan.blocks);
    s->relocatables = calloc((size_t)count + 1, sizeof(acs_relocatable *));
    s->borrowed = calloc((size_t)count + 1, sizeof *s->borrowed);
    s->users = calloc(ways + 1, sizeof *s->users);
    if (!s->plan.blocks || !s->relocatables || !s->borrowed || !s->users)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the plan of %u blocks", count);
    for (acs_relocatable *m = r ? r->first.next : NULL; m && m != &r->first; m = m->next) {
        m->planned = NOT_PLANNED;
        if (!can_be_planned(s, m) || s->plan.block_count == count)
            continue;
        m->planned = (int32_t)s->plan.block_count;
        s->relocatables[s->plan.block_count] = m;
        s->plan.blocks[s->plan.block_count++].bytes = m->bytes;
    }
    return ACS_OK;
}

/* Count the op as a user of the block; `put`: also store it, once. NULL: there is no block. */
static void add_user(submission *s, const acs_relocatable *m, uint32_t op, bool put)
{
    if (!m)
        return;
    acs_live_block *block = &s->plan.blocks[m->planned];
    uint32_t *users = s->users + (block->users - s->users); /* the same array, writable */
    if (put && block->user_count && users[block->user_count - 1] == op)
        return;
    if (put)
        users[block->user_count] = op;
    block->user_count++;
}

/*
 * Count or store the users of all blocks. An op that may touch any memory uses the blocks that its pointers reach: it
 * can reach lazy blocks in no other way.
 */
static void walk_users(submission *s, bool put)
{
    for (uint32_t i = 0; i < s->group->count; i++) {
        const acs_record *op = s->group->ops[i];
        acs_pointer_walk walk = {0};
        for (uint32_t k = 0; k < op->segment_count; k++)
            add_user(s, planned_at(s, &op->segments[k]), i, put);
        for (uint64_t address; acs_naming_is_any(op) && acs_naming_next_pointer(op, &walk, &address);)
            add_user(s, planned_around(s, address), i, put);
    }
}

static void find_users(submission *s)
{
    uint32_t used = 0;
    for (uint32_t b = 0; b < s->plan.block_count; b++)
        s->plan.blocks[b].users = s->users;
    walk_users(s, false);
    for (uint32_t b = 0; b < s->plan.block_count; b++) {
        s->plan.blocks[b].users = s->users + used;
        used += s->plan.blocks[b].user_count;
        s->plan.blocks[b].user_count = 0;
    }
    walk_users(s, true);
    uint32_t kept = 0; /* a block without users needs no memory, and leaves the plan */
    for (uint32_t b = 0; b < s->plan.block_count; b++)
        if (s->plan.blocks[b].user_count) {
            s->plan.blocks[kept] = s->plan.blocks[b];
            s->relocatables[kept] = s->relocatables[b];
            s->relocatables[kept]->planned = (int32_t)kept;
            kept++;
        }
    s->plan.block_count = kept;
}

/* Copies out of the plan's blocks go early: they are often the last users of their block. */
static void find_soon(submission *s)
{
    for (uint32_t i = 0; i < s->group->count; i++) {
        const acs_record *op = s->group->ops[i];
        s->soon[i] = op->kind == ACS_KIND_MEMCPY && planned_at(s, &op->segments[0]) && !planned_at(s, &op->segments[1]);
    }
}

/* Bytes of the lazy block around the address, if the block is not in the plan and was not counted in this turn. */
static uint64_t bytes_outside(const submission *s, uint64_t address, uint64_t turn)
{
    acs_relocatable *m = acs_relocatable_at(s->context, address);
    if (!m || !m->lazy || planned_around(s, address) || m->naming.turn == turn)
        return 0;
    m->naming = (acs_naming){.turn = turn};
    return m->bytes;
}

/* Bytes of lazy blocks outside of the plan that the op reaches. */
static uint64_t outside_bytes(const submission *s, const acs_record *op)
{
    const uint64_t turn = ++s->context->relocatables->namings;
    acs_pointer_walk walk = {0};
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < op->segment_count; k++)
        bytes += acs_segment_has_bytes(&op->segments[k]) ? bytes_outside(s, op->segments[k].base, turn) : 0;
    for (uint64_t address; acs_naming_is_any(op) && acs_naming_next_pointer(op, &walk, &address);)
        bytes += bytes_outside(s, address, turn);
    return bytes;
}

static void find_outside(submission *s)
{
    for (uint32_t i = 0; i < s->group->count; i++) {
        uint64_t bytes = acs_context_addresses(s->context) ? outside_bytes(s, s->group->ops[i]) : 0;
        s->outside = bytes > s->outside ? bytes : s->outside;
    }
}

static acs_status make_plan(submission *s, uint32_t slots)
{
    const uint32_t count = s->group->count;
    ACS_TRY(acs_op_sets_create(&s->before, count, count));
    ACS_TRY(acs_footprints_order(s->group->ops, count, &s->before));
    s->soon = calloc((size_t)count + 1, sizeof *s->soon);
    s->plan.order = calloc(2 * (size_t)count + 1, sizeof *s->plan.order);
    if (!s->soon || !s->plan.order)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the plan of %u ops", count);
    s->plan.slot = s->plan.order + count;
    if (s->context->relocatables)
        acs_relocatables_enter(s->context);
    acs_status status = find_blocks(s);
    if (status == ACS_OK) {
        find_users(s);
        find_soon(s);
        find_outside(s);
    }
    if (s->context->relocatables)
        acs_relocatables_leave(s->context);
    s->plan.before = &s->before;
    s->plan.soon = s->soon;
    s->plan.slots = slots;
    return status == ACS_OK ? acs_liveness_plan(&s->plan) : status;
}

/* ----------------------------------------------------------------------------------------------------------- report */

/* The product, or the largest number if it is larger than that. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t product(acs_dim3 d)
{
    return times(times(d.x, d.y), d.z);
}

/* Resources of a kernel while all of its thread blocks run at once. */
typedef struct needs {
    uint64_t threads, shared, registers;
} needs;

static needs needs_of(acs_backend *backend, const acs_record *op)
{
    const uint64_t blocks = product(op->grid), threads = times(blocks, product(op->u.launch.block));
    uint32_t registers = 0, shared = 0;
    if (backend->ops->needs)
        backend->ops->needs(backend, op, &registers, &shared);
    return (needs){threads, times(blocks, (uint64_t)op->u.launch.shared_bytes + shared), times(threads, registers)};
}

/*
 * HuntKTm, section 5.3: kernels of a slot run one after the other, so a slot takes the most that one of them needs.
 * Slots run at once, so their needs add up.
 */
static acs_status count_needs(submission *s)
{
    const uint32_t count = s->group->count;
    needs *most = calloc((size_t)count + 1, sizeof *most);
    if (!most)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the report of %u ops", count);
    for (uint32_t i = 0; i < count; i++) {
        const acs_record *op = s->group->ops[i];
        uint32_t slot = s->plan.slot[i];
        s->report.slots = acs_max(s->report.slots, slot + 1);
        if (op->kind != ACS_KIND_KERNEL)
            continue;
        const needs n = needs_of(s->context->backend, op);
        most[slot] = (needs){acs_max(most[slot].threads, n.threads), acs_max(most[slot].shared, n.shared),
                             acs_max(most[slot].registers, n.registers)};
    }
    for (uint32_t slot = 0; slot < s->report.slots; slot++) {
        s->report.threads += most[slot].threads;
        s->report.shared_bytes += most[slot].shared;
        s->report.registers += most[slot].registers;
    }
    free(most);
    return ACS_OK;
}

static acs_status fill_report(submission *s)
{
    s->report.ops = s->group->count;
    s->report.blocks = s->plan.block_count;
    s->report.memory_sum = s->plan.sum;
    s->report.memory_bound = s->plan.bound;
    s->report.memory_peak = s->plan.peak;
    return count_needs(s);
}

static void hand_over(const submission *s, acs_group_report *report)
{
    if (!report)
        return;
    size_t size = report->size < sizeof s->report ? report->size : sizeof s->report;
    if (size < sizeof report->size)
        return; /* the caller did not set the size, so nothing can be written safely */
    memcpy(report, &s->report, size);
    report->size = size;
}

/* ------------------------------------------------------------------------------------------------------------ queue */

/* Give the group's memory back, behind its ops. */
static void give_back(submission *s)
{
    acs_block block;
    if (s->memory.bytes) /* it is a block: cannot fail */
        (void)acs_memory_free(s->context->memory, s->memory.ptr, acs_fifo_last(s->context->core.fifo), &block);
    s->memory.bytes = 0;
}

/* Refuse a group that needs more than any device has, before anything is waited for. */
static acs_status check_peak(const submission *s)
{
    const uint64_t limit = (uint64_t)s->context->options.memory_limit;
    if (limit && (s->plan.peak > limit || s->outside > limit - s->plan.peak))
        return ACS_FAIL(ACS_ERR_MEMORY, 0,
                        "a group of %u ops needs %llu bytes at once in %u slots, and %llu for other lazy blocks of an op: "
                        "ACS_MEMORY_LIMIT is %llu", s->group->count, (unsigned long long)s->plan.peak,
                        (unsigned)s->report.slots, (unsigned long long)s->outside, (unsigned long long)limit);
    if (s->context->group_schedule && s->plan.peak > acs_group_schedule_most(s->context))
        return ACS_FAIL(ACS_ERR_MEMORY, 0,
                        "a group of %u ops needs %llu bytes at once in %u slots: no device has more than %llu",
                        s->group->count, (unsigned long long)s->plan.peak, (unsigned)s->report.slots,
                        (unsigned long long)acs_group_schedule_most(s->context));
    return ACS_OK;
}

static acs_status reserve_memory(submission *s)
{
    static const acs_site site = {"acs_group_submit", NULL, 0};
    acs_context *context = s->context;
    const acs_memory_request request = {.bytes = s->plan.peak, .kind = acs_memory_kind(s->place.device), .early = true,
                                        .of_group = true, .site = &site};
    if (!s->plan.peak)
        return ACS_OK;
    acs_status status = ACS_NOT_READY;
    if (s->place.beside) {
        acs_memory_request of_its_own = request;
        of_its_own.early = false;
        of_its_own.beside = of_its_own.quiet = true;
        status = acs_memory_take(context->memory, &of_its_own, &s->memory);
    }
    if (status == ACS_NOT_READY)
        status = acs_room_find(context, request, acs_spill, &s->memory);
    if (status == ACS_ERR_MEMORY && acs_admission_on(context)) { /* the context has given up all that it can */
        uint32_t which;
        acs_admission_end(context); /* the bytes that were taken were not in one piece */
        ACS_TRY(acs_admission_wait(context, 1u << s->place.device, s->plan.peak, &which));
        status = acs_room_find(context, request, acs_spill, &s->memory);
    }
    if (status != ACS_OK)
        return status;
    status = acs_recycle_begin_life(context, &s->memory);
    if (status != ACS_OK)
        give_back(s);
    return status;
}

/* Give memory to the blocks that the op is the first to use, behind the former users of that memory. */
static acs_status give_blocks_memory(submission *s, uint32_t op)
{
    for (uint32_t b = 0; b < s->plan.block_count; b++) {
        const acs_live_block *block = &s->plan.blocks[b];
        bool uses = false;
        for (uint32_t i = 0; i < block->user_count && !s->borrowed[b]; i++)
            uses |= block->users[i] == op;
        if (!uses)
            continue;
        uint64_t at = (uint64_t)(uintptr_t)s->memory.ptr + block->offset;
        if (block->taken_over)
            ACS_TRY(acs_recycle_add(s->context, at, block->bytes));
        acs_relocatables_enter(s->context);
        if (can_be_planned(s, s->relocatables[b])) /* else another thread has used it meanwhile, and it has memory */
            acs_lazy_borrow(s->relocatables[b], s->place.device, at);
        acs_relocatables_leave(s->context);
        s->borrowed[b] = true;
    }
    return ACS_OK;
}

static acs_op queue_op(submission *s, const acs_record *held)
{
    acs_context *context = s->context;
    acs_backend *backend = context->backend;
    acs_draft draft = {
        .context = context, .site = held->site, .on = context->device_choice ? (uint8_t)(s->place.device + 1) : 0};
    if (!acs_draft_begin(&draft, held->kind))
        return 0;
    acs_status status = acs_record_copy(context->records, draft.record, held);
    if (status == ACS_OK)
        status = acs_draft_bind(&draft);
    if (status == ACS_OK && held->kind == ACS_KIND_KERNEL)
        /* Checked again: what the backend knows of arguments may have changed. */
        status = backend->ops->check(backend, draft.record);
    if (status == ACS_OK && backend->ops->adapt && (held->kind == ACS_KIND_MEMCPY || held->kind == ACS_KIND_MEMSET))
        backend->ops->adapt(backend, draft.record);
    return status == ACS_OK ? acs_draft_queue(&draft) : acs_draft_drop(&draft);
}

static acs_status queue_ops(submission *s)
{
    for (; s->queued < s->group->count; s->queued++) {
        uint32_t op = s->plan.order[s->queued];
        ACS_TRY(give_blocks_memory(s, op));
        acs_op number = queue_op(s, s->group->ops[op]);
        if (!number)
            return acs_error_thread()->status;
        s->report.first = s->report.first ? s->report.first : number;
        s->report.last = number;
    }
    return ACS_OK;
}

/* End the group: free the blocks that were freed in it, and its memory, behind its ops. */
static void finish(submission *s)
{
    acs_group *group = s->group;
    acs_group_free_blocks(group);
    give_back(s);
    for (uint32_t i = 0; i < group->free_count; i++)
        (void)acs_free_op(s->context, group->frees[i].ptr, &(acs_op_params){group->frees[i].site, 0});
    acs_group_set_thread(group, acs_thread_number()); /* the thread that counts it in tl_open */
    acs_group_destroy(group);
}

/*
 * HuntKTm, Algorithm 1. There a task has as many queues to itself as its plan has streams. Here all groups share the
 * slots, and a plan's slots only tell how its memory is shared. So a group asks for one queue, which lets it proceed
 * beside others.
 */
static acs_status schedule(submission *s, uint32_t full)
{
    const acs_demand demand = {.threads = s->report.threads, .registers = s->report.registers,
                               .shared = s->report.shared_bytes, .memory = s->plan.peak, .queues = s->report.slots > 0};
    return acs_group_schedule_begin(s->context, &demand, full, &s->place);
}

/* Take a place and its memory on a device that is not `full`. On failure the group has no place. */
static acs_status take_place(submission *s, uint32_t full)
{
    acs_status status = s->context->group_schedule ? schedule(s, full) : ACS_OK;
    if (status == ACS_OK)
        status = reserve_memory(s);
    if (acs_admission_on(s->context))
        acs_admission_end(s->context);
    if (status == ACS_OK && s->place.ticket)
        acs_group_schedule_reserved(s->context, s->place.ticket);
    else if (s->place.ticket)
        acs_group_schedule_queued(s->context, s->place.ticket, 0);
    return status;
}

/*
 * Find a device with room for the group. A device may have enough bytes, but not in one piece; then other devices are
 * tried.
 */
static acs_status find_place(submission *s)
{
    const uint32_t all = (1u << s->context->backend->devices) - 1;
    const acs_error before = *acs_error_thread();
    uint32_t full = 0;
    acs_status status;
    do {
        status = take_place(s, full);
        full |= 1u << s->place.device;
    } while (status == ACS_ERR_MEMORY && s->place.ticket && full != all);
    if (status == ACS_OK)
        *acs_error_thread() = before; /* errors of devices that were tried before do not count */
    return status;
}

/*
 * Submit the group. ACS_ERR_MEMORY and ACS_ERR_STATE: it is held as before, and can be submitted again. Other errors are
 * an op's or the device's, and the group has ended.
 */
static acs_status submit(submission *s, uint32_t slots)
{
    acs_status status = make_plan(s, slots);
    if (status == ACS_OK)
        status = fill_report(s);
    if (status == ACS_OK)
        status = check_peak(s);
    acs_group_set_thread(s->group, 0);
    if (status == ACS_OK)
        status = find_place(s);
    if (status == ACS_ERR_MEMORY || status == ACS_ERR_STATE) { /* ACS_ERR_STATE: the ledger cannot be asked */
        acs_group_set_thread(s->group, acs_thread_number());
        return status;
    }
    if (status == ACS_ERR_DEVICE)
        acs_failures_lost(s->context);
    if (status == ACS_OK)
        status = queue_ops(s);
    const acs_error error = *acs_error_thread();
    if (s->place.ticket)
        acs_group_schedule_queued(s->context, s->place.ticket, s->report.last);
    finish(s);
    if (status == ACS_ERR_MEMORY)
        return ACS_FAIL(ACS_ERR_LAUNCH, error.native, "%llu of %llu ops of the group were queued, then: %s",
                        (unsigned long long)s->queued, (unsigned long long)s->report.ops, error.text);
    if (status != ACS_OK)
        *acs_error_thread() = error; /* the first error is reported */
    return status;
}

acs_status acs_group_submit(acs_context *context, const acs_group_params *params, acs_group_report *report)
{
    ACS_NOT_CANCELLED;
    ACS_ENTER(context);
    submission s = {.group = acs_group_on(context), .context = context};
    if (!s.group)
        return ACS_FAIL(ACS_ERR_STATE, 0, "this thread holds no group of the context");
    if (params && (params->size != sizeof *params || params->reserved))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_group_submit: size %zu instead of %zu, or a reserved field is %u",
                        params->size, sizeof *params, params->reserved);
    acs_status status = submit(&s, params ? params->slots : 0);
    hand_over(&s, report);
    free_submission(&s);
    return status;
}

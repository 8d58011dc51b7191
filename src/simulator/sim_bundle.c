/*
 * Bundles on the simulated machine: the rules of backend.h that the core must keep, faults by seed, and the issue
 * method. Called by sim_issue.c under the backend's lock; check() runs on the launching threads. Never lets time pass,
 * and leaves the issuing itself to sim_method.c.
 */
#include "simulator/sim_internal.h"

#include <stdlib.h>

/* ------------------------------------------------------------------------------------------------------------ types */

enum { TYPES_MOST = 256, REFUSED_ONE_IN = 8 };

/* The part of a launch that a node of a cached graph cannot change. */
typedef struct acs_sim_type {
    acs_host_body host;
    const void *function;
    acs_dim3 block;
    uint64_t shared_bytes;
} acs_sim_type;

static bool same_type(const acs_sim_type *type, const acs_record *op)
{
    const acs_dim3 *a = &type->block, *b = &op->u.launch.block;

    return type->host == op->u.launch.kernel.host && type->function == op->u.launch.kernel.function && a->x == b->x &&
           a->y == b->y && a->z == b->z && type->shared_bytes == op->u.launch.shared_bytes;
}

/*
 * The number of an op's type. Types are numbered in the order of first sight, so that a seed means the same in every
 * process. 0: there are too many.
 */
static uint32_t type_of(acs_sim_state *s, const acs_record *op)
{
    acs_sim_methods *methods = &s->methods;

    for (uint32_t i = 0; i < methods->type_count; i++)
        if (same_type(&methods->types[i], op))
            return i + 1;
    if (methods->type_count == TYPES_MOST)
        return 0;
    methods->types[methods->type_count] = (acs_sim_type){
        op->u.launch.kernel.host, op->u.launch.kernel.function, op->u.launch.block, op->u.launch.shared_bytes};
    return ++methods->type_count;
}

acs_status acs_sim_types_init(acs_sim_state *s)
{
    s->methods.types = calloc(TYPES_MOST, sizeof *s->methods.types);
    return s->methods.types ? ACS_OK : ACS_FAIL(ACS_ERR_MEMORY, 0, "sim backend: no memory for types of kernels");
}

acs_status acs_sim_check(acs_backend *backend, acs_record *op)
{
    acs_sim_state *s = acs_sim_state_of(backend);
    const acs_attributes *attributes = &op->u.launch.attributes;
    uint32_t type;

    ACS_TRY(acs_host_check(backend, op));
    if (op->kind != ACS_KIND_KERNEL || attributes->cooperative || attributes->cluster.x || attributes->share)
        return ACS_OK;
    acs_lock_acquire(&s->lock);
    type = type_of(s, op);
    acs_lock_release(&s->lock);
    /* Some kernels cannot be in bundles, so that programs have both kinds. */
    if (!s->by_seed || acs_hash64(type + s->salt) % REFUSED_ONE_IN)
        op->type = type;
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------------------ rules */

static uint32_t last_op(const acs_batch *batch)
{
    uint32_t last = batch->items_used;

    while (last > 0 && !batch->items[last - 1].op)
        last--;
    return last ? last - 1 : 0;
}

static bool edges_lead_back(const acs_batch *batch, uint32_t i)
{
    const acs_item *item = &batch->items[i];

    for (uint32_t e = 0; e < item->edge_count; e++)
        if (batch->edges[item->first_edge + e] >= i)
            return false;
    return true;
}

/* Check the core's rules. @return NULL, or the core's mistake. */
static const char *bundle_check(const acs_sim_state *s, const acs_batch *batch)
{
    const acs_item *first = &batch->items[0];
    uint64_t value = first->value;
    uint32_t last = last_op(batch);

    if (batch->items_used > s->base.bundle_most || !first->op || first->slot < 0)
        return "a bundle that is too large, or begins with no op";
    for (uint32_t i = 0; i < batch->items_used; i++) {
        const acs_item *item = &batch->items[i];
        if (!acs_sim_item_exists(s, batch, item))
            return "a slot or mark that does not exist";
        if (item->op && (item->op->kind != ACS_KIND_KERNEL || !item->op->type))
            return "an op in a bundle that cannot ride in one";
        if (item->slot != (item->op ? first->slot : -1) || (item->op && item->value != value++))
            return "an op in a bundle that has another slot, or no consecutive value";
        if ((i && (item->mark_count || item->wait_count)) || item->mark_after != (i == last))
            return "marks or waits inside a bundle";
        if (!edges_lead_back(batch, i))
            return "an edge in a bundle that does not lead back";
    }
    return NULL;
}

static void set_all(acs_batch *batch, acs_status status, int native, const char *text)
{
    for (uint32_t i = 0; i < batch->items_used; i++)
        acs_item_result(&batch->items[i], status, native, text);
}

static void lose_all(acs_sim_state *s, acs_batch *batch, int native, const char *text)
{
    for (uint32_t i = 0; i < batch->items_used; i++)
        acs_sim_lose(s, &batch->items[i], native, text);
}

/* ------------------------------------------------------------------------------------------------------------ issue */

/* Issue the ops of the batch by graphs. @return the method, or AUTO: refused. *wrong: as acs_sim_method_issue. */
static acs_issue_method issue_ops(acs_sim_state *s, acs_batch *batch, const char **wrong)
{
    acs_sim_bundle *bundle = acs_sim_bundle_take(s);
    acs_issue_method by = ACS_METHOD_AUTO;

    acs_dag_make(batch, &s->methods.dag);
    if (!bundle)
        return by;
    bundle->slot = (uint32_t)batch->items[0].slot;
    bundle->first = batch->items[0].value;
    bundle->ops = s->methods.dag.ops;
    if (acs_sim_due_reserve(s, bundle->ops) && acs_sim_work_reserve(s, bundle->ops) &&
        !acs_sim_fault_bundle(&s->faults, batch) && !acs_sim_fault(&s->faults, ACS_FAULT_METHOD))
        by = acs_sim_method_issue(s, batch, bundle, wrong);
    if (by == ACS_METHOD_AUTO)
        acs_sim_bundle_give(s, bundle);
    return by;
}

/* Issue the bundle or refuse it. @return NULL, or the mistake of the index of cached graphs. */
static const char *issue_bundle(acs_sim_state *s, acs_batch *batch)
{
    const char *wrong = NULL;
    const acs_issue_method by = issue_ops(s, batch, &wrong);

    if (acs_log_enabled(ACS_LOG_DEBUG))
        acs_log(ACS_LOG_DEBUG, "sim: a bundle of %u ops, slot %u, values from %llu: %s", s->methods.dag.ops,
                (unsigned)batch->items[0].slot, (unsigned long long)batch->items[0].value, acs_sim_method_name(by));
    if (by == ACS_METHOD_AUTO) {
        acs_bundle_refuse(batch);
        return wrong;
    }
    batch->method = (uint8_t)by;
    set_all(batch, ACS_OK, 0, NULL);
    return wrong;
}

bool acs_sim_replay(acs_sim_state *s, acs_replay *replay, const acs_item *item)
{
    acs_batch *batch = &s->methods.replay;
    const char *wrong = NULL;

    if (!acs_replay_batch(replay, item->slot, item->value, false, batch))
        return false;
    batch->method = ACS_METHOD_REPLAY;
    return issue_ops(s, batch, &wrong) != ACS_METHOD_AUTO;
}

/* Marks, waits and values take effect even if the bundle is refused, since the core's clocks count on them. */
void acs_sim_submit_bundle(acs_sim_state *s, acs_batch *batch)
{
    const char *wrong = bundle_check(s, batch), *next;
    uint32_t last = last_op(batch);

    if (wrong) { /* no part of it can be relied on */
        set_all(batch, ACS_ERR_INTERNAL, 0, wrong);
        return;
    }
    if (acs_sim_send(s, batch, &batch->items[0], false) == ACS_ISSUE_LATER) {
        acs_sim_send_mark(s, &batch->items[last].after);
        acs_bundle_refuse(batch);
        return;
    }
    wrong = acs_sim_take_value(s, &batch->items[0]);
    s->slot[batch->items[0].slot].value = batch->items[last].value;
    if (!wrong)
        wrong = issue_bundle(s, batch);
    next = acs_sim_record_mark(s, &batch->items[last].after);
    acs_issue_queue_record(s->base.queue, &batch->items[last].after);
    wrong = wrong ? wrong : next;
    if (wrong)
        set_all(batch, ACS_ERR_INTERNAL, 0, wrong);
    if (acs_sim_fault(&s->faults, ACS_FAULT_EVENT))
        lose_all(s, batch, ACS_SIM_NATIVE_EVENT, "injected: an event could not be recorded");
    if (acs_sim_failed(s->machine))
        lose_all(s, batch, 0, "no memory for the simulated machine");
}

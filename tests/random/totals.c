/*
 * What all runs of random programs did together: whether the programs put to the test what they are for. Called by runner.c
 * when a program has ended.
 */
#include "program.h"

#include "backend/sim.h"
#include "runtime/movable.h"
#include "runtime/spread.h"

#include <inttypes.h>

_Static_assert(RANDOM_FAULTS == (int)ACS_FAULT_KINDS, "a place for each kind of fault");
void totals_add(random_totals *totals, acs_context *context, const program *p, verdict *v)
{
    acs_statistics st = {.size = sizeof st};
    if (acs_stats(context, &st) != ACS_OK || st.queued != st.retired) {
        verdict_fail(v, "statistics at the end: queued %" PRIu64 ", retired %" PRIu64, st.queued, st.retired);
        return;
    }
    totals->edges += st.edges;
    totals->joins += st.joins;
    totals->same_slot += st.same_slot;
    totals->waits_sent += st.waits_sent;
    totals->waits_implied += st.waits_implied;
    totals->waits_complete += st.waits_complete;
    totals->caller_waits += st.caller_waits;
    totals->barriers += st.barriers;
    totals->bundles += st.bundles;
    totals->bundles_refused += st.bundles_refused;
    totals->copies_as_kernels += st.copies_as_kernels;
    for (int i = 0; i < ACS_ISSUE_COUNT; i++)
        totals->issued_by[i] += st.issued_by[i];
    totals->many_slots += st.slots_used > 4;
    totals->transfers += st.transfers;
    totals->spilled += st.memory_spilled;
    totals->programs++;
    totals->lost += p->lost.status != ACS_OK;
    for (int kind = 0; kind < ACS_FAULT_KINDS && p->config.options.backend == ACS_BACKEND_SIM; kind++)
        totals->faults[kind] += acs_sim_backend_faults(context->backend)[kind];
}

void totals_check(acs_context *context, verdict *v)
{
    acs_statistics st = {.size = sizeof st};
    (void)acs_sync(context);
    if (acs_stats(context, &st) != ACS_OK || st.memory_live)
        verdict_fail(v, "%" PRIu64 " bytes of device memory are in use when all was freed", st.memory_live);
    if (context->movables->host_bytes || context->movables->version_bytes)
        verdict_fail(v, "%" PRIu64 " bytes of host copies and %" PRIu64 " of versions when all was freed",
                     context->movables->host_bytes, context->movables->version_bytes);
    for (uint32_t d = 0; context->spread && d < context->spread->count; d++) {
        uint64_t ended = atomic_load_explicit(&context->spread->ended[d], memory_order_relaxed); /* nothing runs */
        if (context->spread->placed[d] != ended)
            verdict_fail(v, "device %u was given %" PRIu64 " ops, of which %" PRIu64 " ended", d,
                         context->spread->placed[d], ended);
    }
    if (context->spread && context->spread->bytes)
        verdict_fail(v, "%" PRIu64 " bytes are anywhere when all was freed", context->spread->bytes);
}

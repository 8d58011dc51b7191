/*
 * What all runs of random programs did together: whether the programs put to the test what they are for. Called by runner.c
 * when a program has ended.
 */
#include "program.h"
#include "checker.h"

#include "simulator/sim.h"
#include "api/context.h"

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
    totals->replays += st.replays;
    totals->replayed += st.replayed;
    totals->copies_as_kernels += st.copies_as_kernels;
    totals->calls_as_kernels += st.calls_as_kernels;
    for (int i = 0; i < ACS_ISSUE_COUNT; i++)
        totals->issued_by[i] += st.issued_by[i];
    totals->shares += st.shares;
    totals->shares_ignored += st.shares_ignored;
    totals->many_slots += st.slots_used > 4;
    totals->transfers += st.transfers;
    totals->spilled += st.memory_spilled;
    totals->programs++;
    totals->lost += p->lost.status != ACS_OK;
    for (int kind = 0; kind < ACS_FAULT_KINDS && p->config.options.backend == ACS_BACKEND_SIM; kind++)
        totals->faults[kind] += acs_sim_backend_faults(context->backend)[kind];
}

void totals_check(random_totals *totals, checker *record, const program *p, verdict *v)
{
    const uint32_t devices = p->config.options.devices > 1 ? (uint32_t)p->config.options.devices : 1;
    const uint32_t slots = acs_backend_slots((uint32_t)p->config.options.streams, devices);
    checker_report report = {0};
    if (record && !v->failed && p->lost.status == ACS_OK && !checker_verify(record, slots, &report)) {
        verdict_fail(v, "checker: %s", report.text);
        if (p->config.verbose)
            checker_dump(record);
    }
    totals->checked += record != NULL;
    totals->checked_pairs += report.pairs;
    totals->checked_waits += report.waits;
    totals->late_marks += report.late_marks;
    totals->stale_waits += report.stale_waits;
}

/*
 * Policies (see placement.h). Called for each op that may run on more than one device, by one thread at a time. Knows of
 * an op only what it reads, and of a device only its links and the ops that it was given.
 */
#include "devices/placement.h"

#include "base/tuning.h"

#include <float.h>
#include <string.h>

void acs_placement_init(acs_placement *p, const acs_topology *topology, acs_policy policy)
{
    *p = (acs_placement){.topology = topology, .policy = policy};
}

void acs_placement_idle(acs_placement *p)
{
    memset(p->free_at, 0, sizeof p->free_at);
    memset(p->in_free_at, 0, sizeof p->in_free_at);
    memset(p->running, 0, sizeof p->running);
}

void acs_placement_seen(acs_placement *p, double end)
{
    for (uint32_t d = 0; d < p->topology->count; d++) {
        p->free_at[d] = p->free_at[d] > end ? p->free_at[d] : end;
        for (int way = 0; way < ACS_WAYS; way++)
            p->in_free_at[d][way] = p->in_free_at[d][way] > end ? p->in_free_at[d][way] : end;
    }
}

static acs_place_set bit_of(uint32_t place)
{
    return UINT32_C(1) << place;
}

/* -------------------------------------------------------------------------------------------------- what has to come */

/* Seconds of copies by each way: each read from the fastest place that has it, or the slowest. */
static void transfer_by(const acs_topology *t, const acs_placement_op *op, uint32_t device, bool slowest,
                        double by[ACS_WAYS])
{
    memset(by, 0, ACS_WAYS * sizeof *by);
    for (uint32_t i = 0; i < op->read_count; i++) {
        const acs_placement_read *r = &op->reads[i];
        double chosen = -1;
        uint32_t from = 0;
        if (r->places & bit_of(device))
            continue;
        for (acs_place_set left = r->places; left; left &= left - 1) {
            const uint32_t place = (uint32_t)__builtin_ctz(left);
            const double seconds = acs_topology_seconds(t, place, device, r->bytes);
            if (chosen >= 0 && !(slowest ? seconds > chosen : seconds < chosen))
                continue;
            chosen = seconds;
            from = place;
        }
        by[from == t->count ? ACS_WAY_HOST : ACS_WAY_PEERS] += chosen > 0 ? chosen : 0;
    }
}

double acs_placement_transfer(const acs_topology *t, const acs_placement_op *op, uint32_t device, bool slowest)
{
    double by[ACS_WAYS];
    transfer_by(t, op, device, slowest, by);
    return by[ACS_WAY_HOST] + by[ACS_WAY_PEERS];
}

static uint64_t missing_bytes(const acs_placement_op *op, uint32_t device)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < op->read_count; i++)
        sum += op->reads[i].places && !(op->reads[i].places & bit_of(device)) ? op->reads[i].bytes : 0;
    return sum;
}

/*
 * GrCUDA's exploration: a device with less than TUNE_PLACEMENT_SHARE of the bytes counts as having none, so that not all
 * ops go where the first one went.
 */
static bool has_enough(const acs_placement_op *op, uint32_t device)
{
    uint64_t held = 0, all = 0;
    for (uint32_t i = 0; i < op->read_count; i++) {
        all += op->reads[i].bytes;
        held += op->reads[i].places & bit_of(device) ? op->reads[i].bytes : 0;
    }
    return held > 0 && (double)held >= TUNE_PLACEMENT_SHARE / 100.0 * (double)all;
}

/* ----------------------------------------------------------------------------------------------------------- policies */

/* The first of the candidates from the device on whose turn it is. */
static uint32_t in_turn(acs_placement *p, acs_place_set candidates)
{
    for (uint32_t i = 0; i < p->topology->count; i++) {
        const uint32_t device = (p->next + i) % p->topology->count;
        if (!(candidates & bit_of(device)))
            continue;
        p->next = (device + 1) % p->topology->count;
        return device;
    }
    return (uint32_t)__builtin_ctz(candidates); /* never: candidates are devices of the topology */
}

/* The candidates whose figure is at most `slack` above the least one. */
static acs_place_set least_of(acs_place_set candidates, const double figures[ACS_DEVICES_MOST], double slack)
{
    acs_place_set best = 0;
    double least = DBL_MAX;
    for (acs_place_set left = candidates; left; left &= left - 1)
        least = figures[__builtin_ctz(left)] < least ? figures[__builtin_ctz(left)] : least;
    for (acs_place_set left = candidates; left; left &= left - 1)
        best |= figures[__builtin_ctz(left)] <= least + slack ? left & -left : 0;
    return best;
}

/* Of the devices that have enough of the bytes, those with the least to copy; if none has, all candidates. */
static acs_place_set nearest_of(const acs_placement *p, const acs_placement_op *op, acs_place_set candidates)
{
    double figures[ACS_DEVICES_MOST];
    acs_place_set enough = 0;
    for (acs_place_set left = candidates; left; left &= left - 1) {
        const uint32_t device = (uint32_t)__builtin_ctz(left);
        enough |= has_enough(op, device) ? bit_of(device) : 0;
        figures[device] = p->policy == ACS_POLICY_MIN_TRANSFER_SIZE
                              ? (double)missing_bytes(op, device)
                              : acs_placement_transfer(p->topology, op, device, true);
    }
    return enough ? least_of(enough, figures, 0) : candidates;
}

static double seconds_of(const acs_placement *p, const acs_placement_op *op)
{
    return op->seconds > 0 ? op->seconds : p->guess;
}

/* When all that the op reads is on the device; in_free_at: when each way is free again then. */
static double there_on(const acs_placement *p, const acs_placement_op *op, uint32_t device, double in_free_at[ACS_WAYS])
{
    double by[ACS_WAYS], there = op->ready;
    transfer_by(p->topology, op, device, false, by);
    for (int way = 0; way < ACS_WAYS; way++) {
        in_free_at[way] = p->in_free_at[device][way];
        if (by[way] <= 0)
            continue;
        in_free_at[way] = (in_free_at[way] > op->ready ? in_free_at[way] : op->ready) + by[way];
        there = in_free_at[way] > there ? in_free_at[way] : there;
    }
    return there;
}

/* When the op ends on the device. Copies proceed while the device works on other ops. */
static double end_on(const acs_placement *p, const acs_placement_op *op, uint32_t device)
{
    double in_free_at[ACS_WAYS];
    const double there = there_on(p, op, device, in_free_at);
    if (op->copies)
        return there;
    return (there > p->free_at[device] ? there : p->free_at[device]) + seconds_of(p, op);
}

/*
 * The devices where the op ends first. A transfer counts twice: even if it does not delay this op, other ops may want
 * the way, and later ones the bytes where they were.
 */
static acs_place_set earliest_of(const acs_placement *p, const acs_placement_op *op, acs_place_set candidates)
{
    double ends[ACS_DEVICES_MOST], bytes[ACS_DEVICES_MOST];
    for (acs_place_set left = candidates; left; left &= left - 1) {
        const uint32_t device = (uint32_t)__builtin_ctz(left);
        ends[device] = end_on(p, op, device) + acs_placement_transfer(p->topology, op, device, false);
        bytes[device] = (double)missing_bytes(op, device);
    }
    return least_of(least_of(candidates, ends, TUNE_PLACEMENT_ALIKE_US / 1e6), bytes, 0);
}

static acs_place_set best_of(const acs_placement *p, const acs_placement_op *op, acs_place_set candidates)
{
    double running[ACS_DEVICES_MOST];
    switch (p->policy) {
    case ACS_POLICY_SINGLE: return candidates & (~candidates + 1);
    case ACS_POLICY_STREAM_AWARE:
        for (uint32_t i = 0; i < p->topology->count; i++)
            running[i] = p->running[i];
        return least_of(candidates, running, 0);
    case ACS_POLICY_MIN_TRANSFER_SIZE:
    case ACS_POLICY_MIN_MAX_TRANSFER_TIME: return nearest_of(p, op, candidates);
    case ACS_POLICY_AUTO: {
        const acs_place_set best = earliest_of(p, op, candidates);
        return best & op->preferred ? best & op->preferred : best;
    }
    default: return candidates; /* ROUND_ROBIN: in turn */
    }
}

/*
 * Whether an op that can take over an upstream op's stream goes to one of the devices of those (GrCUDA). AUTO looks at
 * expected ends instead.
 */
static bool follows(acs_policy policy)
{
    return policy != ACS_POLICY_SINGLE && policy != ACS_POLICY_AUTO;
}

uint32_t acs_placement_choose(acs_placement *p, const acs_placement_op *op, double *end)
{
    const acs_place_set near = op->preferred & op->allowed;
    const acs_place_set candidates = near && follows(p->policy) ? near : op->allowed;
    const uint32_t device = in_turn(p, best_of(p, op, candidates));
    *end = end_on(p, op, device);
    (void)there_on(p, op, device, p->in_free_at[device]);
    if (!op->copies)
        p->free_at[device] = *end;
    p->running[device]++;
    if (op->seconds > 0)
        p->guess += (op->seconds - p->guess) / (double)++p->known;
    return device;
}

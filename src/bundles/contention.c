/*
 * The time that a device takes per kernel (contention.h). Called by insert.c and retire.c as ops are booked, by step.c
 * after polls, and by form.c for the kernels of a bundle. Pure arithmetic; never reads a clock.
 */
#include "bundles/contention.h"

#include "base/tuning.h"

/* Bounds of the time per kernel in a sample. */
typedef struct sample {
    uint64_t least_ns, most_ns;
} sample;

void acs_contention_issued(acs_contention *contention, uint32_t device, bool launched)
{
    acs_contention_device *d = &contention->device[device];
    if (launched) {
        d->out++;
        return;
    }
    d->others++;
    d->began_ns = 0;
    d->few = false;
}

void acs_contention_ended(acs_contention *contention, uint32_t device, uint32_t type, bool launched)
{
    acs_contention_device *d = &contention->device[device];
    uint32_t i = 0;
    ACS_ASSERT((launched ? d->out : d->others) > 0);
    if (!launched) {
        d->others--;
        return;
    }
    d->out--;
    d->ended++;
    while (i < d->types_used && d->types[i] != type)
        i++;
    if (type && i == d->types_used && i < TUNE_CONTENTION_SAMPLED)
        d->types[d->types_used++] = type;
}

/*
 * Many causes make kernels seem slower than they are, none makes them seem faster. So the estimate rises little by
 * little, and falls faster.
 */
static void learn_share(acs_share *share, uint32_t type, const sample *seen)
{
    const uint64_t known = share->type == type ? share->ns : 0;
    const uint64_t rise = 2 * known + TUNE_CONTENTION_STEP_NS, most = rise < UINT32_MAX ? rise : UINT32_MAX;
    uint64_t ns = known;
    if (known > seen->most_ns)
        ns = (known + seen->most_ns) / 2;
    else if (known < seen->least_ns)
        ns = seen->least_ns < most ? seen->least_ns : most;
    if (ns != known)
        *share = (acs_share){type, (uint32_t)ns};
}

static void lower_share(acs_share *share, uint32_t type)
{
    if (share->type == type)
        share->ns -= share->ns < TUNE_CONTENTION_FORGET_PART ? share->ns : share->ns / TUNE_CONTENTION_FORGET_PART;
}

static uint32_t share_index(uint32_t type)
{
    return type & (TUNE_CONTENTION_TYPES - 1);
}

void acs_contention_looked(acs_contention *contention, uint32_t device, uint64_t begin_ns)
{
    acs_contention_device *d = &contention->device[device];
    if (!d->looked_ns)
        d->looked_ns = begin_ns;
}

/* Time per kernel of a sample that is over. Polls bound when its first kernel began and its last one ended. */
static sample sample_of(const acs_contention_device *d, uint64_t end_ns)
{
    ACS_ASSERT(d->ended > 0 && d->began_ns);
    const uint64_t begin_ns = d->began_ns + TUNE_CONTENTION_LATENCY_NS;
    return (sample){d->before_ns > begin_ns ? (d->before_ns - begin_ns) / d->ended : 0, (end_ns - d->first_ns) / d->ended};
}

/*
 * If no more kernels ended than were out when the sample began, they count as those kernels, and the device took the
 * time. If more ended, the device ran some kernels at once, as it does when few are out.
 */
void acs_contention_polled(acs_contention *contention, uint32_t device, uint64_t end_ns)
{
    acs_contention_device *d = &contention->device[device];
    const uint64_t begin_ns = d->looked_ns ? d->looked_ns : end_ns;
    const bool sampled = d->began_ns && d->ended <= d->first_out;
    const bool went_through = (d->few || d->began_ns) && end_ns - d->polled_ns <= TUNE_CONTENTION_GAP_NS;
    const bool goes_on = sampled && d->ended < TUNE_CONTENTION_ENDED_MOST && d->out > 0;
    if (sampled && !goes_on) {
        const sample seen = sample_of(d, end_ns);
        for (uint32_t i = 0; i < d->types_used; i++)
            learn_share(&d->known[share_index(d->types[i])], d->types[i], &seen);
    } else if (!sampled && went_through) {
        for (uint32_t i = 0; i < d->types_used; i++)
            lower_share(&d->known[share_index(d->types[i])], d->types[i]);
    }
    d->looked_ns = 0;
    d->before_ns = begin_ns;
    d->polled_ns = end_ns;
    if (goes_on)
        return;
    d->ended = d->types_used = 0;
    d->first_out = d->out;
    d->few = d->others == 0 && d->out < TUNE_CONTENTION_OUT_LEAST;
    d->first_ns = begin_ns;
    d->began_ns = d->others == 0 && d->out >= TUNE_CONTENTION_OUT_LEAST ? end_ns : 0;
}

uint32_t acs_contention_of(const acs_contention *contention, uint32_t device, uint32_t type)
{
    const acs_share *share = &contention->device[device].known[share_index(type)];
    return type && share->type == type ? share->ns : 0;
}

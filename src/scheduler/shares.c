/*
 * What kernels take of a device (see shares.h). Called by core_submit.c and core_retire.c as ops are booked, by core.c as
 * polls come back, by core_bundle.c for what it bundles. Pure arithmetic.
 */
#include "scheduler/shares.h"

enum {
    OUT_LEAST = 4,      /* kernels that are out when a sample begins */
    ENDED_MOST = 16,    /* it is over when so many have ended, or all: those that run side by side end together */
    GAP_NS = 50000,     /* between two polls: what ended meanwhile may have ended long ago */
    LATENCY_NS = 4000,  /* from a launch to an idle device until the kernel runs */
    BELIEVED_NS = 4000, /* of what is seen, beyond twice what is known */
    FORGET = 16         /* one part in so many, where kernels ended with few beside them */
};

/* A sample's kernels took no less and no more than this, each. */
typedef struct sample {
    uint64_t least_ns, most_ns;
} sample;

void acs_shares_issued(acs_shares *shares, uint32_t device, bool launched)
{
    acs_shares_device *d = &shares->device[device];
    if (launched) {
        d->out++;
        return;
    }
    d->others++;
    d->began_ns = 0;
    d->few = false;
}

void acs_shares_ended(acs_shares *shares, uint32_t device, uint32_t type, bool launched)
{
    acs_shares_device *d = &shares->device[device];
    uint32_t i = 0;
    if (!launched) {
        d->others--;
        return;
    }
    d->out--;
    d->ended++;
    while (i < d->types_used && d->types[i] != type)
        i++;
    if (type && i == d->types_used && i < ACS_SHARES_ENDED)
        d->types[d->types_used++] = type;
}

/* Much can make kernels seem longer than they are, nothing shorter: more is believed little by little, less sooner. */
static void learn(acs_share *share, uint32_t type, const sample *seen)
{
    const uint64_t known = share->type == type ? share->ns : 0;
    const uint64_t most = 2 * known + BELIEVED_NS < UINT32_MAX ? 2 * known + BELIEVED_NS : UINT32_MAX;
    uint64_t ns = known;
    if (known > seen->most_ns)
        ns = (known + seen->most_ns) / 2;
    else if (known < seen->least_ns)
        ns = seen->least_ns < most ? seen->least_ns : most;
    *share = (acs_share){type, (uint32_t)ns};
}

static void forget(acs_share *share, uint32_t type)
{
    if (share->type == type)
        share->ns -= share->ns < FORGET ? share->ns : share->ns / FORGET;
}

static acs_share *share_of(acs_shares_device *d, uint32_t type)
{
    return &d->known[type & (ACS_SHARES_TYPES - 1)];
}

/*
 * What ends is taken to be what was out when the sample began: then the device took the time, until some time between two
 * polls. Where more ended it ran some as soon as they came, as where few were out at all.
 */
void acs_shares_polled(acs_shares *shares, uint32_t device, uint64_t now_ns)
{
    acs_shares_device *d = &shares->device[device];
    const bool watched = now_ns - d->polled_ns <= GAP_NS;
    const bool sampled = watched && d->began_ns && d->ended <= d->first_out;
    const uint64_t before_ns = d->polled_ns, began_ns = d->began_ns + LATENCY_NS;
    d->polled_ns = now_ns;
    if (sampled && d->ended < ENDED_MOST && d->out > 0)
        return; /* it goes on */
    if (sampled) {
        const sample seen = {before_ns > began_ns ? (before_ns - began_ns) / d->ended : 0,
                             (now_ns - d->began_ns) / d->ended};
        for (uint32_t i = 0; i < d->types_used; i++)
            learn(share_of(d, d->types[i]), d->types[i], &seen);
    } else if (watched && (d->few || d->began_ns)) {
        for (uint32_t i = 0; i < d->types_used; i++)
            forget(share_of(d, d->types[i]), d->types[i]);
    }
    d->ended = d->types_used = 0;
    d->first_out = d->out;
    d->few = d->others == 0 && d->out < OUT_LEAST;
    d->began_ns = d->others == 0 && d->out >= OUT_LEAST ? now_ns : 0;
}

uint32_t acs_shares_of(const acs_shares *shares, uint32_t device, uint32_t type)
{
    const acs_share *share = &shares->device[device].known[type & (ACS_SHARES_TYPES - 1)];
    return type && share->type == type ? share->ns : 0;
}

/*
 * On which device an op runs: the four policies of GrCUDA's multi-GPU scheduler (section III-B3), `single`, and
 * `auto`, which takes the device where the op is expected to end first. A state machine in program order: an op is
 * placed when it is queued, by what is known then. No clock: times are seconds of its own, in which each device works off
 * what it was given. Not thread-safe.
 */
#ifndef ACS_DEVICES_PLACEMENT_H
#define ACS_DEVICES_PLACEMENT_H

#include "devices/coherence.h"
#include "devices/topology.h"

/*
 * ACS_POLICY_*. SINGLE: device 0, or the first that is allowed. ROUND_ROBIN: one after the other. STREAM_AWARE: fewest ops
 * that have not ended. MIN_TRANSFER_SIZE: fewest bytes to bring. MIN_MAX_TRANSFER_TIME: least time to bring them, each from
 * the slowest place that has them. AUTO: earliest end: what the device has to do, what has to come, how long the op takes.
 */
typedef int32_t acs_policy;

/* Ways to a device, that do not hold each other up: what comes one way comes one after the other. */
enum { ACS_WAY_HOST, ACS_WAY_PEERS, ACS_WAYS };

/* Bytes that an op reads, and where they are valid. */
typedef struct acs_placement_read {
    uint64_t bytes;
    acs_place_set places; /* devices, and the host as topology->count; 0: nobody has written them */
} acs_placement_read;

typedef struct acs_placement_op {
    const acs_placement_read *reads;
    uint32_t read_count;
    acs_place_set allowed;   /* devices where it may run; not empty */
    acs_place_set preferred; /* of those, where a stream of an upstream op can be taken over; AUTO: of equals; SINGLE: no
                                matter; 0: none */
    double seconds;          /* that it takes, as far as is known; 0: not known */
    bool copies;             /* it takes no device's time, but that of the way to it */
    double ready;            /* when its upstream ops end, in the placement's seconds */
} acs_placement_op;

typedef struct acs_placement {
    const acs_topology *topology;
    acs_policy policy;
    uint32_t next;                     /* round-robin */
    uint32_t running[ACS_DEVICES_MOST]; /* ops that were placed; the owner takes off those that ended */
    double free_at[ACS_DEVICES_MOST];  /* when what was placed ends */
    double in_free_at[ACS_DEVICES_MOST][ACS_WAYS]; /* when what is brought to it in each way is there */
    double guess;                      /* seconds of an op that nothing is known of: the mean of those that are known */
    uint64_t known;                    /* ops that the mean is of */
} acs_placement;

/* The topology outlives it. */
void acs_placement_init(acs_placement *placement, const acs_topology *topology, acs_policy policy);
/* Where the op is to run; *end is when it is expected to end there. It counts as running from here on. */
uint32_t acs_placement_choose(acs_placement *placement, const acs_placement_op *op, double *end);
/* Nothing is under way: devices are free at once. */
void acs_placement_idle(acs_placement *placement);
/* What was to end by then has ended: nothing that is placed from here on begins before. */
void acs_placement_seen(acs_placement *placement, double end);

/* Seconds to bring what the op reads to the device: each from the fastest place that has it, or (`slowest`) the slowest. */
double acs_placement_transfer(const acs_topology *topology, const acs_placement_op *op, uint32_t device, bool slowest);

#endif

/*
 * The device on which an op runs: the four policies of GrCUDA's multi-GPU scheduler (section III-B3), `single`, and
 * `auto`, which takes the device where the op is expected to end first. A state machine in program order: an op is
 * placed when it is queued, by what is known then. It reads no clock: its times are seconds of its own, in which each
 * device works off the ops that it was given. Not thread-safe.
 */
#ifndef ACS_DEVICES_PLACEMENT_H
#define ACS_DEVICES_PLACEMENT_H

#include "devices/coherence.h"
#include "devices/topology.h"

/*
 * ACS_POLICY_*. SINGLE: device 0, or the first that is allowed. ROUND_ROBIN: one after the other. STREAM_AWARE: the
 * device with the fewest ops that have not ended. MIN_TRANSFER_SIZE: the fewest bytes to copy. MIN_MAX_TRANSFER_TIME:
 * the least time to copy them, each from the slowest place that has them. AUTO: the earliest end, by the work of the
 * device, the copies, and the time of the op.
 */
typedef int32_t acs_policy;

/* Ways into a device, which work side by side. Copies of one way come one after the other. */
enum { ACS_WAY_HOST, ACS_WAY_PEERS, ACS_WAYS };

/* Bytes that an op reads, and the places where they are valid. */
typedef struct acs_placement_read {
    uint64_t bytes;
    acs_place_set places; /* devices, and the host as topology->count; 0: no op has written them */
} acs_placement_read;

typedef struct acs_placement_op {
    const acs_placement_read *reads;
    uint32_t read_count;
    acs_place_set allowed;   /* devices where it may run; not empty */
    /*
     * of those, devices where it can take over the stream of an upstream op; AUTO: chosen among equals; SINGLE: ignored;
     * 0: none
     */
    acs_place_set preferred;
    double seconds;          /* seconds that it takes; 0: not known */
    bool copies;             /* whether it takes no time of the device itself, only of the way into it */
    double ready;            /* end of its upstream ops, in the placement's seconds */
} acs_placement_op;

typedef struct acs_placement {
    const acs_topology *topology;
    acs_policy policy;
    uint32_t next;                     /* device whose turn is next */
    uint32_t running[ACS_DEVICES_MOST]; /* number of placed ops; the owner subtracts those that have ended */
    double free_at[ACS_DEVICES_MOST];  /* end of all ops placed there */
    double in_free_at[ACS_DEVICES_MOST][ACS_WAYS]; /* end of all copies into it by each way */
    double guess;                      /* seconds of an op of unknown duration: the mean of known ones */
    uint64_t known;                    /* number of ops in that mean */
} acs_placement;

/* The topology outlives the placement. */
void acs_placement_init(acs_placement *placement, const acs_topology *topology, acs_policy policy);
/* Choose the device on which the op runs; *end: when it is expected to end there. It counts as running from here on. */
uint32_t acs_placement_choose(acs_placement *placement, const acs_placement_op *op, double *end);
/* No op is under way: all devices are free now. */
void acs_placement_idle(acs_placement *placement);
/* All ops that were expected to end by `end` have ended: later ops start no earlier than that. */
void acs_placement_seen(acs_placement *placement, double end);

/*
 * Seconds to copy what the op reads to the device: each read from the fastest place that has it, or (`slowest`) the
 * slowest.
 */
double acs_placement_transfer(const acs_topology *topology, const acs_placement_op *op, uint32_t device, bool slowest);

#endif

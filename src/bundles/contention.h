/*
 * The time that a device takes per kernel of a type while it runs several of them. It is learnt from kernels that are
 * launched one by one: how long they take to end, divided by their number. If that is far more than the cost of a
 * launch, the device may be full, and another issue method would gain nothing. Belongs to the core, under its lock;
 * never reads a clock.
 */
#ifndef ACS_CONTENTION_H
#define ACS_CONTENTION_H

#include "scheduler/backend.h"
#include "base/tuning.h"

typedef struct acs_share {
    uint32_t type; /* number of the kernel type; 0: none */
    uint32_t ns;
} acs_share;

/*
 * State of one device; types are numbered per device. A sample begins at a poll that saw only launched kernels
 * running.
 */
typedef struct acs_contention_device {
    uint32_t out;        /* kernels launched and not yet seen to have ended */
    uint32_t others;     /* other ops issued and not yet seen to have ended: bundles, copies, library calls */
    uint32_t first_out;  /* `out` when the sample began */
    uint32_t ended;      /* kernels that ended since the sample began or, without a sample, since the last poll */
    uint32_t types_used;
    uint32_t types[TUNE_CONTENTION_SAMPLED]; /* types of the kernels that ended */
    bool few;            /* at the last poll few kernels were out, and no other op was issued since */
    uint64_t looked_ns;  /* begin of the current poll; 0: there is none */
    uint64_t first_ns, began_ns; /* begin and end of the sample's first poll; began_ns 0: there is no sample */
    uint64_t before_ns, polled_ns; /* begin and end of the last poll */
    acs_share known[TUNE_CONTENTION_TYPES];
} acs_contention_device;

typedef struct acs_contention {
    acs_contention_device device[ACS_DEVICES_MOST];
} acs_contention;

/*
 * Note that an op was issued to the device, or has ended. `launched`: it is a kernel launched by itself. `type` 0: its
 * time is not learnt.
 */
void acs_contention_issued(acs_contention *contention, uint32_t device, bool launched);
void acs_contention_ended(acs_contention *contention, uint32_t device, uint32_t type, bool launched);
/* A poll of some of the device's slots begins at `begin_ns`. */
void acs_contention_looked(acs_contention *contention, uint32_t device, uint64_t begin_ns);
/* A poll of all of the device's slots ends at `end_ns`. A sample may end with it. */
void acs_contention_polled(acs_contention *contention, uint32_t device, uint64_t end_ns);
/* Time per kernel of this type in ns; 0: not known, or the kernels end as soon as they are launched. */
uint32_t acs_contention_of(const acs_contention *contention, uint32_t device, uint32_t type);

#endif

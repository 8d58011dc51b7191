/*
 * What a device takes for each kernel of a type while it has several of them: learnt from kernels that are launched one by
 * one, by how long it takes until those that are out have ended. Where that is far more than a launch takes, the device may
 * be what takes the time, and no other way to issue such kernels gain anything. Belongs to the core, under its lock; never
 * looks at a clock.
 */
#ifndef ACS_CONTENTION_H
#define ACS_CONTENTION_H

#include "scheduler/backend.h"
#include "base/tuning.h"

typedef struct acs_share {
    uint32_t type; /* 0: none */
    uint32_t ns;
} acs_share;

/* Of one device: types are numbered for each. A sample begins at a poll that saw launched kernels out, and nothing else. */
typedef struct acs_contention_device {
    uint32_t out;        /* kernels that were launched, and not seen to have ended; */
    uint32_t others;     /* other ops that were issued: bundles, copies, library calls */
    uint32_t first_out;  /* `out` when the sample began */
    uint32_t ended;      /* kernels, since then, or since the last poll */
    uint32_t types_used;
    uint32_t types[TUNE_CONTENTION_SAMPLED]; /* of those that ended */
    bool few;            /* at the last poll few kernels were out, and nothing else was since */
    uint64_t looked_ns;  /* when the poll in hand began; 0: there is none */
    uint64_t first_ns, began_ns; /* when the sample's first poll began, and was over; 0: there is no sample */
    uint64_t before_ns, polled_ns; /* when the last poll began, and was over */
    acs_share known[TUNE_CONTENTION_TYPES];
} acs_contention_device;

typedef struct acs_contention {
    acs_contention_device device[ACS_DEVICES_MOST];
} acs_contention;

/* An op was issued to the device, and has ended. `launched`: a kernel, by itself. `type` 0: nothing is learnt of it. */
void acs_contention_issued(acs_contention *contention, uint32_t device, bool launched);
void acs_contention_ended(acs_contention *contention, uint32_t device, uint32_t type, bool launched);
/* Some of the device's slots are asked about what has completed, from `begin_ns` on; */
void acs_contention_looked(acs_contention *contention, uint32_t device, uint64_t begin_ns);
/* all have been, until `end_ns`. */
void acs_contention_polled(acs_contention *contention, uint32_t device, uint64_t end_ns);
/* In nanoseconds; 0: nothing is known, or they end as soon as they are launched. */
uint32_t acs_contention_of(const acs_contention *contention, uint32_t device, uint32_t type);

#endif

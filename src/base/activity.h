/*
 * The number of ops that run at once, integrated over time; only with ACS_STATS=1. Threads of a backend report the ops
 * that they run, the core the ops of devices and of its own threads. The statistics read the result.
 */
#ifndef ACS_ACTIVITY_H
#define ACS_ACTIVITY_H

#include "base/base.h"

typedef enum acs_activity_part {
    ACS_ACTIVITY_CORE,    /* told by the core: on threads of the runtime, and on devices */
    ACS_ACTIVITY_BACKEND, /* told by a backend's own threads */
    ACS_ACTIVITY_PARTS
} acs_activity_part;

typedef struct acs_activity_counts {
    uint64_t span_ns; /* ns from the first begin to the latest end, or to now while anything runs */
    uint64_t idle_ns; /* ns of the span in which nothing ran */
    uint64_t ran_ns;  /* ns that ops ran, summed over the ops */
    uint32_t high;    /* most ops at once */
} acs_activity_counts;

typedef struct acs_activity acs_activity;

/* `now_ns` is the clock. It is called with `user`, never under the activity's lock. */
acs_status acs_activity_create(uint64_t (*now_ns)(void *user), void *user, acs_activity **activity);
void acs_activity_destroy(acs_activity *activity);
/* `change` more (or fewer, if negative) ops of this part run. Any thread. */
void acs_activity_add(acs_activity *activity, acs_activity_part part, int change);
/* `running` ops of this part run. Any thread. */
void acs_activity_set(acs_activity *activity, acs_activity_part part, uint32_t running);
acs_activity_counts acs_activity_read(acs_activity *activity);

#endif

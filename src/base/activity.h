/*
 * How many ops run at once, over time: with ACS_STATS=1 alone. Threads that run ops say so; what a device runs is told by
 * whoever last knew. The sum of both is integrated over a clock.
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
    uint64_t span_ns; /* from the first begin to the latest end, or to now while anything runs */
    uint64_t idle_ns; /* of the span: nothing ran */
    uint64_t ran_ns;  /* ops that ran x time */
    uint32_t high;    /* most ops at once */
} acs_activity_counts;

typedef struct acs_activity acs_activity;

/* `now_ns`: the clock; called with `user` and without a lock of the activity. */
acs_status acs_activity_create(uint64_t (*now_ns)(void *user), void *user, acs_activity **activity);
void acs_activity_destroy(acs_activity *activity);
/* So many more ops of this part run. Any thread. */
void acs_activity_add(acs_activity *activity, acs_activity_part part, int change);
/* So many ops of this part run. Any thread. */
void acs_activity_set(acs_activity *activity, acs_activity_part part, uint32_t running);
acs_activity_counts acs_activity_read(acs_activity *activity);

#endif

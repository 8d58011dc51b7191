/*
 * Integrates over time how many ops run at once (activity.h). Called by the core and by threads of backends when ops
 * begin and end, only with ACS_STATS=1; read by the statistics. Never looks at an op.
 */
#include "base/activity.h"

#include "base/lock.h"

#include <stdlib.h>

struct acs_activity {
    uint64_t (*now_ns)(void *user);
    void *user;
    acs_lock lock; /* rank POOL; guards the fields below */
    uint32_t running[ACS_ACTIVITY_PARTS];
    bool begun;              /* an op has run */
    uint64_t first_ns;       /* time at which the first op began */
    uint64_t since_ns;       /* time of the latest change of `running` */
    acs_activity_counts sum; /* counts up to since_ns; span_ns is not used */
};

acs_status acs_activity_create(uint64_t (*now_ns)(void *user), void *user, acs_activity **activity)
{
    acs_activity *a = calloc(1, sizeof *a);
    if (!a || acs_lock_init(&a->lock, ACS_RANK_POOL)) {
        free(a);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for statistics");
    }
    a->now_ns = now_ns;
    a->user = user;
    *activity = a;
    return ACS_OK;
}

void acs_activity_destroy(acs_activity *activity)
{
    if (!activity)
        return;
    acs_lock_fini(&activity->lock);
    free(activity);
}

static uint32_t total_locked(const acs_activity *a)
{
    return a->running[ACS_ACTIVITY_CORE] + a->running[ACS_ACTIVITY_BACKEND];
}

/* Time since the latest change. Threads read the clock before they take the lock, so `now` may be a little older. */
static uint64_t since_locked(const acs_activity *a, uint64_t now)
{
    return now > a->since_ns ? now - a->since_ns : 0;
}

static void change_locked(acs_activity *a, acs_activity_part part, uint32_t running, uint64_t now)
{
    const uint32_t before = total_locked(a);
    if (running == a->running[part])
        return;
    const uint64_t passed = a->begun ? since_locked(a, now) : 0;
    a->first_ns = a->begun ? a->first_ns : now;
    a->since_ns = a->begun ? a->since_ns + passed : now;
    a->begun = true;
    a->sum.ran_ns += before * passed;
    a->sum.idle_ns += before ? 0 : passed;
    a->running[part] = running;
    if (a->sum.high < total_locked(a))
        a->sum.high = total_locked(a);
}

void acs_activity_add(acs_activity *activity, acs_activity_part part, int change)
{
    const uint64_t now = activity->now_ns(activity->user);
    acs_lock_acquire(&activity->lock);
    change_locked(activity, part, (uint32_t)((int)activity->running[part] + change), now);
    acs_lock_release(&activity->lock);
}

void acs_activity_set(acs_activity *activity, acs_activity_part part, uint32_t running)
{
    const uint64_t now = activity->now_ns(activity->user);
    acs_lock_acquire(&activity->lock);
    change_locked(activity, part, running, now);
    acs_lock_release(&activity->lock);
}

acs_activity_counts acs_activity_read(acs_activity *activity)
{
    const uint64_t now = activity->now_ns(activity->user);
    acs_lock_acquire(&activity->lock);
    acs_activity_counts counts = activity->sum;
    const uint64_t running = total_locked(activity), passed = running ? since_locked(activity, now) : 0;
    counts.ran_ns += running * passed;
    counts.span_ns = activity->since_ns + passed - activity->first_ns;
    acs_lock_release(&activity->lock);
    return counts;
}

/*
 * Private to src/backend/sim*.c: the backend's state. sim_issue.c takes batches to the machine, sim.c lets time pass,
 * runs bodies and polls, sim_faults.c says what fails.
 */
#ifndef ACS_BACKEND_SIM_INTERNAL_H
#define ACS_BACKEND_SIM_INTERNAL_H

#include "backend/host_kernel.h"
#include "backend/sim.h"
#include "base/lock.h"

/* How long ops take when the seed decides; one per seed. Each makes another kind of missing order likely to show. */
typedef enum acs_sim_strategy {
    ACS_SIM_UNIFORM, /* any time */
    ACS_SIM_NEWEST,  /* an op ends before those that run already: overtakes everything that it need not wait for */
    ACS_SIM_STARVE,  /* the ops of one slot end when nothing else runs */
    ACS_SIM_EAGER,   /* everything runs and is seen at the first poll: an infinitely fast GPU */
    ACS_SIM_STRATEGIES
} acs_sim_strategy;

/* Native codes of injected failures that take the device, and of memory. */
enum { ACS_SIM_NATIVE_EVENT = 720, ACS_SIM_NATIVE_LOST, ACS_SIM_NATIVE_MEMORY };

typedef struct acs_sim_mark {
    uint32_t event;     /* plus 1; 0: never recorded */
    uint64_t value;     /* of the latest record */
} acs_sim_mark;

typedef struct acs_sim_slot {
    uint32_t stream;
    uint64_t value;     /* highest of any op or mark */
    uint64_t visible;   /* how much of the timeline poll has shown */
    uint32_t late;      /* polls in a row that hid a completion */
    uint64_t known_at;  /* when the host can know of the completion that was looked at last */
} acs_sim_slot;

typedef struct acs_sim_state {
    acs_backend base;
    uint32_t slots, mark_capacity;
    bool by_seed;
    acs_sim_strategy strategy;
    uint64_t kernel_ns;
    uint64_t salt;            /* which ops run when they start */
    acs_sim_gpu gpu;
    acs_sim_describe describe;
    void *describe_user;
    acs_host_scratch scratch; /* of the thread that runs ops: `running` */

    acs_lock lock;            /* rank BACKEND; guards the rest */
    acs_sim *machine;
    acs_random random;
    acs_sim_faults faults;
    acs_sim_slot *slot;
    acs_sim_mark *marks;      /* [slot * mark_capacity + index] */
    uint64_t now;             /* the host's time */
    uint64_t issued;          /* items */
    uint32_t victim;          /* of SIM_STARVE */
    uint32_t polls_idle;      /* in a row */
    const acs_record **due;   /* ops that the machine ran and whose bodies did not run yet, in that order */
    uint32_t due_count, due_capacity;
    uint32_t in_flight;       /* ops issued whose bodies did not run: all of them have room in `due` */
    bool told;                /* an op ran or ended since this was cleared */
    bool running;             /* a poll is running bodies, with the lock released */
    bool lost;
} acs_sim_state;

static inline acs_sim_state *acs_sim_state_of(acs_backend *backend)
{
    return (acs_sim_state *)backend;
}

/* sim_issue.c */
acs_sim_mark *acs_sim_mark_at(const acs_sim_state *s, const acs_mark *mark);
/* The machine's acs_sim_told: lists the body as due. */
void acs_sim_on_told(void *owner, void *user, bool ended, uint64_t when);
void acs_sim_submit(acs_backend *backend, acs_batch *batch);

#endif

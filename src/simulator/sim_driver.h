/*
 * The threads of a context on the sim backend, played by whichever thread waits: its stepper (api/hooks.h).
 */
#ifndef ACS_SIM_DRIVER_H
#define ACS_SIM_DRIVER_H

#include "api/context.h"

enum { ACS_SIM_WORKERS = 8 };

/* A simulated worker. It takes the three parts of a step one by one, in an order that the seed or the time chooses. */
typedef struct acs_sim_worker {
    uint64_t at;     /* its virtual time, ns */
    uint64_t looked; /* virtual time at which its latest action began, ns */
    bool missed;     /* something happened since then, perhaps too late for that action to see it */
    bool idle;       /* nothing to do until something happens */
    acs_action *action;
    int stage; /* 0: no action in hand, 1: decided, 2: performed */
} acs_sim_worker;

/* Of one context, from acs_sim_driver_open to _close. Used by the thread that holds `stepping`, if nothing else is said. */
typedef struct acs_sim_driver {
    _Atomic(uint32_t) stepping; /* 1: a thread plays the workers */
    uint64_t caller_at;         /* virtual time of the callers, ns */
    void (*yield)(void *user);  /* for tests: other producers may go on between two steps; any thread */
    void *yield_user;
    uint32_t ahead;             /* for tests: callers run ahead of workers, which step after one call of `ahead`; 0: each */
    uint32_t still;             /* steps in a row of waiting callers after which nothing can change */
    acs_op queued;              /* newest op at the latest of these steps */
    bool stuck;                 /* a defect: not even a lost device ended the ops, so waits give up */
    uint64_t idle_ns;           /* time that passed while nothing could change, for the watchdog */
    acs_random random;
    acs_sim_worker workers[ACS_SIM_WORKERS];
    uint32_t count;             /* of workers */
} acs_sim_driver;

/* Make the context's stepper. Does nothing on other backends. ACS_ERR_MEMORY: acs_sim_driver_close frees what is there. */
acs_status acs_sim_driver_open(acs_context *context);
void acs_sim_driver_close(acs_context *context);

#endif

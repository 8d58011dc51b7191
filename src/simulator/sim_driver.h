/*
 * The stepper of a context on the sim backend (api/hooks.h): threads that call the library play its workers. Opened by
 * the simulator's part of acs_open. Tests set `yield` and `ahead`.
 */
#ifndef ACS_SIM_DRIVER_H
#define ACS_SIM_DRIVER_H

#include "api/context.h"

enum { ACS_SIM_WORKERS = 8 };

/* A simulated worker. It takes the three parts of a step one by one, in an order that the seed or the time chooses. */
typedef struct acs_sim_worker {
    uint64_t at;     /* virtual time of the worker, ns */
    uint64_t looked; /* virtual time at which its latest action began, ns */
    bool missed;     /* the backend had news since then, maybe too late for that action to see them */
    bool idle;       /* nothing to do until there is news */
    acs_action *action; /* owned */
    int stage; /* 0: no action in hand, 1: decided, 2: performed */
} acs_sim_worker;

/*
 * State of one context, from acs_sim_driver_open to _close. Used by the thread that holds `stepping`, except as noted.
 */
typedef struct acs_sim_driver {
    _Atomic(uint32_t) stepping; /* 1: a thread plays the workers */
    _Atomic(bool) called;       /* a call came while another thread played: idle workers look again. Set by any thread */
    uint64_t caller_at;         /* virtual time of the callers, ns */
    void (*yield)(void *user);  /* for tests: lets other producers go on between two steps; called by any thread */
    void *yield_user;
    uint32_t ahead;             /* for tests, by seed: workers step after one call in `ahead`; 0: after each */
    bool polled;                /* a worker polled since this was cleared: only polls let the backend's time pass */
    uint32_t still;             /* steps of waiting callers, in a row, that changed nothing */
    acs_op queued;              /* newest op at the latest of these steps */
    bool stuck;                 /* a defect: not even a lost device ended the ops, so waits give up */
    uint64_t idle_ns;           /* time of standstills, for the watchdog */
    acs_random random;
    acs_sim_worker workers[ACS_SIM_WORKERS];
    uint32_t count;             /* number of workers */
} acs_sim_driver;

/* Make the context's stepper. Does nothing on other backends. ACS_ERR_MEMORY: the caller calls acs_sim_driver_close. */
acs_status acs_sim_driver_open(acs_context *context);
void acs_sim_driver_close(acs_context *context);

#endif

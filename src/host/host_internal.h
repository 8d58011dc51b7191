/*
 * The state of the host backend, which host.c owns, and its run queue of slots that can advance (host_queue.c). Private
 * to src/host.
 */
#ifndef ACS_HOST_INTERNAL_H
#define ACS_HOST_INTERNAL_H

#include "host/host_executor.h"
#include "host/host_kernel.h"
#include "base/lock.h"

#include <stdatomic.h>

/*
 * Every slot is in one of these states; the lock guards them.
 *   IDLE     nothing in its queue
 *   QUEUED   in the run queue: its head may be able to go
 *   CLAIMED  a thread runs its head
 *   BLOCKED  its head waits for another slot's timeline, in whose list of blocked slots it is
 */
typedef enum host_state { HOST_IDLE, HOST_QUEUED, HOST_CLAIMED, HOST_BLOCKED } host_state;

#define HOST_NONE UINT32_MAX

typedef struct host_link {
    host_state state;
    uint32_t next;    /* QUEUED: next slot of the run queue; BLOCKED: next slot of the same list of blocked slots */
    uint32_t blocked; /* first slot of the list of those blocked behind this one */
} host_link;

typedef struct host_backend host_backend;

typedef struct host_runner {
    host_backend *host;
    pthread_t thread;
    int cpu;      /* CPU to pin the thread to; -1: none */
    uint32_t ops; /* number of ops begun, counted round */
    bool busy;    /* inside an op; guarded by the backend's lock */
    acs_host_scratch scratch;
} host_runner;

struct host_backend {
    acs_backend base;
    acs_backend_config config;

    acs_lock lock; /* rank BACKEND; guards all fields up to the next blank line */
    acs_cond work; /* executors sleep here: the run queue is not empty, a timeline moved, or closing */
    acs_host_slots slots;
    acs_cond room; /* an entry left a queue, or the backend was given up; signalled while `crowded` */
    uint32_t crowded; /* threads that wait for room in a queue that could not grow */
    host_link *links;             /* one per slot */
    uint32_t run_first, run_last; /* slots at both ends of the run queue */
    uint32_t sleepers, searchers; /* executors that sleep; executors that look for work without sleeping, at most one */
    bool guarded;                 /* one of the sleepers is the guard */
    bool signalled;               /* one of the sleepers was signalled and has not got the lock since */
    uint32_t claims;              /* ops claimed, counted round */
    uint64_t op_ns;               /* recent duration of ops; rises at once, falls slowly */
    bool draining;                /* inline: a thread is running ops inside poll */
    bool given_up;                /* no further op begins; the queues' entries are void */

    /* Written under the lock, read without it as hints: a reader that errs looks again under the lock. */
    _Atomic uint32_t runnable; /* slots in the run queue */
    _Atomic bool closing;      /* threads leave when nothing can run */

    uint32_t runner_count;
    uint32_t started;     /* threads to join */
    host_runner *runners; /* one per executor */
};

/* Functions of host_queue.c. All but the first two are called under the lock. */

/* Number of slots in the run queue: a hint, see the struct. */
uint32_t acs_host_runnable(const host_backend *h);
/* Whether threads are to leave: a hint, see the struct. */
bool acs_host_closing(const host_backend *h);
/* Put a slot at the end of the run queue. */
void acs_host_queue_push_locked(host_backend *h, uint32_t slot);
/* Take the first slot of the run queue. HOST_NONE: it is empty. */
uint32_t acs_host_queue_pop_locked(host_backend *h);
/* The head entry of a slot is done: remove it, and queue the slots whose wait that satisfies. */
void acs_host_finish_locked(host_backend *h, uint32_t slot);
/* Advance one slot to its next op, and claim it. NULL: no op of the slot can run now. */
acs_record *acs_host_advance_locked(host_backend *h, uint32_t slot);

#endif

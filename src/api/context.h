/*
 * A context: the core with what surrounds it, threads, waiting, errors, memory, statistics. Private to src/api.
 *
 * Context structs are never given back to the C library: a handle that was closed can so be told from an open one
 * for as long as its struct has not been reused.
 *
 * Locks in order of rank: registry, core, sleep. Failures and statistics of ops are guarded by the core's lock, because
 * the core reports ends under it.
 */
#ifndef ACS_CONTEXT_H
#define ACS_CONTEXT_H

#include "base/inside.h"
#include "base/lock.h"
#include "base/tuning.h"
#include "devices/allocations.h"
#include "devices/ledger.h"
#include "pool/memory.h"
#include "window/record.h"
#include "api/eventcount.h"
#include "api/parts.h"
#include "scheduler/core.h"

#include <stdatomic.h>
#include <stdio.h>

enum { ACS_THREADS_MAX = 65 };

typedef struct acs_failures acs_failures;
typedef struct acs_pairs acs_pairs;
typedef struct acs_relocatables acs_relocatables;
typedef struct acs_device_choice acs_device_choice;
typedef struct acs_group_schedule acs_group_schedule;
typedef struct acs_dot acs_dot;

struct acs_context {
    _Atomic(uint32_t) open;  /* 1 between acs_open and acs_close */
    uint32_t fork_generation;
    acs_context *next;       /* registry of open contexts, or list of free structs */
    uint32_t pins;           /* drains under way that acs_close waits for; guarded by the registry's mutex */
    acs_options options;
    acs_backend *backend;
    acs_record_pool *records;
    acs_allocations *allocations;
    acs_memory *memory;
    acs_relocatables *relocatables; /* NULL: without pools there are none */
    acs_device_choice *device_choice;   /* NULL: there is one device */
    acs_group_schedule *group_schedule; /* of groups; NULL: the same */
    acs_memory *addresses;   /* of lazy blocks: no memory is there; NULL: there was none yet */
    FILE *memory_log;        /* NULL: none is written */
    acs_dot *dot;            /* the same, of ACS_DOT */
    _Atomic(acs_reuse *) reuses; /* for the next op */
    _Atomic(uint64_t) modes;     /* ACS_MODE_ bits and counts: what a launch asks beside the plain path */
    const acs_op_hooks *hooks;   /* NULL: none; constant, as the next one */
    const acs_stepper *stepper;  /* NULL: threads step, in real time */
    struct acs_sim_driver *sim_driver; /* the stepper's own; NULL without one */
    bool pooled;             /* blocks come out of it, and go back to it, without a call of the device */
    /* Each call reads what stands here, and what stands behind the core: not on a line that a worker writes. */
    _Alignas(ACS_CACHE_LINE) acs_core core;
    unsigned char apart_behind[ACS_CACHE_LINE];

    /* failures and pairs: guarded by core.lock */
    acs_failures *failures;
    _Atomic(bool) has_failures; /* `failures` remembers an error or a failed op; read without the lock */
    acs_pairs *pairs;
    acs_activity *activity; /* what runs at once; NULL without ACS_STATS */
    uint64_t opened_ns;

    /* actions for callers that step, and which of them a thread has */
    acs_action *actions[TUNE_CALLER_ACTIONS];
    _Atomic(bool) action_taken[TUNE_CALLER_ACTIONS];

    /* threads */
    pthread_t threads[ACS_THREADS_MAX];
    const acs_action *thread_actions[ACS_THREADS_MAX]; /* what each steps with; to be compared, not looked into */
    uint32_t thread_count;         /* written by acs_open, then only by the maker of the host thread */
    _Atomic(uint32_t) host_thread; /* 0: none, 1: being made, 2: runs host functions, 3: given up */
    _Atomic(uint32_t) stop;
    _Atomic uint32_t polling_callers; /* callers that look for completions in the workers' place: 0 or 1 */
    uint32_t issuers;              /* of the threads, those that issue ops; constant from before they start */
    acs_eventcount work;           /* workers sleep here: something may be issued or polled for */
    acs_eventcount host_work;      /* the thread of host functions */
    acs_eventcount ends;           /* callers: what they watch for came true */
    acs_ledger *ledgers[ACS_DEVICES_MOST]; /* of each device; NULL: they are not shared, as far as is known */
    pthread_mutex_t *order;        /* who has program order (program_order.h); NULL: it needs no lock */
    int cpus[256];
    uint32_t cpu_count;
    _Atomic(uint32_t) cpu_turn;

    /* watchdog */
    _Atomic(uint64_t) next_look_ns;

    _Atomic(uint64_t) caller_waits;

    struct acs_captures *captures;
};

/*
 * E: acquire; pairs with whoever sets a bit or counts down. A set bit implies what was written before it: the fault's
 * error is in `failures`. No life counted (ACS_MODE_REUSES) implies that the ops which began the former lives are in
 * the FIFO.
 */
static inline uint64_t acs_context_modes(const acs_context *context)
{
    return atomic_load_explicit(&context->modes, memory_order_acquire);
}

/* E: release, as above. */
static inline void acs_context_add_mode(acs_context *context, uint64_t mode)
{
    atomic_fetch_or_explicit(&context->modes, mode, memory_order_release);
}

/* A block of no group was taken from the pools of this kind. */
static inline void acs_context_kept(acs_context *context, int kind)
{
    if (ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_LEDGER))
        context->hooks->kept(context, kind);
}

static inline bool acs_context_is_lost(const acs_context *context)
{
    return acs_context_modes(context) & ACS_MODE_LOST;
}

/* context.c */

/* The context that a call means, or NULL with an error: closed, forked, or called from inside a callback. */
acs_context *acs_context_enter(acs_context *context, const char *function);
/*
 * The same for calls that queue an op at `site` (NULL: unknown). A call from inside a callback is kept in the context's
 * errors, too. Takes the core's lock then.
 */
acs_context *acs_context_enter_op(acs_context *context, const char *function, const acs_site *site);
/* What it does where the context cannot be entered: the error of this thread is about the op. */
void acs_context_refuse_op(acs_context *context, const acs_site *site);
/*
 * An open context other than this one, in whose memory the address lies, or NULL; *block: what is, or was, there, no
 * bytes if that is not remembered. ACS_LAZY blocks of others are not looked for. Only to be told: it may be closed by
 * now.
 */
const acs_context *acs_context_other(const acs_context *context, uint64_t address, acs_block *block);
/* Whether the number is of an op that was queued; names `function` in the error. */
acs_status acs_context_check_op(acs_context *context, acs_op op, const char *function);
/*
 * Wait for everything, whatever became of it. True: copies of the runtime's own failed; their bytes are where they
 * were.
 */
bool acs_context_drain(acs_context *context);

/* threads.c: threads, sleeping, stepping */

/* Whether this thread was made by the library. */
bool acs_thread_is_ours(void);
acs_status acs_workers_start(acs_context *context);
/* How many threads could not be waited for: they are inside an op that was given up. */
uint32_t acs_workers_stop(acs_context *context);
/* An op was queued; `kernel`: it is one. */
void acs_context_queued(acs_context *context, acs_op op, bool kernel);
/* No worker is awake, so that nothing moves unless the caller steps. */
bool acs_context_unattended(acs_context *context);
/* The backend has completions to poll for; called on its threads. */
void acs_context_completed(void *context);
/* The time of the context, ns: real, or that of the simulated host, so that runs can be replayed. */
uint64_t acs_context_now_ns(void *context);
int acs_context_cpu_next(void *context);
acs_status acs_cpus_parse(acs_context *context, const char *list);
/* Host functions get a thread of their own, made when the first is queued. */
void acs_host_thread_start(acs_context *context);
/*
 * A thread is inside an op that may never return: workers and callers run what is never skipped (callbacks, frees) now.
 */
static inline void acs_host_thread_give_up(acs_context *context)
{
    atomic_store_explicit(&context->host_thread, 3, memory_order_release); /* B: pairs with has_host_thread */
}
/* One step on the calling thread. False: nothing to do now. */
bool acs_context_step(acs_context *context);
/*
 * Wait until a watch of type OP or ALL is true, or `try` succeeds (for ROOM). The caller steps the core itself whenever
 * no worker is awake to do it.
 */
typedef bool (*acs_try_fn)(acs_context *context, void *argument);
void acs_context_wait(acs_context *context, acs_wait_condition_type type, acs_op op);
void acs_context_wait_room(acs_context *context, acs_try_fn try, void *argument);

/*
 * watchdog.c: for whoever found nothing to do. False most of the time, at the cost of a load: the watchdog is off, or
 * somebody looked a moment ago. True: ops were given up, so look again at what you wait for. Any clock that never goes
 * back, the same for all threads of a context; virtual time must pass in steps of at most a quarter of the limit.
 */
bool acs_watchdog_look(acs_context *context, uint64_t now_ns);
/* The same with the real clock, which is read only if the watchdog is on; never for contexts in the sim backend. */
bool acs_watchdog_look_now(acs_context *context);
/* How long a thread may sleep while ops are out, so that somebody looks; 0: for ever. */
uint64_t acs_watchdog_nap_us(acs_context *context);

/* failures.c */
acs_status acs_failures_create(acs_failures **failures);
void acs_failures_destroy(acs_failures *failures);
void acs_failures_end(acs_context *context, const acs_end *end);
void acs_failures_fault(acs_context *context, const acs_error *error);
/* A call found the device lost, as this thread's error says: all that is under way ends, and whoever sleeps wakes. */
void acs_failures_lost(acs_context *context);
/* This thread's error is the context's, too, if that has none yet. Takes the core's lock. */
void acs_failures_keep(acs_context *context);
/* Complete this thread's error with the call site, keep it in the context, and return its status. */
acs_status acs_failures_refuse(acs_context *context, const acs_site *site);
acs_status acs_failures_first_of(acs_context *context, acs_error *error);
acs_status acs_failures_find(acs_context *context, acs_op op, acs_error *error);
/*
 * F: relaxed; pairs with acs_failures_end and keep_first. A thread that knows of an end sees what was stored before it.
 */
static inline bool acs_context_has_failures(const acs_context *context)
{
    return ACS_UNLIKELY(atomic_load_explicit(&context->has_failures, memory_order_relaxed));
}
/* The first error that the context keeps. Takes the core's lock only if there is one, or a failed op. */
static inline acs_status acs_failures_first(acs_context *context, acs_error *error)
{
    return acs_context_has_failures(context) ? acs_failures_first_of(context, error) : ACS_OK;
}
/* How an op ended; the caller knows that it did. Takes the core's lock only if some op failed. */
static inline acs_status acs_failures_of(acs_context *context, acs_op op, acs_error *error)
{
    return acs_context_has_failures(context) ? acs_failures_find(context, op, error) : ACS_OK;
}
acs_status acs_failures_of_locked(acs_context *context, acs_op op);
void acs_failures_check(acs_context *context, const acs_record *op, const acs_record *other);
/* Kernel `op` left bytes of its out segment as they were, `first` of them from its beginning. Takes the core's lock. */
void acs_failures_unwritten(acs_context *context, acs_op op, acs_label label, uint32_t segment, uint64_t left,
                            uint64_t bytes, uint64_t first);
void acs_failures_clear(acs_context *context);

/* launch.c */
typedef struct acs_draft {
    acs_context *context;
    acs_record *record;
    acs_record_pool *records; /* where it comes from */
    const acs_site *site;
    const char *name; /* a kernel's own name; NULL: that of the call site */
    bool no_wait;
    bool own;      /* the runtime's: it is not held */
    bool gives;    /* what it waits for is somebody else's to write from then on, unseen */
    uint8_t on;    /* of several devices it is to run on this one, and one; 0: on any */
    bool captured; /* set by acs_draft_begin: the op becomes a node of somebody else's graph */
    struct acs_group *group; /* the same: it is held; NULL: it is not */
    bool alone;    /* program order is this thread's until it is queued or dropped: program_order.h */
    uint8_t places;   /* segments that each named one may become when it is bound */
    uint64_t modes;   /* acs_context.modes as the draft began */
    uint32_t reuses;  /* lives that begin with it */
    bool bound;    /* the lock of renames is held until it is queued or dropped: bind.h */
    bool begun;    /* acs_draft_begin_contents was called */
    bool kernel;   /* the program launched it as one; set by acs_draft_begin */
    acs_op queued; /* set by acs_draft_queue */
    uint32_t parts;    /* 0: the record alone; else it is the first of so many, */
    acs_record **part; /* between which no other op comes. Borrowed */
} acs_draft;
/* A record of this kind, waiting for one if the FIFO is full. NULL with an error. */
acs_record *acs_draft_begin(acs_draft *draft, acs_op_kind kind);
/* Copy the footprint into the record, computing it where a function is given. */
acs_status acs_draft_uses(acs_draft *draft, const acs_uses *uses, const acs_footprint_input *input, uint32_t args,
                          uint32_t arg_bytes);
/* check_segments.c: whether the record's segments may be what they are. */
acs_status acs_draft_check_segments(const acs_draft *draft);
/* How errors name it. */
static inline acs_label acs_draft_label(const acs_draft *draft)
{
    return (acs_label){draft->site, draft->name || !draft->site ? draft->name : draft->site->name};
}
static inline const char *acs_draft_name(const acs_draft *draft)
{
    return acs_label_name(acs_draft_label(draft));
}
/* The error of this thread is about it. */
void acs_draft_blame(const acs_draft *draft);
/* The record is filled in, but for what the backend adds: acs_bind, where there is something to bind to. */
acs_status acs_draft_bind(acs_draft *draft);
/*
 * Contents that a bound op writes as a whole begin anew. acs_draft_queue does it for ops that did not; ops queued
 * between the two find the new contents. ACS_ERR_MEMORY: drop the draft.
 */
acs_status acs_draft_begin_contents(acs_draft *draft);
/* Queue the record. 0 with an error. */
acs_op acs_draft_queue(acs_draft *draft);
/* Give the record up; the error of this thread becomes the context's too. Returns 0. */
acs_op acs_draft_drop(acs_draft *draft);

/* acs_launch as it is. */
acs_op acs_launch_unchecked(acs_context *context, const acs_launch_params *params);
/* Its first half. The record holds the call, and its segments are those that the program named. False: refused. */
bool acs_launch_fill(acs_draft *draft, const acs_launch_params *params);
/*
 * Its second half, before acs_draft_queue. The op has its memory, and the backend takes it. False: refused, nothing is
 * queued but copies that bring lazy blocks back.
 */
bool acs_launch_bind(acs_draft *draft);

/* stats.c */
/* What ACS_STATS=1 keeps, if it is asked for. ACS_ERR_MEMORY: some of it may be there. */
acs_status acs_stats_open(acs_context *context, uint64_t (*now_ns)(void *context));
void acs_stats_close(acs_context *context);
void acs_pairs_end(acs_pairs *pairs, const acs_end *end);
void acs_stats_report(acs_context *context);
/* What has been counted so far. Takes the core's lock. */
void acs_stats_read(acs_context *context, acs_statistics *statistics);

#endif

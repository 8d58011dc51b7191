/*
 * A context: the core and its surroundings, that is threads, waits, errors, memory, statistics. Made by acs_open, ended
 * by acs_close. This header has the struct, its accessors, and how a call enters a context. For the rest see draft.h,
 * failures.h, stats.h, threads.h, wait.h and watchdog.h.
 *
 * Context structs are never given back to the C library. So a closed handle can be told from an open one for as long as
 * its struct has not been reused.
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
#include "recorder/recorder.h"
#include "scheduler/core.h"

#include <stdatomic.h>
#include <stdio.h>

enum { ACS_THREADS_MAX = 65 }; /* most threads of a context: 64 workers, and that of host functions */

typedef struct acs_failures acs_failures;
typedef struct acs_pairs acs_pairs;
typedef struct acs_relocatables acs_relocatables;
typedef struct acs_device_choice acs_device_choice;
typedef struct acs_group_schedule acs_group_schedule;
typedef struct acs_dot acs_dot;
typedef struct acs_repeats acs_repeats;
typedef struct acs_decisions acs_decisions;
typedef struct acs_checks acs_checks;
typedef struct acs_barriers acs_barriers;
typedef struct acs_variant_book acs_variant_book;

struct acs_context {
    _Atomic(uint32_t) open;  /* 1 between acs_open and acs_close */
    uint32_t fork_generation; /* acs_registry_fork_generation() at acs_open */
    _Atomic(bool) logs;      /* there is a log, so calls tell it from where they come */
    acs_context *next;       /* registry of open contexts, or list of free structs */
    uint32_t pins;           /* drains under way that acs_close waits for; guarded by the registry's mutex */
    acs_options options;     /* constant since acs_open */
    acs_backend *backend;
    acs_record_pool *records;
    acs_allocations *allocations;
    acs_memory *memory;      /* pools */
    acs_relocatables *relocatables;     /* blocks whose contents move; NULL: a context without pools has none */
    acs_device_choice *device_choice;   /* NULL: there is one device */
    acs_group_schedule *group_schedule; /* turn and device of groups; NULL: there is one device */
    _Atomic(acs_memory *) addresses; /* addresses of lazy blocks, without memory; NULL: there was no such block yet */
    FILE *memory_log;        /* file of ACS_MEMORY_LOG; NULL: none */
    acs_dot *dot;            /* file of ACS_DOT; NULL: none */
    acs_repeats *repeats;    /* parts of the program that recur; NULL: a library without them */
    _Atomic(acs_reuse *) reuses; /* lives of blocks that begin with the next op */
    _Atomic(uint64_t) modes;     /* ACS_MODE_ bits and counts; a launch takes the plain path where none is set */
    const acs_op_hooks *hooks;   /* NULL: none; constant, as the next one */
    acs_recorder *recorder;      /* of ACS_TRACE and ACS_REPORT; NULL: none; constant while ops are queued */
    uint32_t recorded_as;        /* from 1 in the order of contexts that are recorded; 0: it is not */
    const acs_stepper *stepper;  /* NULL: threads step, in real time */
    struct acs_sim_driver *sim_driver; /* state of the stepper; NULL without one */
    bool pooled;             /* acs_malloc takes blocks from `memory`, and acs_free returns them, without the device */
    /* Calls read the fields before and behind the core. The core stays apart, on cache lines that workers write. */
    _Alignas(ACS_CACHE_LINE) acs_core core;
    unsigned char apart_behind[ACS_CACHE_LINE];

    /* failures and pairs: guarded by core.lock */
    acs_failures *failures;
    _Atomic(bool) has_failures; /* `failures` remembers an error or a failed op; read without the lock */
    acs_pairs *pairs;           /* pairs of ops that serialise; NULL without ACS_STATS */
    acs_activity *activity;     /* how many ops run at once; NULL without ACS_STATS */
    uint64_t opened_ns;         /* acs_clock_ns() at acs_open; tells the context from earlier ones in this struct */
    uint64_t number;            /* from 1 in the order of acs_open, in the log */

    /* actions with which callers step, or NULL; action_taken[i]: a thread has actions[i] */
    acs_action *actions;
    _Atomic(bool) action_taken[TUNE_CALLER_ACTIONS];

    /* threads */
    pthread_t threads[ACS_THREADS_MAX];
    const acs_action *thread_actions[ACS_THREADS_MAX]; /* action of each thread; only its address may be used */
    uint32_t thread_count;         /* written by acs_open, then only by the maker of the host thread */
    _Atomic(uint32_t) host_thread; /* thread of host functions: 0: none, 1: being made, 2: running, 3: given up */
    _Atomic(uint32_t) stop;        /* 1: threads end; set by acs_workers_stop */
    _Atomic uint32_t polling_callers; /* callers that look for completions in the workers' place: 0 or 1 */
    uint32_t issuers;              /* number of threads that issue ops; constant from before they start */
    acs_eventcount work;           /* workers sleep here until there may be ops to issue or to poll for */
    acs_eventcount host_work;      /* the thread of host functions sleeps here */
    acs_eventcount ends;           /* callers sleep here until their condition may be true */
    acs_ledger *ledgers[ACS_DEVICES_MOST]; /* of each device; NULL: not known to be shared with other programs */
    acs_lock *order;        /* lock of program order (program_order.h); NULL: none is needed */
    int cpus[256];                 /* CPUs to pin threads to, `cpu_count` of them (ACS_CPUS) */
    uint32_t cpu_count;
    _Atomic(uint32_t) cpu_turn;    /* number of threads that were given a CPU */

    _Atomic(uint64_t) next_look_ns; /* watchdog: time of the next look for overdue ops */

    _Atomic(uint64_t) caller_waits; /* times that a caller found the FIFO full */
    _Atomic(uint64_t) shares_ignored; /* counter for acs_stats, of launches whose share was ignored */
    _Atomic(uint8_t) shares[101];     /* by percentage: whether launches get such a share; see shares.c */
    _Atomic(bool) shares_told;        /* the log has the reason why they do not */
    _Atomic(uint64_t) undeclared, unknown_memory; /* counters for acs_stats, of ops that may touch anything (expand.c) */

    struct acs_captures *captures;
    acs_checks *checks;          /* what was found about footprints; NULL without ACS_CHECK=writes, reads or all */
    acs_variant_book *variants;  /* what is known of versions of kernels; NULL: a library without them */
    acs_barriers *barriers;      /* numbers of ACS_BARRIERS; NULL: none */
    _Atomic(acs_decisions *) decisions; /* cells of decided ops; NULL: there were none yet */
};

/*
 * E: acquire; pairs with acs_context_add_mode and with the count down of ACS_MODE_REUSES in residency/malloc.c. A set
 * bit implies the writes before it: with ACS_MODE_LOST the fault's error is in `failures`. A count of 0 in
 * ACS_MODE_REUSES implies that the ops with which the earlier lives began are in the FIFO.
 */
static inline uint64_t acs_context_modes(const acs_context *context)
{
    return atomic_load_explicit(&context->modes, memory_order_acquire);
}

/* J: acquire; pairs with open_addresses of residency/lazy.c, which another thread may run. */
static inline acs_memory *acs_context_addresses(const acs_context *context)
{
    return atomic_load_explicit(&context->addresses, memory_order_acquire);
}

/* E: release; pairs with acs_context_modes. */
static inline void acs_context_add_mode(acs_context *context, uint64_t mode)
{
    atomic_fetch_or_explicit(&context->modes, mode, memory_order_release);
}

/* A block outside all groups was taken from the pools of this kind; the ledger is told. */
static inline void acs_context_kept(acs_context *context, int kind)
{
    if (ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_LEDGER))
        context->hooks->kept(context, kind);
}

static inline bool acs_context_is_lost(const acs_context *context)
{
    return acs_context_modes(context) & ACS_MODE_LOST;
}

/*
 * F: relaxed; pairs with acs_failures_end and keep_first. A thread that knows of an end sees what was stored before it.
 */
static inline bool acs_context_has_failures(const acs_context *context)
{
    return ACS_UNLIKELY(atomic_load_explicit(&context->has_failures, memory_order_relaxed));
}

acs_status acs_failures_first_of(acs_context *context, acs_error *error);
/* The first error that the context keeps, copied to *error (may be NULL). Takes the core's lock only after a failure. */
static inline acs_status acs_failures_first(acs_context *context, acs_error *error)
{
    return acs_context_has_failures(context) ? acs_failures_first_of(context, error) : ACS_OK;
}

acs_status acs_failures_find(acs_context *context, acs_op op, acs_error *error);
/* How an op ended; the caller knows that it has. Takes the core's lock only after a failure. */
static inline acs_status acs_failures_of(acs_context *context, acs_op op, acs_error *error)
{
    return acs_context_has_failures(context) ? acs_failures_find(context, op, error) : ACS_OK;
}

/*
 * Enter the context that a public call names (NULL: the default one, opened if need be). Defined in default.c.
 * @return the context; NULL with an error that names `function`: it is closed, belongs to the parent of a forked
 *         process or cannot be opened, or the call came from inside a callback.
 */
#define acs_context_enter(context, function) acs_context_enter_at((context), (function), NULL)
/* The same for a call that returns a status: where there is no context, it returns the error's. */
#define ACS_ENTER(context)                                                                                             \
    do {                                                                                                               \
        (context) = acs_context_enter(context, __func__);                                                              \
        if (ACS_UNLIKELY(!(context)))                                                                                  \
            return acs_error_thread()->status;                                                                         \
    } while (0)
/* The same of a call at `site`, which lines of the log name; NULL: unknown. */
acs_context *acs_context_enter_at(acs_context *context, const char *function, const acs_site *site);
/*
 * The same for calls that queue an op at `site` (NULL: unknown). The error of a call from inside a callback is also
 * kept in the context, under the core's lock.
 */
acs_context *acs_context_enter_op(acs_context *context, const char *function, const acs_site *site);
/* acs_context_enter failed: add the site to this thread's error, and keep it as acs_context_enter_op says. */
void acs_context_refuse_op(acs_context *context, const acs_site *site);
/*
 * Find another open context whose memory holds the address; NULL: none. *block is the block that is or was there, with
 * 0 bytes if that is not remembered. ACS_LAZY blocks of others are not looked for. The result is for error texts only:
 * that context may be closed by now. Defined in registry.c.
 */
const acs_context *acs_context_other(const acs_context *context, uint64_t address, acs_block *block);
/* ACS_OK if `op` is the number of a queued op; else an error that names `function`. Defined in sync.c. */
acs_status acs_context_check_op(acs_context *context, acs_op op, const char *function);

#endif

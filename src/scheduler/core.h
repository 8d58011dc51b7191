/*
 * The core: FIFO, window, slots and retirement as one state machine over a backend, which any thread may step.
 *
 * A step has three parts. acs_core_next chooses an action under the lock. acs_core_perform executes it without the
 * lock: the only place where submit, poll and user code run. acs_core_done books the results under the lock. Several
 * steps may be under way at once. The core makes no threads and never sleeps (src/api does); its caller passes the
 * time in.
 *
 * CORE-1  an entry in an action is ISSUING and belongs to that action until acs_core_done.
 * CORE-2  an op ends only when its upstream ops have completed. Each end is reported once to config.on_end (with
 *         failures_only: each bad one). Ops that one booking finds complete are reported in any order: a completed op
 *         vouches for its upstream ops in other slots.
 * CORE-3  after a device fault nothing more is issued, and every op ends with ACS_ERR_DEVICE.
 * CORE-4  once the device was given up (overdue.c) the record of an op that had begun is never used again. An
 *         abandoned action books nothing: its thread may return at any time, or never.
 */
#ifndef ACS_CORE_H
#define ACS_CORE_H

#include "scheduler/backend.h"
#include "base/lock.h"
#include "base/tuning.h"
#include "window/record.h"
#include "scheduler/batcher.h"
#include "scheduler/slots.h"
#include "scheduler/trace.h"
#include "window/fifo.h"
#include "window/window.h"

#include <stdatomic.h>

typedef enum acs_action_type {
    ACS_ACTION_NONE,   /* nothing to perform */
    ACS_ACTION_SUBMIT, /* hand a batch to the backend, then poll the listed slots */
    ACS_ACTION_HOST    /* run a host function, a retire callback, a library call of a host backend, or a free */
} acs_action_type;

typedef struct acs_poll {
    uint16_t slot;
    uint16_t mark_count;
    acs_mark marks[TUNE_POLL_EVENTS];
    uint64_t completed; /* newest value seen complete; set by the poll */
} acs_poll;

/* Whether a step could find work, or ops run in the backend. */
typedef enum acs_core_load {
    ACS_LOAD_NONE,
    ACS_LOAD_RUNNING, /* ops run, and all queued ops are issued */
    ACS_LOAD_BLOCKED  /* ops wait: the next completion may make some ready */
} acs_core_load;

/* What the caller should tell other threads after the step has left the lock. */
typedef struct acs_core_news {
    bool condition_met;         /* a wait condition became true */
    bool host_left, issue_left; /* another thread could now run a host function; issue or poll */
    acs_core_load load;
} acs_core_news;

struct acs_action {
    acs_action_type type;
    struct acs_action *next_under_way; /* in core.under_way, from acs_core_next to acs_core_done */
    bool abandoned;                    /* the watchdog has ended its ops: CORE-4 */
    /* time under way without an end of another op; counters.retired at its begin; for overdue.c */
    uint64_t waited_ns, ends_seen;
    bool yields;                       /* its polls stop as soon as an op is queued */
    bool partial;                      /* it polls some slots of its devices only */
    bool marked;                       /* it submits marks and polls nothing; the next step polls */
    bool looks;                        /* it polls only the slot of the awaited op */
    bool progress; /* set by acs_core_done: something was issued, run or found complete, or an op was queued */
    uint64_t retired_before;           /* counters.retired when the action was chosen */
    acs_core_news news;                /* set by acs_core_next, even if it finds nothing, and by acs_core_done */
    uint32_t device;                   /* device whose ops are issued first; set by the caller of acs_core_next */
    uint64_t batch_id;
    acs_batch batch;
    uint32_t entries[ACS_BATCH_ITEMS]; /* window entry of each item; 0: the item has marks only */
    uint32_t poll_devices;             /* one bit per device that is polled */
    uint32_t poll_count;
    acs_poll polls[ACS_SLOTS_MAX];
    acs_status poll_status;
    uint64_t polls_end_ns;                 /* by config.now_ns; only if `judges` */
    bool judges;                           /* a device's first ops are to be judged by these polls */
    acs_error fault;                   /* the failed poll's */
    /* HOST */
    uint32_t host_entry;
    acs_record *host_op;
    acs_status target_status;          /* of a callback: how its op ended */
    acs_status host_status;
    int host_native;
};

/*
 * What a step may do; a mask. ACS_MAY_LOOK is used alone. ACS_MAY_REST: it polls only where something needs to know what has
 * completed: ops that wait for it, or a window that becomes full.
 */
enum { ACS_MAY_ISSUE = 1, ACS_MAY_HOST = 2, ACS_MAY_INSERT = 4, ACS_MAY_ALL = 7, ACS_MAY_LOOK = 8, ACS_MAY_REST = 16 };

/*
 * What a caller waits for. In the core's list from acs_core_add_condition to acs_core_remove_condition; owned by the
 * caller.
 */
typedef enum acs_wait_condition_type {
    ACS_WAIT_FOR_OP,  /* `op` has ended */
    ACS_WAIT_FOR_ALL, /* all ops up to `op` have ended */
    ACS_WAIT_FOR_ROOM /* an op left the FIFO or ended since */
} acs_wait_condition_type;

typedef struct acs_wait_condition {
    acs_wait_condition_type type;
    acs_op op;
    uint64_t since;
    /* a step has reported that it is true: once only, or a caller that steps meanwhile would wake itself each time */
    bool told;
    struct acs_wait_condition *next;
} acs_wait_condition;

/*
 * How an op ended, for the owner of errors and statistics. on_end runs under the core's lock and must not call the
 * core.
 */
typedef struct acs_end {
    const acs_record *op;
    acs_status status;
    acs_op failed_by;  /* of a SKIPPED op: the op that failed first */
    int native;
    const char *text;  /* the backend's, or NULL */
    acs_label serialised_behind; /* the op whose issue or end made this one ready; site NULL: none */
} acs_end;

typedef struct acs_core_config {
    const acs_options *options;
    acs_backend *backend;
    acs_record_pool *records;
    void *user;
    bool failures_only; /* on_end is called for failed and skipped ops only */
    bool depths;        /* count the longest chains in replays */
    void (*on_end)(void *user, const acs_end *end);
    void (*on_fault)(void *user, const acs_error *error);         /* the device is lost; called once */
    /* ACS_CHECK: two ops conflict and are not ordered */
    void (*on_check)(void *user, const acs_record *op, const acs_record *other);
    /* under the lock: the memory of a FREE op is about to be given back */
    void (*on_free)(void *user, const acs_record *op);
    /* give the memory of a FREE op back; called without the lock */
    acs_status (*give_back)(void *user, const acs_record *op);
    acs_status (*status_of)(void *user, acs_op op);               /* under the lock: how an ended op ended */
    acs_activity *activity; /* told the number of running ops; NULL: none */
    uint64_t (*now_ns)(void *user); /* a clock, called without the lock; NULL: execution times are not learnt */
    const acs_batcher *batcher; /* NULL: none; not used where ops go in order */
} acs_core_config;

typedef struct acs_core_counters {
    uint64_t retired;               /* numbers whose ops have ended, with `unused_retired` */
    uint64_t failed, skipped;
    uint64_t kinds[ACS_KIND_COUNT]; /* ops issued, by acs_op_kind */
    uint64_t submissions, running_high;
    uint64_t bundles, bundles_refused;
    uint64_t methods[ACS_METHOD_COUNT]; /* kernels issued, by acs_issue_method */
    uint64_t copies_as_kernels, calls_as_kernels;
    uint64_t replays, replayed;     /* replays issued, and the kernels in them */
    uint64_t shares;                /* kernels issued to a part of a device */
    /* numbers of replays' ops that were left out, of replays that were inserted, and of those that have ended */
    uint64_t unused, unused_retired;
    /* kernels launched: not bundleable; bundle refused; others */
    uint64_t launched_unfit, launched_refused, launched_few;
} acs_core_counters;

/* The time for which the oldest op of a slot may be the reason that the slot makes no progress. */
typedef struct acs_patience {
    acs_op op;          /* the oldest op; 0: nothing is watched */
    uint64_t waited_ns;
    uint64_t ends_seen; /* counters.retired when it became the oldest */
} acs_patience;

/* The watchdog's memory between two looks. */
typedef struct acs_overdue {
    uint64_t limit_ns; /* 0: no limit; constant */
    uint64_t looked_ns, ends_seen;
    acs_patience slots[ACS_SLOTS_MAX];
} acs_overdue;

struct acs_core {
    acs_lock lock;           /* rank CORE; guards every field below but the atomic ones */
    acs_window window;
    acs_slots slots;
    /* padding: each call reads the fields behind it, each op changes those around it */
    unsigned char apart_slots[ACS_CACHE_LINE];
    acs_fifo *fifo;
    acs_backend *backend;
    acs_core_config config;
    unsigned char apart_stalled[ACS_CACHE_LINE];
    acs_record *stalled;     /* the next op in program order, if the window had no room for it */
    acs_op taken;            /* newest op that entered the window */
    uint64_t popped;         /* ops taken from the FIFO, with `stalled` */
    uint64_t published;      /* counters.retired when `ends` and `settled` were stored */
    acs_op host_turn;        /* in order: newest op run on the host; the next one waits for its end */
    acs_op next_in_order;    /* in order (ACS_SERIAL, ACS_DISABLE): the next op to issue */
    bool in_order;
    bool host_calls;
    bool check_overlap;
    uint32_t polling;        /* one bit per device that is being polled */
    uint32_t turned_away;    /* of these, the devices that another thread would have polled */
    bool dead;               /* the device is lost */
    bool given_up;           /* ops that had begun may still run, or never end: CORE-4 */
    uint32_t abandoned;      /* abandoned actions that are still under way */
    acs_action *under_way;   /* list of the actions between acs_core_next and acs_core_done */
    uint64_t polled;         /* one bit per slot polled since the watchdog's last look */
    acs_overdue overdue;
    uint32_t batch_limit;
    const acs_batcher *batcher; /* NULL: each op is issued by itself; constant */
    struct acs_bundler *bundler; /* owned by the batcher */
    bool batching;           /* there is a batcher, and the backend takes bundles; once true it stays so */
    uint32_t batch_ahead;    /* ops that the batcher wants in the window; 0: no batcher */
    uint32_t bundled_out;    /* ops of bundles that have not ended */
    uint32_t batch_least;    /* least ops of a bundle, while `batching` */
    bool holding;            /* ready ops are deferred for a bundle, and no other op is ready */
    uint32_t since_poll;     /* ops and marks issued since all slots of a device were polled */
    uint32_t poll_next;      /* slot at which the next partial poll begins */
    uint32_t running;        /* issued ops that have not ended */
    uint32_t host_running;   /* host functions and library calls that are executing */
    uint64_t batch_ids;
    acs_queue host_queue;    /* ISSUING ops that wait for a thread to run them on the host */
    acs_op awaited_hastened; /* the awaited op, once no op is to be issued early for it */
    acs_wait_condition *polls_itself;
    /* padding: callers read `ends` all the time, the fields before it change often */
    unsigned char apart_before[ACS_CACHE_LINE];
    _Atomic(uint64_t) ends;  /* ops that have ended; relaxed: a hint that a look is worth while */
    uint64_t spans;          /* numbers of replays in the window, but one for each */
    _Atomic(acs_op) settled; /* all ops up to this one have ended; B: publish -> acs_core_settled */
    _Atomic(bool) poisoned;  /* failed ops left poison; stored before `settled`: publish -> acs_core_forget_block */
    _Atomic(acs_op) awaited; /* the op that a caller awaits; 0: none. Relaxed: a hint, see awaited.c */
    unsigned char apart_behind[ACS_CACHE_LINE];
    acs_trace_follower followers[ACS_TRACE_FOLLOWERS];
    uint32_t follower_count;
    acs_core_counters counters;
};

/* Slots per device of a context with these options. */
uint32_t acs_core_slots(const acs_options *options);
/*
 * `config` is copied; what it points to must outlive the core. ACS_ERR_MEMORY and errors of the batcher: nothing is left
 * allocated. acs_core_fini: no action is under way.
 */
acs_status acs_core_init(acs_core *core, const acs_core_config *config);
void acs_core_fini(acs_core *core);

/*
 * The parts of a step; each takes the lock if it needs it. acs_core_next: `may` is a mask of ACS_MAY_*. False: there
 * is nothing to do now. True with ACS_ACTION_NONE: it only filled the window, and there may be more to insert.
 */
bool acs_core_next(acs_core *core, uint32_t may, acs_action *action);
void acs_core_perform(acs_core *core, acs_action *action);
void acs_core_done(acs_core *core, acs_action *action);
/*
 * A replay that was queued without its ops has them now: until then it is held in the window. Its record stays the
 * core's. The caller wakes a thread, as for a queued op.
 */
void acs_core_replay_sealed(acs_core *core, acs_record *record, struct acs_replay *replay);
/* Fill the window only, without an action. False: another thread has the lock, and nothing was done. */
bool acs_core_insert_try(acs_core *core, acs_core_news *news, bool *inserted);

/* Whether a wait condition is true; ACS_WAIT_FOR_ROOM needs acs_core_add_condition before. Takes the lock. */
bool acs_core_true(acs_core *core, const acs_wait_condition *condition);
/* Whether the window had no room for the next op. Takes the lock. */
bool acs_core_stalled(acs_core *core);
/*
 * Whether nothing is under way but host functions and library calls, one of which may be asking. Then ops that wait do so
 * for these, or for what is held. Takes the lock.
 */
bool acs_core_rests(acs_core *core);
void acs_core_add_condition(acs_core *core, acs_wait_condition *condition);
void acs_core_remove_condition(acs_core *core, acs_wait_condition *condition);
/*
 * Number of ops that have ended; may be late. A replay that was taken counts as all of its numbers but one. Without the
 * lock.
 */
uint64_t acs_core_ends(acs_core *core);
/* All ops up to this one have ended and none of them runs. May be late. Without the lock (B). */
acs_op acs_core_settled(const acs_core *core);
/*
 * Memory of settled ops is handed out again: forget the failures of ops that used it, which do not concern the new
 * owner. Takes the lock only if an op has failed.
 */
void acs_core_forget_block(acs_core *core, uint64_t base, uint64_t bytes);
/* The core's load. Takes the lock. */
acs_core_load acs_core_look(acs_core *core);
/*
 * The load and a wait condition in one, for threads that spin. False: another thread has the lock, and the results are
 * untouched. `condition` may be NULL; then *is_true is untouched. *load is BLOCKED also if more than `few` ops run,
 * unless all of them have ended when the awaited op has.
 */
bool acs_core_look_try(acs_core *core, const acs_wait_condition *condition, uint32_t few, bool *is_true,
                       acs_core_load *load);
/* Forget all failures. The window must be empty. Takes the lock. */
void acs_core_clear(acs_core *core);

/*
 * The watchdog (overdue.c): look whether an op has run for longer than options.watchdog_s, and then give the device
 * up. True: it was given up, so every wait is over soon. `now_ns`: any clock that never goes back. While ops are out,
 * call it right after a step that found nothing to do, at least four times within the limit. Takes the lock.
 */
bool acs_core_overdue(acs_core *core, uint64_t now_ns);
/* The device was found lost outside of a step: end its ops. The caller wakes sleepers. Takes the lock. */
void acs_core_lose(acs_core *core, acs_error *error);
/* Whether ops that had begun were given up, and may still run. Takes the lock. */
bool acs_core_given_up(acs_core *core);
/* Whether an action is under way and abandoned: its thread is inside a call that may never return. Takes the lock. */
bool acs_core_abandoned(acs_core *core, const acs_action *action);
/* Number of abandoned actions under way. Takes the lock. */
uint32_t acs_core_left(acs_core *core);
/* For tests: the length in nanoseconds of one second of options.watchdog_s, in contexts opened from now on. */
void acs_core_overdue_unit(uint64_t unit_ns);

/*
 * A caller begins, or ceases, to await this op. While there is little to do, its upstream ops are issued first, and a
 * step with ACS_MAY_LOOK polls its slot alone (awaited.c). Hints, without the lock; of several callers the newest
 * counts.
 */
void acs_core_await(acs_core *core, acs_op op);
void acs_core_await_no_more(acs_core *core, acs_op op);

#endif

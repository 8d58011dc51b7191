/*
 * The core: FIFO -> window -> slots -> backend -> retirement, as a state machine that any thread may step.
 *
 * A step has three parts. acs_core_next decides, under the lock, what to do; acs_core_perform does it without the lock
 * (the only place where backend functions and user code run); acs_core_done books the result, under the lock. Several
 * steps may be under way at once. No thread and no sleeping here: src/api adds those. Of clocks one for statistics, and
 * one that is passed in.
 *
 * CORE-1  an entry in an action is ISSUING and belongs to that action until acs_core_done.
 * CORE-2  an op ends only when what it depends on has completed, and every end is reported exactly once to
 * config.on_end
 *         (of failures_only, every bad one). Ops that one booking finds complete may be reported in any order: a
 *         completed op vouches for those of other slots.
 * CORE-3  after a device fault nothing more is issued, and every op ends with ACS_ERR_DEVICE.
 * CORE-4  once the device was given up (overdue.c) the record of an op that had begun is never used again, and an
 *         action that was abandoned books nothing: whoever is inside one may return at any time, or never.
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
    ACS_ACTION_SUBMIT, /* hand a batch to the backend, then poll what is listed */
    ACS_ACTION_HOST    /* run a host function, a retire callback, a library call on a host backend, or a free */
} acs_action_type;

typedef struct acs_poll {
    uint16_t slot;
    uint16_t mark_count;
    acs_mark marks[TUNE_POLL_EVENTS];
    uint64_t completed; /* result */
} acs_poll;

/* Whether a step could find something to do, or something is under way in the backend. */
typedef enum acs_core_load {
    ACS_LOAD_NONE,
    ACS_LOAD_RUNNING, /* ops run, and all that were queued are issued */
    ACS_LOAD_BLOCKED  /* the next completion may let others go */
} acs_core_load;

/* What others should be told once the core's lock is free. */
typedef struct acs_core_news {
    bool condition_met;         /* a watch came true */
    bool host_left, issue_left; /* another thread could run a host function, or issue or poll, now */
    acs_core_load load;
} acs_core_news;

struct acs_action {
    acs_action_type type;
    struct acs_action *next_under_way; /* from acs_core_next to acs_core_done */
    bool abandoned;                    /* its ops were ended without it: CORE-4 */
    uint64_t waited_ns, ends_seen;     /* how long it is under way, for overdue.c */
    bool yields;                       /* its polls stop where an op is queued meanwhile */
    bool partial;                      /* they are of some slots only */
    bool marked;                       /* it submits marks and polls nothing: its next step does */
    bool looks;                        /* only whether the op ended that a caller waits for */
    bool progress;                     /* set by acs_core_done: something was issued, run or found complete, or came */
    uint64_t retired_before;           /* counters.retired when the action was chosen */
    acs_core_news news;                /* set by acs_core_next (found or not) and acs_core_done */
    uint32_t device;                   /* whose ops are looked for first; for whoever steps to set */
    uint64_t batch_id;
    acs_batch batch;
    uint32_t entries[ACS_BATCH_ITEMS]; /* window entry of each item; 0: marks only */
    uint32_t poll_devices;             /* a bit for each that is polled */
    uint32_t poll_count;
    acs_poll polls[ACS_SLOTS_MAX];
    acs_status poll_status;
    uint64_t polls_begin_ns, polls_end_ns; /* by config.now_ns */
    acs_error fault;                   /* of a poll that failed */
    /* HOST */
    uint32_t host_entry;
    acs_record *host_op;
    acs_status target_status;          /* callbacks: how their op ended */
    acs_status host_status;
    int host_native;
};

/* What a step may do; a mask. */
enum { ACS_MAY_ISSUE = 1, ACS_MAY_HOST = 2, ACS_MAY_INSERT = 4, ACS_MAY_ALL = 7, ACS_MAY_LOOK = 8 /* by itself */ };

/* What a sleeping caller waits for; in the core's list from acs_core_add_condition to acs_core_remove_condition. */
typedef enum acs_wait_condition_type {
    ACS_WAIT_FOR_OP,  /* `op` has ended */
    ACS_WAIT_FOR_ALL, /* all ops up to `op` have ended */
    ACS_WAIT_FOR_ROOM /* an op left the FIFO or ended since */
} acs_wait_condition_type;

typedef struct acs_wait_condition {
    acs_wait_condition_type type;
    acs_op op;
    uint64_t since;
    bool told; /* it came true and a step said so: once, or who steps in vain meanwhile would wake itself each time */
    struct acs_wait_condition *next;
} acs_wait_condition;

/* How an op ended, for the owner of errors and statistics. Called under the core's lock; must not call back. */
typedef struct acs_end {
    const acs_record *op;
    acs_status status;
    acs_op cause;      /* SKIPPED: the op that failed first */
    int native;
    const char *text;  /* from the backend, or NULL */
    acs_label serialised_behind; /* the op whose progress let this one go last; site NULL: none */
} acs_end;

typedef struct acs_core_config {
    const acs_options *options;
    acs_backend *backend;
    acs_record_pool *records;
    void *user;
    bool failures_only; /* on_end is not told of ops that ended well */
    void (*on_end)(void *user, const acs_end *end);
    void (*on_fault)(void *user, const acs_error *error);         /* the device is lost; first time only */
    void (*on_check)(void *user, const acs_record *op, const acs_record *other); /* ACS_CHECK: not ordered */
    void (*on_free)(void *user, const acs_record *op);            /* the memory of a FREE op is about to be given back */
    acs_status (*give_back)(void *user, const acs_record *op);    /* do it; without the lock */
    acs_status (*status_of)(void *user, acs_op op);               /* of an op that ended */
    acs_activity *activity; /* told what runs, as far as the core knows; NULL: nobody wants to know */
    uint64_t (*now_ns)(void *user); /* a clock, or NULL: nothing is learnt of what devices take; without the lock */
    const acs_batcher *batcher; /* NULL: none; it is not asked where ops go in order */
} acs_core_config;

typedef struct acs_core_counters {
    uint64_t retired, failed, skipped;
    uint64_t kinds[ACS_KIND_COUNT]; /* issued, by kind */
    uint64_t submissions, running_high;
    uint64_t bundles, bundles_refused;
    uint64_t methods[ACS_METHOD_COUNT]; /* kernels issued, by issue method */
    uint64_t copies_as_kernels, calls_as_kernels;
    uint64_t launched_unfit, launched_refused, launched_few; /* kernels launched, by why */
} acs_core_counters;

/* How long the oldest op of a slot has been alone to blame that nothing moves there. */
typedef struct acs_patience {
    acs_op op;          /* 0: nothing is watched */
    uint64_t waited_ns;
    uint64_t ends_seen; /* counters.retired when it became the oldest */
} acs_patience;

/* What overdue.c remembers from look to look. */
typedef struct acs_overdue {
    uint64_t limit_ns; /* 0: ops may take as long as they like; constant */
    uint64_t looked_ns, ends_seen;
    acs_patience slots[ACS_SLOTS_MAX];
} acs_overdue;

/* Submissions since all slots of a device were polled. */
typedef struct acs_since_poll {
    uint32_t own; /* to that device */
    uint32_t all;
} acs_since_poll;

struct acs_core {
    acs_lock lock;           /* rank CORE; guards everything below */
    acs_window window;
    acs_slots slots;
    unsigned char apart_slots[ACS_CACHE_LINE]; /* each call reads what follows; what stands around it changes with each op */
    acs_fifo *fifo;
    acs_backend *backend;
    acs_core_config config;
    unsigned char apart_stalled[ACS_CACHE_LINE];
    acs_record *stalled;     /* next op in program order, for which the window had no room */
    acs_op taken;            /* newest op in the window */
    uint64_t popped;         /* ops taken from the FIFO, `stalled` included */
    uint64_t published;      /* counters.retired when `ends` and `settled` were stored last */
    acs_op host_turn;        /* in order: the newest op that runs on the host; what follows waits for its end */
    acs_op next_in_order;    /* ACS_SERIAL, ACS_DISABLE: the op to issue next */
    bool in_order;
    bool host_calls;
    bool check_overlap;
    uint32_t polling;        /* a bit for each device of which a poll is under way, */
    uint32_t turned_away;    /* and where another thread would have polled meanwhile */
    bool dead;               /* the device is lost */
    bool given_up;           /* ops that had begun may still run, and may never end: CORE-4 */
    uint32_t abandoned;      /* actions under way that were abandoned */
    acs_action *under_way;   /* all actions between acs_core_next and acs_core_done */
    uint64_t polled;         /* slots that were polled since the watchdog looked */
    acs_overdue overdue;
    uint32_t batch_limit;
    const acs_batcher *batcher; /* NULL: each op is issued by itself; constant, as the others but `bundled_out` */
    struct acs_bundler *bundler; /* the batcher's own */
    uint32_t batch_ahead;    /* ops that it wants to see in the window; 0: no batcher */
    uint32_t bundled_out;    /* ops of its batches that have not ended */
    uint32_t batch_least;    /* fewer ops are no batch of its; UINT32_MAX: no batcher */
    bool reads_clock;        /* when polls begin and end; constant */
    bool holding;            /* ready ops are deferred for a batch of several, and nothing else is ready */
    acs_since_poll since_poll[ACS_DEVICES_MOST];
    uint32_t poll_next;      /* slot from which the next poll begins that may end before it asked about all */
    uint32_t running;        /* ops issued that have not ended */
    uint32_t host_running;   /* host functions and library calls that threads of the runtime are in */
    uint64_t batch_ids;
    acs_queue host_queue;    /* READY ops that run on the host */
    acs_op hurried;          /* the op that is waited for, once nothing is to be issued early for it */
    acs_wait_condition *polls_itself;
    unsigned char apart_before[ACS_CACHE_LINE]; /* callers read `ends` all the time; what stands beside it changes often */
    _Atomic(uint64_t) ends;  /* ops that ended; read without the lock to see whether looking is worth while */
    _Atomic(acs_op) settled; /* all ops up to this one have ended */
    _Atomic(bool) poisoned;  /* failed ops have left regions that make later ones skip */
    _Atomic(acs_op) wanted;  /* what a caller waits for; 0: nothing, or more than one op. A hint: see awaited.c */
    unsigned char apart_behind[ACS_CACHE_LINE];
    acs_trace_fn trace;
    void *trace_user;
    acs_core_counters counters;
};

/* How many slots a context with these options has for each device. */
uint32_t acs_core_slots(const acs_options *options);
acs_status acs_core_init(acs_core *core, const acs_core_config *config);
void acs_core_fini(acs_core *core);

/*
 * All three take the lock themselves, where they need it. acs_core_next: false if there is nothing to do now; true with
 * ACS_ACTION_NONE if it only filled the window: then there is nothing to perform, but perhaps more to insert.
 */
bool acs_core_next(acs_core *core, uint32_t may, acs_action *action);
void acs_core_perform(acs_core *core, acs_action *action);
void acs_core_done(acs_core *core, acs_action *action);
/* Fill the window and do nothing else, without an action. False: another thread has the core, which was left alone. */
bool acs_core_insert_try(acs_core *core, acs_core_news *news, bool *inserted);

/* Whether what a caller waits for has come true; ACS_WAIT_FOR_ROOM never does by itself. Takes the lock. */
bool acs_core_true(acs_core *core, const acs_wait_condition *condition);
void acs_core_add_condition(acs_core *core, acs_wait_condition *condition);
void acs_core_remove_condition(acs_core *core, acs_wait_condition *condition);
/* How many ops have ended, about. Without the lock. */
uint64_t acs_core_ends(acs_core *core);
/* All ops up to this one have ended, and nothing of them runs any more. Without the lock; may be late. */
acs_op acs_core_settled(const acs_core *core);
/*
 * Memory that ops up to `last`, which have settled, used is handed out again: what failed among them is no concern of
 * who gets it. Takes the lock only if something failed.
 */
void acs_core_forget_block(acs_core *core, uint64_t base, uint64_t bytes);
/* What there is to do. Takes the lock. */
acs_core_load acs_core_look(acs_core *core);
/*
 * Both for threads that spin: false, and nothing is known, while another thread is at work in the core. `watch` may be
 * NULL, then *is_true stays as it is. *load is BLOCKED also where more than `few` are out and one of them is waited
 * for, not all.
 */
bool acs_core_look_try(acs_core *core, const acs_wait_condition *condition, uint32_t few, bool *is_true,
                       acs_core_load *load);
/* Forget failures in the window; the window is empty. Takes the lock. */
void acs_core_clear(acs_core *core);

/*
 * The watchdog (overdue.c). Look whether an op has run for longer than options.watchdog_s; then give the device up.
 * True: something was given up, so every wait is or soon will be over. To be called now and then while ops are out, at
 * least four times in the limit, right after a step that found nothing to do; `now_ns` is any clock that never goes
 * back.
 */
bool acs_core_overdue(acs_core *core, uint64_t now_ns);
/* The device was found lost outside of a step. What it had ends; sleepers are the caller's to wake. */
void acs_core_lose(acs_core *core, acs_error *error);
/* Whether ops that had begun were given up, and may still run. */
bool acs_core_given_up(acs_core *core);
/* Whether this action is under way and abandoned: its thread is inside something that need not return. */
bool acs_core_abandoned(acs_core *core, const acs_action *action);
/* Actions under way that were abandoned. */
uint32_t acs_core_left(acs_core *core);
/* What one second of options.watchdog_s is, in nanoseconds, for contexts opened from now on (tests). */
void acs_core_overdue_unit(uint64_t unit_ns);

/*
 * A caller waits for this op, and does not any more: what leads to it is issued first while there is little to do, and
 * a step with ACS_MAY_LOOK looks whether it has ended (awaited.c). Hints, without the lock; of several callers the
 * newest counts.
 */
void acs_core_want(acs_core *core, acs_op op);
void acs_core_want_no_more(acs_core *core, acs_op op);

/* Between the files of the core; all under the lock. */
/* Whether it may be in a batch of several. One that was refused there is launched. */
static inline bool acs_entry_rides(const acs_entry *entry)
{
    return entry->rides && !entry->bounced;
}
/* Whether an entry that was issued to a slot is a kernel that was launched by itself. */
static inline bool acs_entry_launched(const acs_entry *entry)
{
    return entry->asked == ACS_KIND_KERNEL && !entry->bundled;
}
/* Whether ops at the front of the ready queue, and urgent ones that follow them, are to be issued before others. */
bool acs_core_hurry_locked(acs_core *core);
/* Whether all that is out has ended when the op has that a caller waits for; also where nobody waits for one op. */
bool acs_core_awaits_end_locked(acs_core *core);
/* The op that a caller waits for, where that is in the window and was not issued; else 0. */
acs_op acs_core_awaited_locked(acs_core *core);
/* A poll, or a mark, for the op that a caller waits for. */
void acs_core_form_look_locked(acs_core *core, acs_action *action);
/* A poll of the slot in which the op is that a caller waits for, where it is in one. */
void acs_core_list_awaited_locked(acs_core *core, acs_action *action);
void acs_core_list_poll_locked(acs_core *core, acs_action *action, uint32_t slot);
void acs_core_overdue_init(acs_core *core);
void acs_core_insert_locked(acs_core *core, uint32_t most);
void acs_core_collect_locked(acs_core *core);
/* Plain, or a bundle. `inserted`: something came into the window just now. */
void acs_core_form_batch_locked(acs_core *core, acs_action *action, bool inserted);
/* Whether a ready entry is not to be launched by itself: it is deferred, or to be in a batch of several. */
static inline bool acs_core_holds(const acs_core *core, const acs_entry *entry)
{
    return core->batcher && acs_entry_rides(entry) && !entry->alone && !core->dead;
}
void acs_core_book_batch_locked(acs_core *core, acs_action *action);
void acs_core_push_host_locked(acs_core *core, acs_entry *entry);
acs_entry *acs_core_pop_host_locked(acs_core *core);
void acs_core_retire_locked(acs_core *core, uint32_t slot);
void acs_core_fault_locked(acs_core *core, acs_error *error);
void acs_core_fail_locked(acs_core *core, acs_entry *entry, acs_status status, int native, const char *text);
void acs_core_running_locked(acs_core *core, int change);
/* Slots or host functions changed: tell the activity, if there is one. */
void acs_core_tell_activity_locked(acs_core *core);
static inline void acs_core_activity_locked(acs_core *core)
{
    if (ACS_UNLIKELY(core->config.activity != NULL))
        acs_core_tell_activity_locked(core);
}
void acs_core_trace_locked(acs_core *core, acs_trace_type type, const acs_entry *entry, const acs_item *item,
                           const acs_batch *batch);
/* check.c: whether a path of the batch's edges leads from item `from` to item `to`. */
bool acs_check_batch_orders(const acs_batch *batch, uint32_t from, uint32_t to);
/* Report ops under way that conflict with `entry` and are not ordered before it. */
void acs_core_check_issue_locked(acs_core *core, const acs_batch *batch, const acs_entry *entry);

#endif

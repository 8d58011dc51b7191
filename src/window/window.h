/*
 * The window: ops taken from the FIFO that have not retired, the dependencies among them, and who is ready. A state
 * machine without threads, clock or CUDA; its owner (the core) calls it under one lock.
 *
 * An entry lives from insertion until its end was collected:
 *
 *   PENDING -> READY -> ISSUING -> ISSUED -> ENDED -> free
 *      |         ^---- bounced ---'            ^
 *      '---- skipped, failed: DRAINING --------'
 *
 * Joins, and observers that run nothing on the device, go from PENDING to ENDED.
 *
 * WIN-1  live ops <= limit, or 1 where that is 0; joins have places of their own, so they never wait for those of ops.
 * WIN-2  entry.pending counts its upstream edges that are not satisfied; READY, ISSUING and ISSUED imply pending == 0,
 *        except for ISSUING ops that follow an upstream op inside the same batch.
 * WIN-3  an edge is in exactly one list: of its upstream entry, or of the free edges.
 * WIN-4  a reference (acs_ref) whose generation differs from its entry's is dead: that op has ended.
 * WIN-5  an op ends only when everything that it depends on has completed, also when it failed or was skipped: who waits
 *        for it need not look further.
 * WIN-6  an insertion that begins can end: acs_window_has_room counts all joins and edges that it may take.
 * acs_window_check() tells whether WIN-1, WIN-2 and WIN-3 hold.
 */
#ifndef ACS_WINDOW_H
#define ACS_WINDOW_H

#include "base/base.h"
#include "base/tuning.h"
#include "window/record.h"
#include "window/regions.h"

typedef enum acs_entry_state {
    ACS_ENTRY_FREE,
    ACS_ENTRY_PENDING,
    ACS_ENTRY_READY,
    ACS_ENTRY_ISSUING,        /* in a batch, or running on the host, outside the lock */
    ACS_ENTRY_ISSUED,         /* handed to a slot; a join: all upstream ops are issued */
    ACS_ENTRY_DRAINING,       /* will end as skipped or failed once the ops that it was to run behind are complete */
    ACS_ENTRY_ENDED
} acs_entry_state;

/* When an edge is satisfied. */
typedef enum acs_edge_type {
    ACS_EDGE_ISSUE,  /* when the upstream op was issued: the backend orders the two */
    ACS_EDGE_RETIRE, /* when it retired */
    ACS_EDGE_JOIN    /* to a join: counts at issue and again at retirement */
} acs_edge_type;

typedef struct acs_edge {
    uint32_t down;
    uint32_t next; /* 0: last */
    uint8_t type;
} acs_edge;

/*
 * By cache line: who depends on an op, gathers it for a bundle or tells it that another was issued reads the first; who
 * places, issues and ends it the first two. What is asked through references is apart: acs_hold.
 */
typedef struct acs_entry {
    _Alignas(ACS_CACHE_LINE) acs_record *op; /* NULL: a join */
    acs_op seq;            /* of a join: of the op whose insertion made it */
    acs_op cause;          /* nonzero: an op that it depends on failed: skip */
    uint32_t pending;
    uint32_t edges;        /* to downstream entries; 0: none */
    uint32_t waiters;      /* number of them */
    uint32_t level;        /* longest chain of dependent ops up to and with this one */
    uint32_t index;        /* its own place; constant */
    uint32_t batch_edge;   /* a bundle's first inner edge to it; 0: none */
    int16_t slot;          /* placement: scheduler; -1: none */
    uint8_t state;         /* acs_entry_state */
    uint8_t kind;          /* acs_op_kind */
    uint8_t asked;         /* acs_op_kind: what the program called; `kind` but for copies that became kernels */
    uint8_t on_host;       /* runs on, or is only about, the host: its edges are RETIRE on both sides */
    uint8_t immune;        /* never skipped */
    uint8_t carries;       /* not skipped, but those that depend on it are */
    uint8_t observer;      /* later ops do not depend on it */
    uint8_t touches;       /* names any byte or token */
    uint8_t writes;        /* names a segment that it writes */
    uint8_t rides;         /* a kernel that can be in a bundle */
    uint8_t bounced;       /* how often its issue was refused for now */
    uint8_t alone;         /* to be launched by itself, though it could be in a bundle */
    uint8_t bundled;       /* issued, or being issued, in a bundle */
    uint8_t cut;           /* bundles end before it */
    uint8_t urgent;        /* a caller waited for it, or for what comes behind it, when it was last looked at */
    uint8_t device;        /* of an op on which it runs; of a join, while bundles are gathered, that of what leads to it */
    /* order, placement */
    uint64_t batch;        /* batch that looked at it last, and how many of its upstream ops are in it */
    uint32_t batch_count;  /* in a bundle: its place there */
    uint32_t pending_waits; /* ops that must run behind it and have not been placed: they may still wait for its mark */
    uint64_t wait_mask;     /* slots with a need */
    uint64_t pending_wait_mask; /* of them, those that are counted in `claims` of the entry that they name */
    uint64_t value;        /* with `slot` */
    uint32_t clock;        /* entry whose place holds its clock: of a bundle the last op, which ends last */
    uint32_t queue_next;   /* ready, settle or ended queue */
    uint32_t queue_prev;   /* ready queue */
    uint32_t slot_next;    /* issued ops of one slot */
    uint32_t order_prev, order_next; /* program order of ops that have not ended */
    /* seldom */
    uint64_t own_stamp;    /* window.stamp when it was made */
    uint64_t issue_stamp;
    uint32_t unretired;    /* joins: upstream ops that have not retired */
    acs_status status;     /* how it ended */
    uint8_t reported;      /* its end was reported by the core */
    uint8_t left;          /* it had begun when the device was given up: its record may be in use for ever */
    acs_label last;        /* of the op whose progress made this one ready; for statistics */
    uint64_t inner_value;  /* of a bundle's op: newest value of its slot in the bundle that it runs behind; for statistics */
} acs_entry;

/*
 * What is asked of an entry through references, most of which lead nowhere any more: apart and small, so that those of
 * all entries stay in the nearest cache.
 */
typedef struct acs_hold {
    uint32_t generation;   /* counts the ops that had the place */
    uint32_t refs;         /* references held by regions: somebody may still come to depend on it */
    uint64_t stamp;        /* own_stamp of the entry to which an edge from here was made last: no edge twice */
} acs_hold;

/* The op must run behind (slot, value); `entry` issued it. */
typedef struct acs_slot_wait {
    uint64_t value;
    uint32_t entry;
    uint32_t generation;
} acs_slot_wait;

typedef struct acs_queue {
    uint32_t head, tail, count; /* entry indices; 0: none */
} acs_queue;

/*
 * The set of entries that a join was, or may be, made of last. Where the same set is met again, in other regions or by
 * the next op, one join stands for it: n ops behind the same m are n + m edges.
 */
typedef struct acs_shared {
    acs_ref join;          /* dead: none was made yet */
    uint32_t count;
    acs_ref refs[TUNE_JOIN_SHARED_MOST];
} acs_shared;

/* A block's new life, until nobody of the one before is left: `join` stands for those. */
typedef struct acs_life {
    acs_shape block;
    acs_op seq; /* the first op of the new life, about */
    uint32_t join, generation;
} acs_life;

typedef struct acs_window_counters {
    uint64_t edges, joins, barriers, inserted, window_high, levels;
} acs_window_counters;

/*
 * Told of each link instead of an edge being made: `down` is the op being inserted, or a join that its insertion makes.
 */
typedef void (*acs_window_linked)(void *user, acs_entry *up, acs_entry *down);

typedef struct acs_window {
    uint32_t limit;        /* W */
    uint32_t joins;        /* places for joins */
    uint32_t readers_most; /* that a region remembers one by one: more become a join */
    uint32_t slots;
    acs_window_linked linked; /* NULL but in windows of captures, in which ops are ready at once */
    void *user;            /* for `linked` */
    bool host_wait;        /* every edge is a RETIRE edge */
    bool sites;            /* see acs_window_config */
    bool dead;             /* the device is lost: what becomes ready ends with ACS_ERR_DEVICE */
    uint32_t live;         /* ops in the window */
    uint32_t live_joins;

    uint32_t entry_count;  /* entries 1..entry_count; 0 means none */
    acs_entry *entries;
    acs_hold *holds;       /* [entry] */
    acs_slot_wait *slot_waits; /* [entry][slot] */
    uint64_t *clocks;      /* [entry][slot]: see acs_entry_clock */
    uint32_t free_entries; /* through queue_next */
    uint32_t edge_count, edges_free, edges_used;
    acs_edge *edges;

    acs_queue ready;       /* waiting to be issued, by time of becoming ready */
    acs_queue settle;      /* pending == 0, to be looked at: joins, skips, observers */
    acs_queue draining;    /* to be ended by the core when their needs are complete */
    acs_queue ended;       /* to be collected by the core */
    uint32_t order_head, order_tail;
    uint32_t *by_seq;      /* at seq & seq_mask: the entry of the newest op inserted with such a number */
    uint32_t seq_mask;

    acs_regions *regions;
    acs_expected expected;
    acs_region **scratch;  /* regions of the op being inserted */
    uint32_t scratch_capacity;
    uint64_t insertion;    /* counts insertions */
    uint64_t stamp;        /* counts entries whose upstream ops were collected: ops and joins */
    uint32_t poisoned;     /* regions with poison */
    acs_life *lives;       /* that began lately: see acs_depend_reuse */
    uint32_t life_count;
    uint64_t epoch;        /* insertion of the newest op that wrote all memory */
    acs_ref all_writer;
    uint32_t all_reader_count;
    acs_ref all_readers[TUNE_ALL_READERS];
    acs_shared writers;    /* that an op with many reads was behind, */
    acs_shared readers;    /* and of a region with many */
    uint32_t level_all;    /* level of the newest writer of all memory, */
    uint32_t level_all_read; /* and the highest of a reader of all memory */
    uint32_t level_touched; /* highest level of an op that touches anything, */
    uint32_t level_written; /* and of one that writes anything */
    acs_op poison_all_read, poison_all_write; /* a failed op touched everything, or was forgotten */
    acs_op poison_any_read, poison_any_write; /* a failed op touched something */

    acs_window_counters counters;
} acs_window;

typedef struct acs_window_config {
    uint32_t limit, slots;
    bool host_wait;
    bool sites;            /* keep `last` of each op */
    acs_window_linked linked;
    void *user;
} acs_window_config;

acs_status acs_window_init(acs_window *window, const acs_window_config *config);
void acs_window_fini(acs_window *window);

static inline acs_entry *acs_window_entry(acs_window *window, uint32_t index)
{
    return &window->entries[index];
}
static inline uint32_t acs_entry_index(const acs_window *window, const acs_entry *entry)
{
    (void)window;
    return entry->index;
}
static inline acs_hold *acs_entry_hold(acs_window *window, const acs_entry *entry)
{
    return &window->holds[entry->index];
}
static inline acs_slot_wait *acs_entry_waits(acs_window *window, const acs_entry *entry)
{
    return &window->slot_waits[(size_t)acs_entry_index(window, entry) * window->slots];
}
/*
 * What was known to be ordered before it when it was issued, by slot; of its own slot `value` is, whatever stands
 * there.
 */
static inline uint64_t *acs_entry_clock(acs_window *window, const acs_entry *entry)
{
    return &window->clocks[(size_t)entry->clock * window->slots];
}
/* Entry 0 is nobody's, and its generation is not that of the reference to nothing. */
static inline bool acs_ref_live(const acs_window *window, acs_ref ref)
{
    return window->holds[ref.entry].generation == ref.generation;
}

/* Ask the cache for what is read of an entry, and of the one a few ops behind it. Hints. */
static inline void acs_entry_fetch(const acs_entry *entry)
{
    __builtin_prefetch(entry);
    __builtin_prefetch((const char *)entry + ACS_CACHE_LINE);
}
static inline void acs_window_fetch_behind(const acs_window *window, const acs_entry *entry)
{
    acs_entry_fetch(&window->entries[window->by_seq[(entry->seq + TUNE_WINDOW_FETCH_OPS) & window->seq_mask]]);
}

/* Whether an op with so many segments can be inserted now. */
bool acs_window_has_room(const acs_window *window, const acs_record *op);
/*
 * Insert the next op in program order; needs room. Its edges are made and its segments become what later ops depend on.
 * How the op is treated (host, observer, immune) was decided by the caller in `traits`. The entry ends up PENDING,
 * READY, or settled into `ended` (observers without upstream ops, skips).
 */
typedef struct acs_entry_traits {
    bool on_host, observer, immune;
    acs_op behind; /* nonzero: also wait for this op's retirement (callbacks) */
} acs_entry_traits;
acs_entry *acs_window_insert(acs_window *window, acs_record *op, const acs_entry_traits *traits);
/*
 * Its parts, for insert.c: a cleared entry for the op `seq`, whose record is `op` (NULL: a join); there is a free one.
 */
acs_entry *acs_window_take(acs_window *window, acs_op seq, acs_record *op);
/* The entry has its edges: append it to program order, count it, and queue it as ready if nothing is in front of it. */
void acs_window_inserted(acs_window *window, acs_entry *entry);
/* The next ops to be inserted are these, at most TUNE_EXPECT_OPS: what their insertion needs is asked of the cache. */
void acs_window_expect(acs_window *window, acs_record *const *ops, uint32_t count);
/* An op that was taken out of its queue, and not issued after all, waits again for what it depends on. */
void acs_window_release(acs_window *window, acs_entry *entry);

acs_entry *acs_window_pop_ready(acs_window *window);
void acs_window_push_ready(acs_window *window, acs_entry *entry, bool front);
/* Take a READY entry out of the middle of the queue. */
void acs_window_remove_ready(acs_window *window, acs_entry *entry);
/* An ISSUING op is now in its slot: satisfy its ISSUE edges. */
void acs_window_issued(acs_window *window, acs_entry *entry);
/* An op ended: satisfy its remaining edges (a failed one makes its downstream skip) and put it in `ended`. */
void acs_window_end(acs_window *window, acs_entry *entry, acs_status status, acs_op cause);
/* The same once all its needs are complete (WIN-5); the core ends what is in `draining`. */
void acs_window_drain(acs_window *window, acs_entry *entry, acs_status status, acs_op cause);
acs_entry *acs_window_pop_draining(acs_window *window);
/* Collect one ended entry (never a join); NULL: none. The caller then frees it. */
acs_entry *acs_window_pop_ended(acs_window *window);
void acs_window_free(acs_window *window, acs_entry *entry);

/* The op `seq`, if it is in the window. */
acs_entry *acs_window_find(acs_window *window, acs_op seq);
/* Oldest op that has not ended; 0: none. */
acs_op acs_window_oldest(const acs_window *window);
/* The op must run behind (slot, value), which `upstream` holds. */
void acs_entry_add_wait(acs_window *window, acs_entry *entry, const acs_entry *upstream);
/* The op must run behind all that `from` must run behind, too. */
void acs_entry_merge_waits(acs_window *window, acs_entry *entry, const acs_entry *from);

/* The needs of an entry are these instead, one per slot of `mask`: as they were before others were merged into them. */
void acs_entry_set_waits(acs_window *window, acs_entry *entry, uint64_t mask, const acs_slot_wait *slot_waits);
/* The entry was placed or ended: its needs claim nothing any more. */
void acs_entry_drop_pending_waits(acs_window *window, acs_entry *entry);

/* Forget all failures. The window must be empty. */
void acs_window_clear_poison(acs_window *window);
/* Forget failures of ops that touched the block: it was freed, or is handed out again. */
void acs_window_forget_block(acs_window *window, uint64_t base, uint64_t bytes);
bool acs_window_check(acs_window *window);

/* Between window.c and depend.c. */

/* Collect the upstream ops of an entry and register its segments for later ones. */
void acs_depend_insert(acs_window *window, acs_entry *entry);
/* From op `seq` on, ops that touch this memory come behind all earlier ones, and no failure is passed on. */
void acs_depend_reuse(acs_window *window, acs_op seq, const acs_reuse *reuse);
/* Remember the segments of an op that failed or was skipped; `cause` is the op that failed first. */
void acs_depend_poison(acs_window *window, const acs_record *op, acs_op cause);
/* Make `entry` depend on `upstream`, once. */
void acs_window_link(acs_window *window, acs_entry *upstream, acs_entry *entry);
/* A join without upstream ops yet; finish it with acs_window_close_join once they are linked. */
acs_entry *acs_window_new_join(acs_window *window, acs_op seq);
void acs_window_close_join(acs_window *window, acs_entry *join);

#endif

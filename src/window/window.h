/*
 * The window: the ops that have left the FIFO and not retired, their dependencies, and the queue of ready ops. A state
 * machine without threads, clock or CUDA. Its owner (the core, a capture) calls every function under one lock; none
 * blocks.
 *
 * An entry lives from its insertion until the core has collected its end:
 *
 *    PENDING -> READY -> ISSUING -> ISSUED -> ENDED -> free
 *       |         ^---- bounced ---'            ^
 *       '---- skipped, failed: DRAINING --------'
 *
 * Joins, and observers that run nothing on the device, go from PENDING to ENDED.
 *
 * WIN-1  live ops <= limit, or 1 where limit is 0. Joins have places of their own, so they never wait for those of
 *        ops.
 * WIN-2  entry.pending counts the upstream edges that are not satisfied. READY, ISSUING and ISSUED imply pending == 0,
 *        except for ISSUING ops that follow an upstream op inside the same batch.
 * WIN-3  an edge is in exactly one list: that of its upstream entry, or the free edges.
 * WIN-4  a reference (acs_ref) whose generation differs from its entry's is dead: that op has ended.
 * WIN-5  an op, also a failed or skipped one, ends only when all its upstream ops have completed. A waiter for it need
 *        not look further upstream.
 * WIN-6  an insertion that begins can end: acs_window_has_room counts all joins and edges that it may take.
 *        acs_window_check() tells whether WIN-1, WIN-2 and WIN-3 hold.
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
    ACS_ENTRY_ISSUED,         /* handed to a slot; a join: all its upstream ops are issued */
    ACS_ENTRY_DRAINING,       /* ends as skipped or failed once its slot waits are complete */
    ACS_ENTRY_ENDED
} acs_entry_state;

/* The event at the upstream op that satisfies an edge. */
typedef enum acs_edge_type {
    ACS_EDGE_ISSUE,  /* its issue: the backend orders the two ops */
    ACS_EDGE_RETIRE, /* its retirement */
    ACS_EDGE_JOIN    /* both, for an edge to a join: it counts at the issue and again at the retirement */
} acs_edge_type;

typedef struct acs_edge {
    uint32_t down;
    uint32_t next; /* index; 0: last */
    uint8_t type;
} acs_edge;

/*
 * Ordered by cache line. Finding dependencies, gathering a bundle and satisfying an edge read the first line only;
 * placement, issue and end read the first two. Fields that are read through references are apart, in acs_hold.
 */
typedef struct acs_entry {
    _Alignas(ACS_CACHE_LINE) acs_record *op; /* NULL: a join */
    acs_op seq;            /* program order; of a join: that of the op whose insertion made it */
    acs_op failed_by;      /* the upstream op that failed, for which this one is skipped; 0: none */
    uint32_t pending;      /* upstream edges that are not satisfied, and 1 if it is held */
    uint32_t edges;        /* first edge to a downstream entry; 0: none */
    uint32_t waiters;      /* length of that list */
    uint32_t level;        /* length of the longest dependency chain that ends here */
    uint32_t index;        /* the entry's own place; constant */
    uint32_t batch_edge;   /* first inner edge of a bundle to it; 0: none */
    int16_t slot;          /* given by the scheduler; -1: not placed */
    uint8_t state;         /* acs_entry_state */
    uint8_t kind;          /* acs_op_kind */
    uint8_t asked; /* acs_op_kind that the program called; `kind`, except for copies and calls that became kernels */
    uint8_t on_host;       /* runs on the host or is only about it: its edges in both directions are RETIRE edges */
    uint8_t never_skipped; /* runs even if an upstream op failed */
    uint8_t held;          /* not ready before acs_window_let_go, whatever its upstream ops do */
    uint8_t propagates_failure; /* runs too, but makes its downstream ops skip */
    uint8_t observer;      /* later ops do not depend on it */
    uint8_t touches;       /* its footprint names a byte or a token */
    uint8_t writes;        /* its footprint names a write */
    uint8_t bundleable;    /* a kernel that may be in a bundle */
    uint8_t bounced;       /* refused issues that are to be tried again */
    uint8_t force_launch;  /* to be launched by itself, even if bundleable */
    uint8_t bundled;       /* issued, or being issued, in a bundle */
    uint8_t awaited;       /* a caller waited for it, or for one of its downstream ops, at the last look */
    uint8_t share;         /* part of the device that the op may take, in percent; 0: all of it */
    uint8_t device;        /* the op's device; of a join, while bundles are gathered: the device of its upstream ops */
    /* order, placement */
    uint64_t batch;        /* id of the last batch that considered the entry */
    uint32_t batch_count;  /* upstream ops in that batch; in a bundle: the entry's place there */
    /* ops not yet placed whose slot waits name this entry: they may still need a mark behind it */
    uint32_t pending_waits;
    uint64_t wait_mask;     /* slots in which it has a slot wait */
    /* of these, the waits that are counted in `pending_waits` of the entry that they name */
    uint64_t pending_wait_mask;
    uint64_t value;        /* position in the timeline of `slot` */
    uint32_t clock; /* entry whose place holds the clock: the entry itself; in a bundle the last op, which ends last */
    uint32_t queue_next;   /* in the ready, settle, draining, ended or host queue, or among the free entries */
    uint32_t queue_prev;   /* in the ready queue */
    uint32_t slot_next;    /* next issued op of the slot */
    uint32_t order_prev, order_next; /* neighbours in program order, among ops that have not ended */
    /* rarely used */
    uint64_t own_stamp;    /* window.stamp at the insertion */
    uint64_t issue_stamp;
    uint32_t unretired;    /* of a join: upstream ops that have not retired */
    acs_status status;     /* how the op ended */
    uint8_t reported;      /* the core has reported its end */
    uint8_t left;          /* it had begun when the device was given up: its record may be in use for ever */
    acs_label last;        /* the op that made this one ready, for statistics */
    /* of a bundle's op: newest value of its slot, within the bundle, that it runs behind; for statistics */
    uint64_t inner_value;
} acs_entry;

/*
 * The part of an entry that is read through references, most of which are dead. It is small and apart, so that those
 * of all entries stay in the nearest cache.
 */
typedef struct acs_hold {
    uint32_t generation;   /* number of ops that have had the place */
    uint32_t refs;         /* live references held by regions: later ops may still come to depend on it */
    uint64_t stamp;        /* own_stamp of the newest entry with an edge from here: no second edge is made */
} acs_hold;

/* The first upstream entries that an entry was linked behind, to find what they imply: see gathered.c. */
enum { ACS_UPSTREAM_KEPT = 7 };
typedef struct acs_upstream {
    acs_ref refs[ACS_UPSTREAM_KEPT];
    uint32_t count;
} acs_upstream;

/* A slot wait: the op must run behind position `value` of a slot, issued as `entry`. */
typedef struct acs_slot_wait {
    uint64_t value;
    uint32_t entry;
    uint32_t generation;
} acs_slot_wait;

typedef struct acs_queue {
    uint32_t head, tail, count; /* entry indices; 0: none */
} acs_queue;

/*
 * The set of entries that a join was made of, or may be made of next. If another region or the next op meets the same
 * set, one join stands for it: n ops behind the same m ops then need n + m edges.
 */
typedef struct acs_shared {
    acs_ref join;          /* dead: none has been made */
    uint32_t count;
    acs_ref refs[TUNE_JOIN_SHARED_MOST];
} acs_shared;

/* A new life of a block of memory, kept until all ops of the former life have ended. `join` stands for those ops. */
typedef struct acs_life {
    acs_shape block;
    acs_op seq; /* the first op of the new life, or an earlier one */
    uint32_t join, generation;
} acs_life;

enum { ACS_GATHERED_MOST = 64 }; /* most upstream entries that are listed at a time */

typedef struct acs_window_counters {
    uint64_t edges, joins, barriers, inserted, window_high, levels;
} acs_window_counters;

/*
 * Called for each link in place of making an edge. `down`: the op being inserted, or a join that its insertion makes.
 */
typedef void (*acs_window_linked)(void *user, acs_entry *up, acs_entry *down);

typedef struct acs_window {
    uint32_t limit;        /* most live ops */
    uint32_t joins;        /* places for joins */
    uint32_t readers_most; /* most readers that a region lists one by one; further ones become a join */
    uint32_t slots;
    acs_window_linked linked; /* set only in windows of captures, where ops are ready at once; else NULL */
    void *user;            /* for `linked` */
    bool host_wait;        /* every edge is a RETIRE edge */
    bool sites;            /* acs_window_config.sites */
    bool dead;             /* the device is lost: ops that become ready end with ACS_ERR_DEVICE */
    uint32_t live;         /* ops in the window */
    uint32_t live_joins;
    uint32_t held;         /* of the ops in the window, those that are held */

    uint32_t entry_count;  /* entries have the indices 1 to entry_count; 0 means none */
    acs_entry *entries;
    acs_hold *holds;       /* by entry */
    acs_upstream *upstream; /* by entry */
    acs_slot_wait *slot_waits; /* by entry, then slot */
    uint64_t *clocks;      /* by entry, then slot: see acs_entry_clock */
    /* heads of lists, through queue_next and `next`; 0 there: the neighbour is next, since nobody has had it yet */
    uint32_t free_entries, edges_free;
    uint32_t edge_count, edges_used;
    acs_edge *edges;

    acs_queue ready;       /* ops to be issued, in the order in which they became ready */
    acs_queue settle;      /* entries with pending == 0 that have not been examined: joins, skips, observers */
    acs_queue draining;    /* the core ends these when their slot waits are complete */
    acs_queue ended;       /* the core collects these */
    uint32_t order_head, order_tail;
    uint32_t *by_seq;      /* by seq & seq_mask: entry of the newest op inserted with such a number */
    uint32_t seq_mask;

    acs_regions *regions;
    acs_expected expected;
    bool gathers;          /* upstream entries of the op being inserted are listed, and linked later */
    uint32_t gathered_count;
    uint32_t gathered[ACS_GATHERED_MOST];
    acs_region **scratch;  /* regions of the op being inserted */
    uint32_t scratch_capacity;
    uint64_t insertion;    /* number of insertions */
    uint64_t stamp;        /* number of entries whose upstream ops were collected, joins included */
    uint32_t poisoned;     /* number of regions with poison */
    acs_life *lives;       /* recent new lives of blocks: see acs_depend_reuse */
    uint32_t life_count;
    uint64_t epoch;        /* `insertion` of the newest op that wrote all memory, plus 1; initially 1 */
    acs_ref all_writer;
    uint32_t all_reader_count;
    acs_ref all_readers[TUNE_ALL_READERS];
    acs_shared writers;    /* last set that an op with many reads depended on */
    acs_shared readers;    /* last set of readers of one region */
    uint32_t level_all;    /* of the newest writer of all memory */
    uint32_t level_all_read; /* highest of the readers of all memory */
    uint32_t level_touched; /* highest of the ops that touch anything */
    uint32_t level_written; /* highest of the ops that write anything */
    /* a failed op that touched all memory, or whose regions could not be kept */
    acs_op poison_all_read, poison_all_write;
    acs_op poison_any_read, poison_any_write; /* a failed op that touched anything */

    acs_window_counters counters;
} acs_window;

typedef struct acs_window_config {
    uint32_t limit, slots;
    bool host_wait;
    bool sites;            /* keep `last` of each op, for statistics */
    acs_window_linked linked;
    void *user;
} acs_window_config;

/* Allocates all memory of the window, except for regions. ACS_ERR_MEMORY: nothing is left allocated. */
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
 * What the op was known to run behind when it was issued: a value per slot. For the op's own slot `value` holds it,
 * and this array's element has no meaning.
 */
static inline uint64_t *acs_entry_clock(acs_window *window, const acs_entry *entry)
{
    return &window->clocks[(size_t)entry->clock * window->slots];
}
/* Entry 0 is never used, and its generation differs from that of the null reference. */
static inline bool acs_ref_live(const acs_window *window, acs_ref ref)
{
    return window->holds[ref.entry].generation == ref.generation;
}

/* Prefetch hints: an entry, and the one TUNE_WINDOW_FETCH_OPS behind it in program order. */
static inline void acs_entry_fetch(const acs_entry *entry)
{
    __builtin_prefetch(entry);
    __builtin_prefetch((const char *)entry + ACS_CACHE_LINE);
}
static inline void acs_window_fetch_behind(const acs_window *window, const acs_entry *entry)
{
    acs_entry_fetch(&window->entries[window->by_seq[(entry->seq + TUNE_WINDOW_FETCH_OPS) & window->seq_mask]]);
}

/* Whether this op can be inserted now: there are places, joins and edges enough (WIN-6). */
bool acs_window_has_room(const acs_window *window, const acs_record *op);
/*
 * Insert the next op in program order; acs_window_has_room must hold. Makes its edges, and registers its segments for
 * later ops. `traits`: the caller's choice of treatment. The entry ends up PENDING, READY, DRAINING, or ENDED in the
 * queue `ended` (observers without upstream ops, skips).
 */
typedef struct acs_entry_traits {
    bool on_host, observer, never_skipped;
    bool held; /* not ready before acs_window_let_go */
    acs_op behind; /* an op whose retirement to wait for besides (callbacks); 0: none */
} acs_entry_traits;
acs_entry *acs_window_insert(acs_window *window, acs_record *op, const acs_entry_traits *traits);
/* The entry, which was held, may go on. */
void acs_window_let_go(acs_window *window, acs_entry *entry);
/*
 * Parts of the insertion, for insert.c. Take a free entry, which must exist, and clear it for op `seq` with the record
 * `op` (NULL: a join).
 */
acs_entry *acs_window_take(acs_window *window, acs_op seq, acs_record *op);
/*
 * Append an entry that has its edges to program order, count it, and queue it as ready if it has no upstream ops left.
 */
void acs_window_inserted(acs_window *window, acs_entry *entry);
/* Announce the next ops to be inserted, at most TUNE_EXPECT_OPS: prefetches what their insertion reads. */
void acs_window_expect(acs_window *window, acs_record *const *ops, uint32_t count);
/* Return an op that left its queue but was not issued: it waits again for its upstream ops. */
void acs_window_release(acs_window *window, acs_entry *entry);

/* Take the first ready op; NULL: none. Add an op to the ready queue, at its front or its end. */
acs_entry *acs_window_pop_ready(acs_window *window);
void acs_window_push_ready(acs_window *window, acs_entry *entry, bool front);
/* Take a READY entry out of any place of the queue. */
void acs_window_remove_ready(acs_window *window, acs_entry *entry);
/* An ISSUING op was handed to its slot: satisfy its ISSUE edges. */
void acs_window_issued(acs_window *window, acs_entry *entry);
/* End an op: satisfy its remaining edges and put it in `ended`. If it failed, its downstream ops skip. */
void acs_window_end(acs_window *window, acs_entry *entry, acs_status status, acs_op failed_by);
/* End an op once its slot waits are complete (WIN-5); until then it is in `draining`, for the core. */
void acs_window_drain(acs_window *window, acs_entry *entry, acs_status status, acs_op failed_by);
/* Take an entry out of `draining`, to end it or drain it again; NULL: none. */
acs_entry *acs_window_pop_draining(acs_window *window);
/* Take an ended entry, never a join; NULL: none. The caller frees it with acs_window_free. */
acs_entry *acs_window_pop_ended(acs_window *window);
void acs_window_free(acs_window *window, acs_entry *entry);

/* The op `seq`; NULL: it is not in the window, or has ended. */
acs_entry *acs_window_find(acs_window *window, acs_op seq);
/* The oldest op that has not ended; 0: none. */
acs_op acs_window_oldest(const acs_window *window);
/* Make `entry` run behind the slot position of `upstream`, or behind the slot waits of a join. */
void acs_entry_add_wait(acs_window *window, acs_entry *entry, const acs_entry *upstream);
/* Add the slot waits of `from` to those of `entry`. */
void acs_entry_merge_waits(acs_window *window, acs_entry *entry, const acs_entry *from);

/* Replace the slot waits of an entry by these, one per slot of `mask`: undoes merges. */
void acs_entry_set_waits(acs_window *window, acs_entry *entry, uint64_t mask, const acs_slot_wait *slot_waits);
/* The entry was placed or has ended: remove its waits from the `pending_waits` of the entries that they name. */
void acs_entry_drop_pending_waits(acs_window *window, acs_entry *entry);

/* Forget all failures. The window must be empty. */
void acs_window_clear_poison(acs_window *window);
/* Forget the failures of ops that touched the block: it was freed, or is handed out again. */
void acs_window_forget_block(acs_window *window, uint64_t base, uint64_t bytes);
bool acs_window_check(acs_window *window);

/* Whether an op failed whose failure later ops must learn of through memory. */
static inline bool acs_window_has_poison(const acs_window *w)
{
    return w->poisoned || w->poison_all_read || w->poison_all_write;
}
/*
 * For replays, whose ops are not in the window: the op that failed first and for which `op` is to be skipped, as the
 * memory that it touches tells; 0: none. And remember the segments of an op that failed or was skipped.
 */
acs_op acs_depend_cause(acs_window *window, const acs_record *op);
void acs_depend_poison(acs_window *window, const acs_record *op, acs_op failed_by);

/* Whether `down`, a later op, is to be skipped if `up` has failed: it touches the same memory in the same life. */
bool acs_depend_follows(const acs_window *window, const acs_record *up, const acs_record *down);

/*
 * A replay turns out to be a chain of so many ops, not of one. Called before an op that depends on it is inserted.
 */
void acs_depend_deepen(acs_window *window, acs_entry *entry, uint32_t depth);

/* Between window.c, depend.c and poison.c. */

/* Count the entry's level. */
void acs_window_count_level(acs_window *window, const acs_entry *entry);

/* Find the upstream ops of an entry, and register its segments for later ops. */
void acs_depend_insert(acs_window *window, acs_entry *entry);
/*
 * Begin a new life of this memory: ops from `seq` on that touch it run behind all earlier ones, without their
 * failures.
 */
void acs_depend_reuse(acs_window *window, acs_op seq, const acs_reuse *reuse);
/* Make `entry` depend on `upstream`; a second call for the same pair does nothing. */
void acs_window_link(acs_window *window, acs_entry *upstream, acs_entry *entry);
/* A join without upstream ops. Link them, then call acs_window_close_join. */
acs_entry *acs_window_new_join(acs_window *window, acs_op seq);
void acs_window_close_join(acs_window *window, acs_entry *join);

#endif

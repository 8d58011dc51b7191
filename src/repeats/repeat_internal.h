/*
 * Shared by the files of this folder, each of which uses those before it: reasons.c (why ops did not
 * recur), sightings.c (ops that came once), ops.c (ops that came again), strands.c (which of them are independent),
 * footprints.c (what each strand touches), views.c (what the window sees of it), sequences.c (joins sequences of ops),
 * pieces.c (sequences that are replayed), open.c (replays until they are sealed), trace.c (what a pass queued), learn.c
 * (pieces from passes), passes.c (where passes begin and end), match.c (ops enter replays), repeat.c (calls of the
 * program).
 */
#ifndef ACS_REPEAT_INTERNAL_H
#define ACS_REPEAT_INTERNAL_H

#include "base/hash.h"
#include "base/tuning.h"
#include "repeats/known_op.h"
#include "repeats/repeat.h"

#include <pthread.h>

#define ACS_STRAND_NONE UINT32_MAX

/*
 * A Bloom filter of known ops, with a bit for each mark: only if a set's filter has all bits of another's it can have
 * all ops of that one.
 */
typedef struct acs_filter {
    uint64_t words[(UINT8_MAX + 1) / 64];
} acs_filter;
static inline void acs_filter_add(acs_filter *filter, const acs_known *op)
{
    filter->words[op->mark / 64] |= (uint64_t)1 << op->mark % 64;
}
static inline bool acs_filter_has(const acs_filter *filter, const acs_known *op)
{
    return filter->words[op->mark / 64] >> op->mark % 64 & 1;
}
static inline bool acs_filter_has_all(const acs_filter *filter, const acs_filter *of)
{
    uint64_t missing = 0;
    for (uint32_t word = 0; word < sizeof filter->words / sizeof filter->words[0]; word++)
        missing |= of->words[word] & ~filter->words[word];
    return !missing;
}

/*
 * Ops of one strand, in an order in which passes queue them. A replay of the piece leaves out what a pass does not queue.
 */
struct acs_piece {
    acs_piece *next;           /* of all, or of those that were replaced */
    acs_piece *of_next;        /* of its strand, that of its first op */
    acs_replay_shape *shape;
    acs_known **ops;           /* by place */
    acs_filter filter;         /* of them */
    const acs_record **records; /* the shape's list of them */
    uint64_t varies[ACS_REPLAY_WORDS]; /* ops that differed from the shape's in a replay, or were left out */
    uint64_t told[ACS_REPLAY_WORDS];   /* the same, as replays are told, since `version` */
    uint32_t least;            /* least ops of the fragments that it was made for */
    uint32_t stamp;
    uint32_t version;          /* 0: no replay was sealed yet */
    uint64_t changes_ns;       /* what changes of ops have cost of which replays were not told */
    uint64_t unused_ns;        /* what ops have cost that replays left out */
    bool wastes;               /* that was as much as a graph for such a fragment (the ski-rental rule) */
    bool ready;                /* the backend issues its replays at once; before, it is tried */
    uint32_t asked;            /* how often the backend was asked for that */
    uint32_t made;             /* replays made so far */
    acs_replay *replays[TUNE_REPEAT_REPLAYS];
};

/* Numbers of a sealed replay. */
typedef struct acs_numbers {
    acs_op first;
    uint32_t count;
} acs_numbers;

/*
 * A strand: ops that touch no memory which another strand writes. So the order in which ops of different strands enter
 * does not matter, and each has a replay of its own.
 */
typedef struct acs_strand {
    struct acs_strand *open_prev, *open_next; /* all strands with an unsealed replay, by number */
    acs_repeat *repeat;
    acs_segment *segments;     /* footprint of all its ops */
    uint32_t segment_count;
    bool grown;                /* ops were added since segments were joined */
    uint64_t first, last;      /* of the bytes that it may touch, the first and the last */
    acs_segment *view;         /* what the window sees of a replay: few ranges or tiles, in which all segments lie */
    uint32_t view_count;       /* more than TUNE_REPEAT_SEGMENTS: it sees all memory instead */
    uint32_t traced;           /* where its latest op is in the trace, and one more; 0: nowhere */
    acs_numbers latest[TUNE_REPEAT_LATEST]; /* ring: replays sealed last */
    uint32_t sealed;
    bool learns;               /* the pass had ops that went the usual way, or replays that no piece fits */
    acs_piece *pieces;         /* those that begin with an op of this strand */
    uint32_t longest;          /* most ops of a piece */
    acs_known *began;          /* the op that began the latest replay; NULL: none, or it is forgotten */
    acs_piece *piece;          /* of the latest replay, open or sealed; NULL: none */
    uint32_t place;            /* behind its last op */
    /* the unsealed replay (RPT-2) */
    acs_replay *replay;        /* of `piece`; NULL: none is open */
    acs_filter filter;         /* of its ops */
    bool trial;                /* its ops go the usual way, and it is not queued: it shows which of them change */
    acs_record *record;
    acs_op number;
    uint32_t span;
} acs_strand;

/* An op of the pass under way. */
typedef struct acs_traced {
    acs_known *op;
    acs_known *awaited; /* a wait for that op came behind this one; NULL: none */
    acs_op number;
    bool missed;        /* it went the usual way */
    bool cut;           /* its strand's fragment ends here */
    bool cut_all;       /* the fragments of all strands end here */
} acs_traced;

typedef struct acs_pass_trace {
    acs_traced *ops;
    uint32_t count, room;
} acs_pass_trace;

/* Why a kernel of a pass went the usual way. */
typedef enum acs_reason {
    ACS_REASON_UNFIT,
    ACS_REASON_FULL,
    ACS_REASON_NEW,       /* in which way: one of the next four */
    ACS_REASON_FIRST,
    ACS_REASON_SEGMENTS,
    ACS_REASON_ARGUMENTS,
    ACS_REASON_SHAPE,
    ACS_REASON_AGAIN,
    ACS_REASONS
} acs_reason;
typedef struct acs_site_reasons acs_site_reasons;

/* Hashes of ops that passes queued. */
typedef struct acs_sightings {
    uint64_t *places; /* mask + 1 elements; 0: free */
    uint32_t mask, count;
} acs_sightings;

struct acs_repeat {
    uint64_t key;
    UT_hash_handle hh;
    bool hash_failed;
    bool open;                 /* a pass is under way (RPT-1) */
    uint64_t passes;           /* number of the pass that is under way, or comes next; from 1 */
    /* ops */
    acs_sightings sightings;
    bool at_once;              /* pieces need not be made ready */
    acs_known **index;         /* by tag; index_mask + 1 elements */
    uint32_t index_mask, known_count;
    uint8_t marks;             /* marks given out, modulo 256 */
    acs_known *first_op;       /* what the pass before began with */
    acs_piece *pieces;
    acs_piece *replaced;       /* they go when their replays have ended */
    uint32_t place_count;      /* ops of all pieces, of replaced ones too */
    uint32_t stamps;           /* given to ops and pieces that were looked at together */
    acs_strand *strands;
    uint32_t strand_count;
    uint32_t strands_ops;      /* kernels of the pass in which they were found */
    bool wide;                 /* of a strand the window sees all memory */
    uint64_t kept_pass;        /* what did not come since that pass is forgotten, */
    uint64_t kept_ops;         /* as soon as those behind it have TUNE_REPEAT_KEPT kernels; so many it has now */
    /* the pass */
    acs_known *last;           /* the op that was queued last; NULL: none yet, or it is not known */
    uint32_t missed;           /* kernels that went the usual way */
    uint32_t again;            /* those of them that are known: an earlier pass had queued them */
    uint32_t first;            /* those of them that no earlier pass had queued, in passes that are learnt from */
    uint32_t differing;        /* kernels that were replayed with other arguments, or another width, than before */
    uint32_t replays, replayed; /* sealed so far, and their kernels */
    bool misfits;              /* a strand learns from the pass */
    bool renews;               /* pieces of this pass take the place of all others */
    bool torn_begin, torn_end; /* it begins, or ends, in the middle of fragments */
    /* automatic passes */
    uint32_t pass_most;        /* kernels by which this one ends */
    uint32_t period;           /* kernels after which all is repeated, while it is; passes are multiples. 0: none */
    bool first_of_period;      /* no pass has begun and ended with a period that pieces do not fit yet */
    /* rests, since too little recurred */
    uint64_t rests;            /* kernels of the latest rest, for each that was looked at before it; 0: there was none */
    uint64_t rest;             /* kernels until it ends; 0: passes are learnt from */
    uint32_t looks;            /* passes that did not pay, since it ended */
    uint64_t looked_ops;       /* their kernels */
    acs_pass_trace trace[2];   /* of this pass and the one before */
    acs_site_reasons *reasons; /* table by call site */
};

struct acs_repeats {
    pthread_spinlock_t lock; /* guards everything here, and all repeats */
    acs_repeat *table;    /* by key */
    acs_strand *open_strands; /* with unsealed replays, by number */
    acs_op numbered;      /* last number of which it is known that its op conflicts with no open strand, or is in one */
    uint32_t most;        /* most ops of a fragment; 0: the context has no replays; constant */
    uint32_t open;        /* passes under way; and one, if there are automatic ones */
    bool at_once;         /* the backend issues any replay at once; constant */
    _Atomic bool automatic; /* passes begin by themselves; written under the lock */
    acs_repeat *found;    /* of the automatic pass that is under way; NULL: none is */
    uint32_t pass_most;   /* kernels by which passes without a period end */
    uint64_t entered;     /* kernels that have entered replays */
    uint64_t entered_before; /* the same, when a worker without work last looked */
    uint64_t looked_ns;   /* that time */
    uint32_t unwaited;    /* kernels of automatic passes before it, since the program has waited for everything */
    _Atomic uint64_t unmatched; /* kernels of passes that went the usual way */
};

/*
 * The core's lock may be taken under it, no other. Mostly one thread takes it, for each launch: to release a spin lock
 * does not wait for writes before it, as a mutex does. Threads that wait let others run.
 */
static inline void acs_repeats_lock(acs_repeats *all)
{
    while (ACS_UNLIKELY(pthread_spin_trylock(&all->lock) != 0))
        acs_pause_briefly();
}
static inline void acs_repeats_unlock(acs_repeats *all)
{
    pthread_spin_unlock(&all->lock);
}

/* passes.c: the pass that the calling thread is in. Needs no lock. */
typedef struct acs_thread_pass {
    acs_context *context; /* NULL: none */
    uint64_t opened_ns;   /* the context's, which tells it from later ones in the same struct */
    acs_repeat *repeat;
} acs_thread_pass;
acs_thread_pass *acs_thread_pass_get(void);
/* Its repeat, if it is in a pass of this context; or NULL. */
acs_repeat *acs_thread_pass_in(const acs_context *context);

/* All functions below are called under the lock. */

/* reasons.c */
/* A kernel went the usual way. */
void acs_reason_count(acs_repeat *repeat, const acs_record *op, acs_reason reason);
void acs_reasons_free(acs_repeat *repeat);
/* Write the most frequent ones to standard error. */
void acs_reasons_report(const acs_repeats *all);

/* sightings.c */
/* Whether an earlier pass queued an op with this hash. Now this one does. Without memory nothing is remembered. */
bool acs_sightings_had(acs_sightings *sightings, uint64_t hash, uint64_t pass);
void acs_sightings_free(acs_sightings *sightings);

/* ops.c */
/* The first op with the tag's place in the index; go on by `same`, and compare tags. */
acs_known *acs_known_first(const acs_repeat *repeat, uint32_t tag);
/* The op; if no piece has it, it gets the op's arguments. NULL: it is not known. */
acs_known *acs_known_get(acs_repeat *repeat, const acs_record *op);
/* Add an op that is not known. NULL: no memory, or there are too many. */
acs_known *acs_known_add(acs_repeat *repeat, const acs_record *op);
/* Drop all ops that no piece has and that no pass queued from this one on; or all. @return whether there were any. */
bool acs_known_drop(acs_repeat *repeat, uint64_t pass, bool all);

/* strands.c: number the strands of these ops, from 0, as ops[i]->strand. False: no memory. */
bool acs_strands_find(acs_known *const *ops, uint32_t count, uint32_t *strands);

/* footprints.c */
/* Find the footprints of new strands from the known ops, of which some may have no strand. False: no memory. */
bool acs_footprints_find(acs_repeat *repeat, acs_known *const *ops);
/* Join segments that lie side by side, as it is once ops were added. */
void acs_footprint_join(acs_strand *strand);
/* Add the footprint of an op to its strand's; acs_views_find follows. False: no memory. */
bool acs_footprint_add(acs_strand *strand, const acs_record *op);
/* False: the op touches no byte from the strand's first to its last one, and no memory without an address. */
bool acs_footprint_is_near(const acs_strand *strand, const acs_record *op);
/* Whether the op may conflict with one of the strand. */
bool acs_footprint_conflicts(const acs_strand *strand, const acs_record *op);

/* views.c */
/* Find what the window sees of the strands (RPT-5). False: no memory. */
bool acs_views_find(acs_repeat *repeat);
/* Whether the window sees all memory of it, since a view would be too long. */
static inline bool acs_strand_is_wide(const acs_strand *strand)
{
    return strand->view_count > TUNE_REPEAT_SEGMENTS;
}

/* sequences.c */
/* The first place of the op from `place` on; `count`: there is none. */
uint32_t acs_sequence_place(acs_known *const *ops, uint32_t count, uint32_t place, const acs_known *op);
/* Whether the first sequence has all ops of the other one, in its order. */
bool acs_sequence_covers(acs_known *const *ops, uint32_t count, acs_known *const *other, uint32_t other_count);
/* An op of two sequences that were joined: its place in each, or ACS_REPLAY_OPS. */
typedef struct acs_joined {
    acs_known *op;
    uint16_t a, b;
} acs_joined;
/*
 * The shortest sequence that covers both; each has at most ACS_REPLAY_OPS ops. @return its length; 0: it would have more
 * than `most` ops, or no memory.
 */
uint32_t acs_sequences_join(acs_known *const *a, uint32_t a_count, acs_known *const *b, uint32_t b_count,
                            acs_joined *joined, uint32_t most);

/* pieces.c */
/* Make a piece of these ops. NULL: no memory, or it has too many edges, or there are too many pieces. */
acs_piece *acs_piece_make(acs_repeat *repeat, acs_known *const *ops, uint32_t count, uint32_t least);
/* No replay of the piece begins from now on. `instead`: one with all its ops, or NULL. */
void acs_piece_drop(acs_repeat *repeat, acs_piece *piece, acs_piece *instead);
/* A replay of the piece that is free now, or a new one; NULL: all are under way, or no memory. */
acs_replay *acs_piece_replay(acs_piece *piece);
/* Give the pieces to new strands; drop those with ops of several. */
void acs_pieces_to_strands(acs_repeat *repeat);
/* Free pieces that were dropped, if their replays have ended. */
void acs_pieces_sweep(acs_repeat *repeat);

/* open.c */
/*
 * Begin a replay with the op at this place of the piece; a trial if that is not ready, and `may_try`. False: it cannot
 * begin; *room: a wait would not help.
 */
bool acs_strand_open(acs_context *context, acs_strand *strand, acs_piece *piece, uint32_t place, bool may_try,
                     bool *room);
/* The place of a piece behind all ops of the open replay; ACS_REPLAY_OPS + 1: it does not have them in this order. */
uint32_t acs_strand_place_in(const acs_strand *strand, const acs_piece *piece);
/*
 * Move the open replay to another piece, which has its ops at places up to `place`. False: that piece has no free replay,
 * or more ops than the replay has numbers.
 */
bool acs_strand_move(acs_strand *strand, acs_piece *piece, uint32_t place);
/* Go on with the op at this place of the piece; those before it are left out. */
void acs_strand_go_on(acs_strand *strand, uint32_t place);
/* The op at this place is not as in most replays. */
void acs_strand_differs(acs_strand *strand, uint32_t place);
/* Push the replay. @return its number, for waking the core; 0: none was open, or a trial. */
acs_op acs_strand_seal(acs_context *context, acs_strand *strand);
/* Seal those that the op may conflict with; NULL: all. `cuts`: their fragments should end there. */
acs_op acs_strands_seal(acs_context *context, const acs_record *op, bool cuts);
/* The strand's fragment should end behind its latest op. */
void acs_strand_cut(acs_strand *strand);

/* trace.c */
/* The ops of this pass, or of the one before. */
static inline acs_pass_trace *acs_repeat_trace(acs_repeat *repeat, uint64_t pass)
{
    return &repeat->trace[pass % 2];
}
/* Whether something is learnt from the pass under way. */
static inline bool acs_repeat_learns(const acs_repeat *repeat)
{
    return repeat->rest == 0;
}
/* The pass queues this known op next, which has this number. */
void acs_repeat_queued(acs_repeat *repeat, acs_known *op, acs_op number);
/* An op of the pass goes the usual way; and, unless other threads' ops share the pass, its number, or 0. */
void acs_repeat_unmatched(acs_repeat *repeat, const acs_record *op);
void acs_repeat_numbered(acs_repeat *repeat, acs_op number);
/*
 * The pass waits for `op`, whose strand's fragment ends here; UINT64_MAX: for all, and all end. @return the strand; NULL:
 * it is not known, or all.
 */
acs_strand *acs_repeat_waits(acs_repeat *repeat, acs_op op);
/* Kernels of the pass so far. */
uint32_t acs_repeat_pass_ops(const acs_repeat *repeat);

/* learn.c */
void acs_repeat_pass_begin(acs_repeat *repeat);
/* Learn from the pass: fragments of at most `most` ops. */
void acs_repeat_pass_end(acs_repeat *repeat, uint32_t most);
/* All its replays have ended. */
void acs_repeat_destroy(acs_repeat *repeat);

/* passes.c */
/* Find or make the repeat. NULL: no memory. */
acs_repeat *acs_repeat_get(acs_repeats *all, uint64_t key);
void acs_pass_begin(acs_context *context, acs_repeat *repeat);
/* Seal its replays, and learn from it. @return as acs_strand_seal. */
acs_op acs_pass_end(acs_context *context, acs_repeat *repeat);
/* There are automatic passes from now on; and no longer. */
void acs_automatic_start(acs_context *context);
acs_op acs_automatic_stop(acs_context *context);
/* Begin an automatic pass; none is under way. NULL: none begins. */
void acs_automatic_pass_begin(acs_repeats *all, acs_repeat *repeat);
/* End it, if one is under way. `torn`: in the middle of fragments, which go on in the next one. */
acs_op acs_automatic_pass_end(acs_context *context, bool torn);

#endif

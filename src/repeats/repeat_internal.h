/*
 * Shared by the files of this folder: repeat.c (passes), match.c (ops enter replays), thread_pass.c, pieces.c (pieces and replays),
 * candidates.c (ops that passes queued), strands.c (which of them are independent), and learn.c (the list is made).
 */
#ifndef ACS_REPEAT_INTERNAL_H
#define ACS_REPEAT_INTERNAL_H

#include "base/hash.h"
#include "base/tuning.h"
#include "repeats/known_op.h"
#include "repeats/repeat.h"

#include <pthread.h>

typedef struct acs_piece acs_piece;
typedef struct acs_candidate acs_candidate;

/* An op that passes queued. It lives as long as the repeat or a piece refers to it. */
struct acs_candidate {
    acs_candidate *prev, *next; /* all of a repeat, in program order */
    acs_candidate *same;        /* next one with the same place in the index */
    acs_candidate *follower;    /* what was queued behind it the last time; NULL: not known */
    acs_record *op;             /* owned */
    uint32_t tag;               /* acs_known_op_tag */
    uint32_t refs;
    acs_piece *piece;           /* the piece of the list that has it; NULL: it is not in the list */
    uint32_t at;                /* place in the piece */
    uint32_t seen;              /* passes that queued it the usual way since it became a candidate */
    uint32_t index;             /* scratch of learn.c: its number in program order */
    uint64_t taken;             /* the pass that queued it last */
    bool cut;                   /* a piece ends with it */
    bool cut_all;               /* a wait for everything came behind it */
    acs_candidate *awaited;     /* a wait for that op came behind this one; NULL: none. Until the next list */
};

/*
 * A strand: ops of the list that touch no memory which another strand writes. So the order in which ops of different
 * strands enter does not matter.
 */
typedef struct acs_strand {
    uint32_t pos;    /* place behind the op of this pass that entered last */
    acs_piece *open; /* the piece with the unsealed replay; NULL: none */
} acs_strand;

/* Consecutive ops of a strand that are replayed together. */
struct acs_piece {
    acs_piece *next;             /* of the list, or of those that are to be destroyed */
    acs_piece *open_prev, *open_next; /* all pieces with an unsealed replay, by number */
    acs_repeat *repeat;
    acs_strand *strand;
    acs_candidate **ops;         /* by place; referred to */
    acs_replay_shape *shape;
    uint32_t first;              /* place of its first op in the strand */
    bool kept;                   /* scratch of learn.c: the new list has it, too */
    uint64_t used[ACS_REPLAY_WORDS]; /* ops that were in a replay since the list was made */
    uint64_t varies[ACS_REPLAY_WORDS]; /* ops that changed from replay to replay */
    uint64_t told[ACS_REPLAY_WORDS];   /* the same, as replays are told, since `version` */
    uint32_t version;            /* 0: no replay was sealed yet */
    uint64_t changes_ns;         /* what changes of ops have cost of which replays were not told */
    uint32_t made;               /* replays made so far */
    acs_replay *replays[TUNE_REPEAT_REPLAYS];
    /* the unsealed replay (RPT-2) */
    acs_replay *now;             /* NULL: none */
    acs_record *record;
    acs_op number;               /* first number; of the latest replay, once it is sealed */
};

/* An op of a pass, and how many ops the pass queued before it. */
typedef struct acs_traced {
    acs_candidate *op;
    uint32_t turn;
} acs_traced;

/* The ops of one pass, in program order. */
typedef struct acs_pass_trace {
    acs_traced *ops;
    uint32_t count, room;
    acs_op before; /* number of the last op before the pass */
} acs_pass_trace;

struct acs_repeat {
    uint64_t key;
    UT_hash_handle hh;
    bool hash_failed;
    bool open;                 /* a pass is under way (RPT-1) */
    bool matches;              /* there is a list to match */
    uint64_t passes;           /* number of the pass that is under way, or comes next; from 1 */
    acs_candidate *candidates; /* in program order */
    uint32_t candidate_count;
    acs_candidate **index;     /* by tag; index_mask + 1 elements */
    uint32_t index_mask;
    /* the list */
    acs_piece *pieces, *retired; /* retired: of older lists, until their replays have ended */
    acs_strand *strands;
    uint32_t strand_count;
    /* what a new list would gain, and what it would cost */
    uint64_t lost_ns;          /* launches that recurred beside the list, and cuts within pieces, since it was made */
    uint32_t renew_ops;        /* ops of pieces that would be new */
    /* the pass */
    acs_candidate *last;       /* the op that was queued last; NULL: none yet */
    acs_candidate *first;      /* what the pass before began with */
    uint32_t turns;            /* ops queued, of any kind */
    uint32_t queued, recurred; /* kernels that went the usual way; of them, those that a pass queued before */
    acs_pass_trace trace[2];   /* of this pass and the one before */
};

struct acs_repeats {
    pthread_mutex_t lock; /* a leaf; guards everything here, and all repeats */
    acs_repeat *table;    /* by key */
    acs_piece *open_pieces; /* with unsealed replays, by number */
    acs_op numbered;      /* last number that is known to be an op of these repeats, or to conflict with no open piece */
    uint32_t span;        /* ops of the program from the first to the last of a piece; 0: no replays; constant */
    uint32_t open;        /* passes under way */
    uint64_t unmatched;   /* kernels of passes that went the usual way */
};

/* All functions below are called under the lock. */

/* thread_pass.c: the pass that the calling thread is in. Needs no lock. */
typedef struct acs_thread_pass {
    acs_context *context; /* NULL: none */
    uint64_t opened_ns;   /* the context's, which tells it from later ones in the same struct */
    acs_repeat *repeat;
} acs_thread_pass;
acs_thread_pass *acs_thread_pass_get(void);
/* Its repeat, if it is in a pass of this context; or NULL. */
acs_repeat *acs_thread_pass_in(const acs_context *context);

/* candidates.c */
/* Add an op behind `behind` (NULL: before all). NULL: no memory, or there are TUNE_REPEAT_OPS. */
acs_candidate *acs_candidate_add(acs_repeat *repeat, const acs_record *op, acs_candidate *behind);
void acs_candidate_drop(acs_repeat *repeat, acs_candidate *candidate);
void acs_candidate_release(acs_candidate *candidate);
/* The first candidate with the tag's place in the index; go on by `same`, and compare tags. */
acs_candidate *acs_candidate_first(const acs_repeat *repeat, uint32_t tag);

/* strands.c: number the strands of these ops, from 0. `strand[i]` is the strand of op i. False: no memory. */
bool acs_strands_find(acs_candidate *const *ops, uint32_t count, uint32_t *strand, uint32_t *strands);

/* pieces.c */
acs_piece *acs_piece_create(acs_repeat *repeat, acs_candidate *const *ops, uint32_t count);
/* Its replays have ended. */
void acs_piece_destroy(acs_piece *piece);
bool acs_piece_is_free(const acs_piece *piece);
/* A replay of the piece that is free now, or a new one; NULL: all are under way, or no memory. */
acs_replay *acs_piece_replay(acs_piece *piece);
/* Begin a replay with the op at `at`. False: it cannot begin; *room: a wait would not help. */
bool acs_piece_open(acs_context *context, acs_piece *piece, uint32_t at, bool *room);
/* Push the replay. @return its number, for acs_repeats_wake; 0: none was open. */
acs_op acs_piece_seal(acs_context *context, acs_piece *piece);
/* The program waits, or queues an op that no replay may pass, behind what the piece's replay has so far. */
void acs_repeat_cut(acs_piece *piece);
/* Seal those that the op may conflict with; NULL: all. `cuts`: pieces should end there. */
acs_op acs_pieces_seal(acs_context *context, const acs_record *op, bool cuts);

/* learn.c */
void acs_repeat_pass_begin(acs_repeat *repeat, acs_op before);
void acs_repeat_pass_end(acs_repeat *repeat, uint32_t span);
/* The pass queues this known op next. */
void acs_repeat_queued(acs_repeat *repeat, acs_candidate *candidate);
/* An op of the pass goes the usual way. */
void acs_repeat_unmatched(acs_repeat *repeat, const acs_record *op);
/* The pass waits for `op`; UINT64_MAX: for all. */
void acs_repeat_waits(acs_repeat *repeat, acs_op op);
/* All its replays have ended. */
void acs_repeat_destroy(acs_repeat *repeat);

#endif

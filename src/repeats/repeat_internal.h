/* Shared by repeat.c, which matches the ops of a pass, and learn.c, which keeps the list of a repeat's ops. */
#ifndef ACS_REPEAT_INTERNAL_H
#define ACS_REPEAT_INTERNAL_H

#include "base/hash.h"
#include "base/tuning.h"
#include "repeats/known_op.h"
#include "repeats/repeat.h"

#include <pthread.h>

enum { ACS_NO_PLACE = -1 };

/* An op that passes queued. */
typedef struct acs_candidate {
    acs_record *op;  /* owned */
    uint32_t tag;    /* acs_known_op_tag */
    int32_t place;   /* in the list that is matched; ACS_NO_PLACE: it is not in it */
    uint32_t seen;   /* passes that queued it the usual way */
    bool cut;        /* a replay was sealed behind it, or would have been: a piece ends with it */
} acs_candidate;

typedef struct acs_piece {
    acs_replay_shape *shape;
    uint32_t first;  /* place of its first op */
    uint64_t used[ACS_REPLAY_WORDS]; /* ops that were in a replay since the list was made */
    uint32_t made;   /* replays made so far */
    acs_replay *replays[TUNE_REPEAT_REPLAYS];
} acs_piece;

/* The list of ops with which passes are compared, cut into pieces. Kept while its replays may be under way. */
typedef struct acs_known {
    struct acs_known *next; /* older lists */
    uint32_t count, piece_count;
    acs_record **ops;       /* by place; owned */
    uint32_t *tags;         /* by place: acs_known_op_tag */
    acs_piece *pieces;
} acs_known;

struct acs_repeat {
    uint64_t key;
    UT_hash_handle hh;
    bool hash_failed;
    bool open;            /* a pass is under way (RPT-1) */
    uint64_t passes;      /* passes that have ended */
    acs_known *known;     /* the list that is matched, before older ones; NULL: none yet */
    bool matches;         /* `known` is to be matched, and not only kept */
    /* candidates in program order: all known ops, and those that may become known */
    acs_candidate *candidates;
    uint32_t candidate_count, candidate_room;
    uint64_t lost_ns;     /* what ops that recurred beside the list, and cuts within pieces, have cost since it was made */
    /* the pass */
    uint32_t cursor;      /* candidate behind the op that was queued last */
    uint32_t queued, recurred; /* ops of this pass that went the usual way; of them, those that a pass queued before */
    uint32_t pos;         /* next place */
    /* the unsealed replay (RPT-2); NULL: none */
    acs_replay *now;
    acs_record *record;
    acs_op first;
    acs_piece *piece;
};

struct acs_repeats {
    pthread_mutex_t lock; /* a leaf; guards everything here, and all repeats */
    acs_repeat *table;    /* by key */
    uint32_t piece_most;  /* most ops of a piece; 0: this context has no replays; constant */
    uint32_t open;        /* passes under way */
    uint64_t unmatched;   /* kernels of passes that went the usual way */
};

/* learn.c; under the lock. */

/* A kernel of the pass goes the usual way. */
void acs_repeat_unmatched(acs_repeat *repeat, const acs_record *op);
/* The pass waits, or queues an op that cannot be in a replay: a piece should end here. */
void acs_repeat_cut(acs_repeat *repeat);
void acs_repeat_pass_begin(acs_repeat *repeat);
/* A pass ends. The list may be made anew, with pieces of at most `piece_most` ops. */
void acs_repeat_pass_end(acs_repeat *repeat, uint32_t piece_most);
/* A replay of the piece that is free now, or a new one; NULL: all are under way, or no memory. */
acs_replay *acs_piece_replay(const acs_known *known, acs_piece *piece);
/* Its replays have ended. */
void acs_repeat_destroy(acs_repeat *repeat);

#endif

/*
 * What a recording tells: the dependences of its ops, when each could run and when it ran, what held it, and the
 * longest chains. Made when a context closes; nothing here touches the context. analysis.c fills it, the other files
 * read it.
 *
 * Where a backend does not tell when an op began, its begin is estimated: the latest of its issue, the ends of the
 * ops that it depends on, and the end of the op before it in its stream. Ops of a graph of which only the time of the
 * whole is known, or of a replay of which only the end is, share it by levels.
 */
#ifndef ACS_ANALYSIS_H
#define ACS_ANALYSIS_H

#include "recorder/recording.h"

/* What held an op between its call and its begin. */
typedef enum acs_hold_reason {
    ACS_HOLD_NONE,
    ACS_HOLD_WINDOW,     /* the window was full */
    ACS_HOLD_DEPENDENCE, /* an op that it depends on had not ended */
    ACS_HOLD_ISSUE,      /* no thread took it from the FIFO, or handed it over, although it could run */
    ACS_HOLD_STREAM,     /* the op before it in its stream, on which it does not depend, had not ended */
    ACS_HOLD_COUNT
} acs_hold_reason;

/* Why an op depends on another. */
typedef enum acs_conflict {
    ACS_CONFLICT_NONE,
    ACS_CONFLICT_RAW,
    ACS_CONFLICT_WAR,
    ACS_CONFLICT_WAW,
    ACS_CONFLICT_ALL,   /* one of the two may touch any memory */
    ACS_CONFLICT_ORDER, /* they name no common bytes: memory was handed out again, or the context runs in order */
    ACS_CONFLICT_COUNT
} acs_conflict;

typedef struct acs_analysed_op {
    uint32_t place;              /* in recording.ops */
    uint32_t label;              /* in analysis.labels */
    uint32_t first_up, up_count; /* in analysis.ups: the ops that it depends on directly; of a join the last to end */
    uint32_t waited_for;         /* of these, the one that ended last; ACS_PLACE_NONE: none */
    uint32_t behind;             /* the op that ended last of those before it in its stream; ACS_PLACE_NONE: none */
    uint32_t up_segment,
        segment;    /* of those two, the segments that overlap, in recording.segments; or ACS_PLACE_NONE */
    uint32_t level; /* length of the longest chain that ends here */
    uint32_t graph_level; /* the same of ops of its graph alone (recording.graphs) */
    uint32_t lane;  /* row in its slot: ops of one lane do not overlap. ACS_LANES: there is none */
    uint32_t pair;  /* in acs_causes.pairs; ACS_PLACE_NONE: none */
    uint64_t entered, ready, began, ended;
    uint64_t chain_ns; /* time of the chain of ops that ends here and takes longest, each as long as it takes alone */
    uint64_t
        needed_ns; /* the same of ops that need what the one before wrote (RAW), each as long as it takes alone */
    uint64_t held_ns[ACS_HOLD_COUNT];
    uint8_t reason;   /* the acs_hold_reason with the most time */
    uint8_t conflict; /* acs_conflict with `waited_for` */
    bool critical;    /* part of the chain that takes longest */
} acs_analysed_op;

enum { ACS_ANALYSIS_POINTS = 2000, ACS_LANES = 256 };

/* Numbers of ops over time. */
typedef struct acs_widths {
    uint32_t count;
    uint64_t at_ns[ACS_ANALYSIS_POINTS];
    uint32_t ready[ACS_ANALYSIS_POINTS], running[ACS_ANALYSIS_POINTS],
        window[ACS_ANALYSIS_POINTS]; /* the most since the point before */
} acs_widths;

typedef struct acs_analysis {
    const acs_recording *recording;
    acs_analysed_op *ops; /* in program order; without replays as wholes, and ops whose end is not known */
    uint32_t op_count;
    uint32_t *ups;         /* places in `ops` */
    uint8_t *up_conflicts; /* acs_conflict of each */
    uint32_t up_count;
    const acs_recorded_block **blocks; /* by first address */
    uint32_t *graph_levels; /* by graph: the highest graph_level */
    acs_label *labels;
    uint64_t
        *alone_ns; /* by label: time of an op that shares the device with no other: the shortest tenth of its ops' */
    uint32_t label_count;
    acs_widths widths;
    uint64_t window;            /* ACS_WINDOW */
    uint64_t first_ns, last_ns; /* the run: from the call of the first op to the last end. Shares are parts of it */
    /* all ops' time, and if each took as long as it takes alone; time in which at least one ran; the longest chain's, by
     * all dependences, and by RAW */
    uint64_t work_ns, alone_work_ns, busy_ns, chain_ns, needed_ns;
    uint64_t held_ns[ACS_HOLD_COUNT];
    uint32_t levels, kernels;
} acs_analysis;

/* `in_order`: the context ran ops one after another. ACS_ERR_MEMORY: nothing is left allocated. */
acs_status acs_analysis_make(const acs_recording *recording, uint64_t window, bool in_order, acs_analysis *analysis);
void acs_analysis_free(acs_analysis *analysis);

static inline const acs_recorded_op *acs_analysis_recorded(const acs_analysis *analysis, uint32_t op)
{
    return &analysis->recording->ops[analysis->ops[op].place];
}
/* Whether the op is part of a bundle or a replay: its neighbours run beside it, not before it. */
static inline bool acs_analysis_is_bundled(const acs_recorded_op *op)
{
    return op->bundled || op->whole != ACS_PLACE_NONE;
}
static inline uint64_t acs_analysis_time(const acs_analysed_op *op)
{
    return op->ended - op->began;
}

/* A span of time. Empty: from >= to. */
typedef struct acs_time_span {
    uint64_t from, to;
} acs_time_span;

/* The part of a call that lies in the run: what the program did before its first op costs the run nothing. */
static inline acs_time_span acs_analysis_within(const acs_analysis *a, uint64_t began, uint64_t ended)
{
    return (acs_time_span){began > a->first_ns ? began : a->first_ns, ended < a->last_ns ? ended : a->last_ns};
}

/* The label of the newest op up to this number; ACS_PLACE_NONE: none was recorded. */
uint32_t acs_analysis_label_before(const acs_analysis *analysis, acs_op seq);
/* The newest op up to this number; ACS_PLACE_NONE: none was recorded. */
uint32_t acs_analysis_op_before(const acs_analysis *analysis, acs_op seq);
/* order.c: fill `blocks`. ACS_ERR_MEMORY. The block in which the address lay for op `seq`; NULL: not known. */
acs_status acs_analysis_index_blocks(acs_analysis *analysis);
const acs_recorded_block *acs_analysis_block(const acs_analysis *analysis, uint64_t address, acs_op seq);
/* order.c: fill first_up, up_count and `ups`. ACS_ERR_MEMORY. */
acs_status acs_analysis_order(acs_analysis *analysis, bool in_order);
/* The first two segments of the ops that conflict; ACS_PLACE_NONE if none do. */
acs_conflict acs_analysis_conflict(const acs_analysis *analysis, uint32_t up, uint32_t down, uint32_t *up_segment,
                                   uint32_t *segment);

#endif

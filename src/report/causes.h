/*
 * What made a program slow, by its analysis: pairs of call sites whose ops waited for each other, and causes, each
 * with its cost and a remedy. Read by the writers of traces and pages.
 */
#ifndef ACS_CAUSES_H
#define ACS_CAUSES_H

#include "report/path.h"
#include "report/what_if.h"

enum { ACS_CAUSE_TEXT = 400, ACS_CAUSE_OPS = 8, ACS_CAUSES_MOST = 16 };

/* Ops of `down` waited for ops of `up`. */
typedef struct acs_serial_pair {
    uint32_t up, down;    /* labels */
    uint32_t example;     /* op of `down` that waited longest */
    uint8_t conflict;     /* acs_conflict */
    bool other_pointers; /* the two ops had different pointers, beside those that begin segments, at least once */
    bool whole_block;     /* each time both segments were a whole block */
    uint64_t count;       /* times that one waited */
    uint64_t held_ns;     /* time of all ops that waited */
    uint64_t path_ns;     /* what they take of the path */
    uint64_t gain_ns;     /* what is to be gained without them, at most; 0 where they carry results */
    uint32_t place;       /* for pairs.c */
    char range[ACS_CAUSE_TEXT], fix[ACS_CAUSE_TEXT];
} acs_serial_pair;

/*
 * Whether ops wait although they may touch different bytes: all name the same whole block, but have pointers to different
 * places.
 */
static inline bool acs_serial_pair_is_suspicious(const acs_serial_pair *p)
{
    return p->conflict == ACS_CONFLICT_RAW && p->whole_block && p->other_pointers && p->up == p->down;
}

typedef struct acs_cause {
    const char *kind;
    uint64_t ns;                           /* what is to be gained without it, at most; of a chain: what it takes */
    uint32_t ops[ACS_CAUSE_OPS], op_count; /* where to look */
    const char *how;     /* how `ns` was computed */
    char title[ACS_CAUSE_TEXT], text[ACS_CAUSE_TEXT], fix[ACS_CAUSE_TEXT];
} acs_cause;

typedef struct acs_causes {
    acs_serial_pair *pairs; /* those that take most of the path first */
    uint32_t pair_count, pair_room;
    acs_cause list[ACS_CAUSES_MOST]; /* the dearest first */
    uint32_t count;
    acs_path path;
    acs_played played[ACS_PLAYED_MOST]; /* settings; none if the ops could not be played */
    uint32_t played_count;
} acs_causes;

/* Sets acs_analysed_op.pair, too. ACS_ERR_MEMORY: nothing is left allocated. */
acs_status acs_causes_make(acs_analysis *analysis, const acs_surroundings *around, acs_causes *causes);
void acs_causes_free(acs_causes *causes);

/* pairs.c */
acs_status acs_serial_pairs_make(acs_analysis *analysis, const acs_surroundings *around, acs_causes *causes);
/* text.c: the length of a union of spans of time; sorts them. */
uint64_t acs_time_spans_union(acs_time_span *spans, size_t count);
extern const char *const acs_method_names[ACS_METHOD_COUNT];
/* "saxpy (main.c:42)" */
const char *acs_label_text(acs_label label, char text[ACS_CAUSE_TEXT]);
/* "1.2 ms", "64 KiB" */
const char *acs_time_text(uint64_t ns, char text[32]);
const char *acs_bytes_text(uint64_t bytes, char text[32]);

#endif

/*
 * The path: what the program's time went to, walked back from the op that ended last. At each op the walk goes on to
 * what its begin waited for last: an op that it depends on, the op before it in its stream, room in the window, the
 * host's calls, or the caller. The parts of the path are the whole time, without gaps; so what a cause takes of it is
 * its cost. (Critical path of a run, as in Yang and Miller, Critical Path Analysis for the Execution of Parallel
 * Programs.)
 */
#ifndef ACS_PATH_H
#define ACS_PATH_H

#include "report/analysis.h"

/* Whether the part's op ran, on which the next one depends. */
#define ACS_PATH_IS_PAIR(reason) ((reason) >= ACS_PATH_RESULT && (reason) <= ACS_PATH_ANY)

/* What a part of the path was for. */
typedef enum acs_path_reason {
    ACS_PATH_RUN,    /* the op that ended last ran */
    /* an op ran, on which the next one on the path depends: it reads what this one wrote; it overwrites what this one used;
     * the memory was freed and is handed out again; one of the two may touch any memory */
    ACS_PATH_RESULT,
    ACS_PATH_OVERWRITE,
    ACS_PATH_MEMORY,
    ACS_PATH_ANY,
    ACS_PATH_STREAM, /* an op ran, behind which the next one was in its stream */
    ACS_PATH_WINDOW, /* an op ran, whose end made room in the window, or the FIFO, for the next one */
    ACS_PATH_WAIT,   /* an op ran, for which a caller waited before it queued the next one */
    ACS_PATH_ISSUE,  /* nothing held the next op but the host's calls and threads */
    ACS_PATH_CALLER, /* the next op had not been queued */
    ACS_PATH_START,  /* the next op could run and was handed over, but had not begun */
    ACS_PATH_COUNT
} acs_path_reason;

typedef struct acs_path_part {
    uint64_t from, to;
    uint32_t op;    /* that ran; of ISSUE and CALLER: the one that was late */
    uint32_t next;  /* the op that it held up; ACS_PLACE_NONE: none */
    uint8_t reason; /* acs_path_reason */
} acs_path_part;

typedef struct acs_path {
    acs_path_part *parts; /* the latest first */
    uint32_t count, room;
    uint64_t ns[ACS_PATH_COUNT];
} acs_path;

/* ACS_ERR_MEMORY: nothing is left allocated. */
acs_status acs_path_make(const acs_analysis *analysis, acs_path *path);
void acs_path_free(acs_path *path);

#endif

/*
 * What the checks of a launch have found about its footprint; and the report of it: a line for each finding, the
 * footprint as it is, and as it should be, to paste.
 */
#ifndef ACS_CHECK_FINDINGS_H
#define ACS_CHECK_FINDINGS_H

#include "base/tuning.h"
#include "checks/compare.h"

typedef enum acs_finding_kind {
    ACS_FOUND_WRITES_UNNAMED, /* changes bytes that it does not name as written */
    ACS_FOUND_READS_UNNAMED,  /* reads bytes that it does not name */
    ACS_FOUND_READS_OUT,      /* reads old bytes of an out segment */
    ACS_FOUND_UNWRITTEN,      /* leaves bytes of an out segment as they were */
    ACS_FOUND_FAILS           /* fails once bytes that it does not name as read are others */
} acs_finding_kind;

typedef struct acs_finding {
    acs_finding_kind kind;
    acs_found_bytes bytes;
    uint32_t segment; /* that it is about; UINT32_MAX: none */
    uint32_t cause;   /* the segment with other bytes in the corrected footprint, which explains it; UINT32_MAX: none */
} acs_finding;

/* A launch that was checked. */
typedef struct acs_checked {
    acs_context *context;
    const acs_launch_params *params;
    const acs_segment *named;    /* as the program named them */
    const acs_segment *segments; /* as they are checked */
    uint32_t segment_count;
    acs_segment *corrected;      /* the footprint with what was found: the segments, then others; NULL: not known */
    uint32_t corrected_count;
    bool corrected_right;        /* the check, run on it, finds nothing */
    const acs_image *image;
    acs_label label;
    acs_op op;
    uint64_t number; /* of the op in the program, had there been no check */
    acs_finding findings[TUNE_CHECK_FINDINGS];
    uint32_t count;
} acs_checked;

/*
 * Add a finding; bytes->bytes 0: it was told before where they lie. It is about the segment with the first byte, if any.
 * The first TUNE_CHECK_FINDINGS are kept.
 */
void acs_findings_add(acs_checked *checked, acs_finding_kind kind, const acs_found_bytes *bytes);
/* The segment that has the byte; UINT32_MAX: none. */
uint32_t acs_segment_with(const acs_segment *segments, uint32_t count, uint64_t address);
/* Whether the report would name two addresses by the same pointer of an argument. */
bool acs_findings_same_pointer(const acs_checked *checked, uint64_t a, uint64_t b);
/*
 * Keep the errors in the context; `print`: and write the report to standard error, the `first` one with a word about how
 * it counts. Without findings nothing.
 */
void acs_findings_report(const acs_checked *checked, bool print, bool first);

#endif

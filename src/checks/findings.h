/*
 * What the checks of a launch have found about its footprint; and the report of it: a line for each finding, and the
 * footprint as it should be, to paste.
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
} acs_finding;

/* A launch that was checked. */
typedef struct acs_checked {
    acs_context *context;
    const acs_launch_params *params;
    const acs_segment *segments; /* as the program named them */
    uint32_t segment_count;
    const acs_image *image;
    acs_label label;
    acs_op op;
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
/* Keep the errors in the context; `print`: and write the report to standard error. Without findings nothing. */
void acs_findings_report(const acs_checked *checked, bool print);

#endif

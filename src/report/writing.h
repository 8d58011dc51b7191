/* Writers of what is known of a recording. Private to this folder. Errors of the file are the caller's to look for.
 */
#ifndef ACS_WRITING_H
#define ACS_WRITING_H

#include "report/causes.h"

#include <stdio.h>

/* All that is written. */
typedef struct acs_told {
    const acs_analysis *analysis;
    const acs_causes *causes;
    const acs_surroundings *around;
    const char *backend; /* its name */
    const char *times;   /* how times of ops were learnt: "exact", or as in ACS_TRACE_TIMES */
} acs_told;

/* A string of JSON, with quotes. Bytes that are no UTF-8 become '?'; "<" is written so that HTML does not end. */
void acs_json_string(FILE *file, const char *text);
/* data.c: the object that pages and acs-report read (docs/trace.md). */
void acs_data_write(FILE *file, const acs_told *told);
/* timeline.c: the events that Perfetto and chrome://tracing show, as elements of a list, and the data as "acs". */
void acs_timeline_write(FILE *file, const acs_told *told);
/* page.c, made from the files of page/: what comes before the data in a page, and behind it. */
extern const char *const acs_page_head[], *const acs_page_tail[];

#endif

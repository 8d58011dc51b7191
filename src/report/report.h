/*
 * ACS_TRACE and ACS_REPORT: records a context's ops while it is open, and writes a timeline and a page when it
 * closes. Private to src/library.
 */
#ifndef ACS_REPORT_H
#define ACS_REPORT_H

#include "api/context.h"

/*
 * Begin to record, if one of the files is asked for, and look that they can be written. The core is open, and holds
 * no op. ACS_ERR_OPTION through ACS_FAIL: a file cannot be written. ACS_ERR_MEMORY.
 */
acs_status acs_report_open(acs_context *context);
/* Write the files. All ops have ended, and no other call is under way. What cannot be written is logged. */
void acs_report_write(acs_context *context);
/* Release what acs_report_open made, also where nothing was written. */
void acs_report_close(acs_context *context);

#endif

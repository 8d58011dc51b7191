/*
 * What acs::compat (src/compat) needs of the runtime.
 */
#ifndef ACS_RUNTIME_COMPAT_H
#define ACS_RUNTIME_COMPAT_H

/*
 * Wait until all ops queued so far in all open contexts have retired. Failures stay in their contexts. Returns at once on
 * threads of the library and inside the program's functions that the library calls (host functions, library calls,
 * callbacks, footprints): they would wait for themselves. Touches no stream, so a stream being captured is not disturbed.
 */
void acs_compat_drain(void);

#endif

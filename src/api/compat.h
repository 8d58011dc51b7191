/*
 * The function of the library that acs::compat (src/compat) calls before the CUDA calls that it wraps.
 */
#ifndef ACS_RUNTIME_COMPAT_H
#define ACS_RUNTIME_COMPAT_H

/*
 * Wait until all ops queued so far in all open contexts have retired. Failures stay in their contexts. Returns at once
 * where it would wait for itself: on threads of the library, and inside functions of the program that the library calls
 * (host functions, library calls, callbacks, footprints). Touches no stream, so it does not disturb a stream that is
 * being captured.
 */
void acs_compat_drain(void);

#endif

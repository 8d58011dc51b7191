/**
 * @file acs_wrap.h
 * What the wrappers of libraries have in common: prepared calls, and the latest error. Included by acs_fft.h, acs_rand.h,
 * acs_sparse.h, acs_blaslt.h, acs_dnn.h and acs_nccl.h; programs need not include it.
 *
 * **Functions of wrappers.** Those that queue an op return an acs_op, 0 on failure. Those that prepare one, or make an
 * object, return an acs_status. After a failure acs_wrap_last_error() says what was wrong, and nothing was queued. A
 * context whose op was refused also keeps ACS_ERR_ARGUMENT (acs_sync), with the function's name as its site: program order
 * has a hole there.
 *
 * **Threads.** As acs.h: any, at any time.
 */
#ifndef ACS_WRAP_H
#define ACS_WRAP_H

#include "acs.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ACS_WRAP_SEGMENTS_MAX = 8, ACS_WRAP_CLOSURE_WORDS = 32 };

/**
 * An op that was prepared and not queued: acs_call(context, &call.params) queues it, as often as you like. `params` points
 * into the rest, so the struct must stay where it is. `params.site` and `params.no_wait` may be set, and
 * `params.scratch_bytes` raised. A program that calls `params.function` itself gives it an acs_call_env: stream, device (-1:
 * the CPU), scratch memory, and one place for each stream. `params.place_destroy` releases a place.
 */
typedef struct acs_wrap_call {
    acs_call_params params;
    acs_segment segments[ACS_WRAP_SEGMENTS_MAX];
    uint64_t closure[ACS_WRAP_CLOSURE_WORDS];
} acs_wrap_call;

/**
 * The latest error that a function of a wrapper returned to this thread; as acs_last_error otherwise.
 * @param[out] error  `size` set by the caller, may be NULL; untouched when there was none.
 */
acs_status acs_wrap_last_error(acs_error *error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ACS_WRAP_H */

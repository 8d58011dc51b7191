/*
 * Timing of a launch in place: it runs several times, and the bytes that it writes are given back. Used by acs_measure and
 * by tuning. Defined in measure.c.
 */
#ifndef ACS_VARIANT_MEASURE_H
#define ACS_VARIANT_MEASURE_H

#include "api/draft.h"
#include "variants/profile.h"

/* The bytes that a launch writes, kept while it is timed. */
typedef struct acs_kept_span {
    uint64_t first, end;
    void *copy; /* memory of acs_malloc */
} acs_kept_span;

typedef struct acs_kept {
    acs_context *context;
    acs_kept_span *list; /* rising, apart */
    size_t count;
} acs_kept;

/*
 * Wait for all ops of the context, and copy what the launch writes; its segments are plain. ACS_ERR_ARGUMENT: it may write
 * anything. ACS_ERR_MEMORY, and the status of the context if an op fails: nothing is kept.
 */
acs_status acs_kept_take(acs_kept *kept, acs_context *context, const acs_launch_params *params);
/* Copy the bytes back, and wait for that. May be called several times. */
acs_status acs_kept_give_back(const acs_kept *kept);
void acs_kept_free(acs_kept *kept);

/* What runs while a launch is timed. */
typedef struct acs_measured_beside {
    const acs_launch_params *launch; /* one version, plain segments; NULL: see the next */
    const void *copy_from;           /* copies of `copy_bytes` bytes; NULL: nothing runs */
    void *copy_to;
    size_t copy_bytes;
    uint32_t share;
} acs_measured_beside;

/* Whether the context can time launches now; else an error that names `function`. */
acs_status acs_measure_check(acs_context *context, const char *function);
/*
 * Time a launch of one version whose segments are plain; the caller has kept what it writes. `share` 0: the whole device.
 * ACS_ERR_ARGUMENT and others: the launch is refused, or failed.
 */
acs_status acs_measure_launch(acs_context *context, const acs_launch_params *params, uint32_t share, uint32_t runs,
                              const acs_measured_beside *beside, acs_measured *result);

#endif

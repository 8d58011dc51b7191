/*
 * Launches of kernels that have versions: which one runs; and tuning while a program runs, for acs-tune (ACS_TUNE):
 * problems are listed, or measured at their first launch. Defined in launch.c and tune.c.
 */
#ifndef ACS_VARIANT_LAUNCHES_H
#define ACS_VARIANT_LAUNCHES_H

#include "api/draft.h"
#include "variants/book.h"

/* How a launch goes on once its version is chosen. */
typedef acs_op (*acs_variant_next)(acs_context *context, const acs_launch_params *params);

/*
 * Queue a launch whose segments are plain: `next` gets it, as the launch of the version that is chosen if its kernel has
 * some. A launch that is timed to learn from is queued here. Called with ACS_MODE_VARIANTS.
 */
acs_op acs_variant_launch(acs_context *context, const acs_launch_params *params, acs_variant_next next);

/*
 * A launch of a kernel with versions comes, with ACS_TUNE=list or measure; its segments are plain. With `measure` the times
 * that are missing are taken, and what the launch writes is as before. Errors are told on standard error, and the program
 * goes on.
 */
void acs_tune_launch(acs_context *context, const acs_launch_params *params, const acs_variant_set *set,
                     const acs_book_entry *entry);
/* Write the profile. An error is told on standard error. */
acs_status acs_tune_store(acs_variant_book *book);
/* The context closes: with ACS_TUNE=list the profile is written. */
void acs_tune_close(acs_context *context);

#endif

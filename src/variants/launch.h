/*
 * Launches of kernels that have versions: which one runs. Defined in launch.c.
 */
#ifndef ACS_VARIANT_LAUNCH_H
#define ACS_VARIANT_LAUNCH_H

#include "api/draft.h"
#include "variants/sets.h"

/* How a launch goes on once its version is chosen. */
typedef acs_op (*acs_variant_next)(acs_context *context, const acs_launch_params *params);

/*
 * Queue a launch whose segments are plain. If its kernel has versions and one can be chosen now, `next` gets the launch of
 * that version. Else the op goes into the window with its versions open. Called with ACS_MODE_VARIANTS.
 */
acs_op acs_variant_launch(acs_context *context, const acs_launch_params *params, acs_variant_next next);

/* A launch of one version: what acs_launch_params has in place of the program's. */
typedef struct acs_version_launch {
    acs_kernel kernel;
    acs_launch_params params; /* refers to `kernel` */
} acs_version_launch;

/*
 * Make the launch of a version of the set. Runs the program's shape function. False: the version cannot run the launch; or
 * *status is an error, since the function refused the arguments.
 */
bool acs_variant_make(const acs_launch_params *params, const acs_variant_set *set, uint32_t number,
                      acs_version_launch *version, acs_status *status);
/* What the times of a launch's versions depend on. */
struct acs_problem_key;
void acs_variant_problem(const acs_launch_params *params, struct acs_problem_key *key);
/* The kernel's name in profiles. */
const char *acs_variant_kernel_name(const acs_launch_params *params);

/* Queue a launch, and time it on the device for `timing`. 0 with an error: refused, and `timing` is not called. */
acs_op acs_launch_timed(acs_context *context, const acs_launch_params *params, acs_timing *timing);

#endif

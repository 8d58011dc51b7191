/*
 * The launch of one version of a kernel, made from the launch that the program asked for. Used by launch.c, which chooses
 * the version, and by measurements. Defined in make.c.
 */
#ifndef ACS_VARIANT_MAKE_H
#define ACS_VARIANT_MAKE_H

#include "api/draft.h"
#include "variants/profile.h"

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
void acs_variant_problem(const acs_launch_params *params, acs_problem_key *key);
/* The kernel's name in profiles. */
const char *acs_variant_kernel_name(const acs_launch_params *params);

/*
 * Queue a launch, and time it on the device for `timing`. 0 with an error: refused, and `timing` is not called. *unfit: the
 * backend refuses this kernel in this shape, and the context keeps no error.
 */
acs_op acs_launch_timed(acs_context *context, const acs_launch_params *params, acs_timing *timing, bool *unfit);

#endif

/*
 * Launches of kernels that have versions: which one runs. Defined in launch.c.
 */
#ifndef ACS_VARIANT_LAUNCH_H
#define ACS_VARIANT_LAUNCH_H

#include "api/draft.h"

/* How a launch goes on once its version is chosen. */
typedef acs_op (*acs_variant_next)(acs_context *context, const acs_launch_params *params);

/*
 * Queue a launch whose segments are plain: `next` gets it, as the launch of the version that is chosen if its kernel has
 * some. A launch that is timed to learn from is queued here. Called with ACS_MODE_VARIANTS.
 */
acs_op acs_variant_launch(acs_context *context, const acs_launch_params *params, acs_variant_next next);

#endif

/*
 * Launches of kernels that have versions: which one runs. Defined in launch.c.
 */
#ifndef ACS_VARIANT_LAUNCH_H
#define ACS_VARIANT_LAUNCH_H

#include "api/draft.h"

/* How a launch goes on once its version is chosen. */
typedef acs_op (*acs_variant_next)(acs_context *context, const acs_launch_params *params);

/*
 * Queue a launch whose segments are plain. If its kernel has versions and one can be chosen now, `next` gets the launch of
 * that version. Else the op goes into the window with its versions open. Called with ACS_MODE_VARIANTS.
 */
acs_op acs_variant_launch(acs_context *context, const acs_launch_params *params, acs_variant_next next);

#endif

/*
 * ACS_CHECK=written: check that kernels write all bytes of their out segments. Private to src/checks and src/library.
 */
#ifndef ACS_CHECK_OUTPUTS_H
#define ACS_CHECK_OUTPUTS_H

#include "api/context.h"

/*
 * acs_launch with further ops: before the kernel they fill each out segment with bytes that no kernel writes by chance,
 * behind it they look for remaining ones. Returns when they have looked. Launches are not checked that may not wait, are
 * held or captured, may touch any memory, or have more than SEGMENTS_MOST segments.
 */
acs_op acs_check_outputs_launch(acs_context *context, const acs_launch_params *params);

#endif

/*
 * ACS_CHECK=written: do kernels write all bytes of their out segments? Private to src/debug.
 */
#ifndef ACS_WRITTEN_H
#define ACS_WRITTEN_H

#include "api/context.h"

/*
 * acs_launch, with ops before and behind it that fill each out segment with bytes that no kernel writes by chance, and
 * look for what is left of them; returns when they have looked. Not for launches that may not wait, are held or
 * captured, may touch anything, or have more segments than are looked at: those go as they are.
 */
acs_op acs_check_outputs_launch(acs_context *context, const acs_launch_params *params);

#endif

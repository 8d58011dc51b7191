/*
 * ACS_CHECK=written: do kernels write all bytes of their out segments? Private to src/runtime.
 */
#ifndef ACS_WRITTEN_H
#define ACS_WRITTEN_H

#include "runtime/context.h"

/*
 * acs_launch, with ops before and behind it that fill each out segment with bytes that no kernel writes by chance, and look
 * for what is left of them. Not for launches that may not wait, are held or captured: those go as they are.
 */
acs_op acs_written_launch(acs_context *context, const acs_launch_params *params);

/* launch.c */
/* acs_launch as it is. */
acs_op acs_launch_unchecked(acs_context *context, const acs_launch_params *params);
/* What it names: at most `room` segments, those of a footprint function among them. Nothing is checked. */
size_t acs_launch_segments(const acs_launch_params *params, acs_segment *segments, size_t room);

#endif

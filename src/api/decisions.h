/*
 * Decided ops of a context (decisions.c): sections between acs_if and acs_end_if, loops, grids that are read on the
 * device; and the cells through which decisions reach the ops that obey them (window/decision.h). Used by the calls
 * that queue ops, and by those that wait.
 */
#ifndef ACS_DECISIONS_H
#define ACS_DECISIONS_H

#include "api/draft.h"

/* Whether the GPU decides about the launch: acs_decisions_launch takes it then. */
bool acs_decisions_decides(const acs_context *context, const acs_launch_params *params);
/*
 * If the calling thread is in a section, let the draft, which has no record yet, obey it. Queues the section's decision
 * before its first op. `uses`: the op's footprint, by which cells are told apart. False with an error: refused.
 */
bool acs_decisions_obey(acs_draft *draft, const acs_uses *uses);
/*
 * acs_launch for a thread in a section, or with a grid that is read on the device. Where that is a grid, queues the
 * decision about it, too.
 */
acs_op acs_decisions_launch(acs_context *context, const acs_launch_params *params);
/* Keep an error for each grid that was too large since the last look. @return the first of them, through ACS_FAIL. */
acs_status acs_decisions_look(acs_context *context);
/* The number of ops that did not run. */
uint64_t acs_decisions_not_run(acs_context *context);

/* Part of acs_close, when no op runs. `keep`: one may still run. */
void acs_decisions_close(acs_context *context, bool keep);

#endif

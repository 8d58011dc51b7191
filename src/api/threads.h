/*
 * Steps of the core that threads of the program and of the library take. Private to src/api; defined in
 * threads.c, used by wait.c.
 */
#ifndef ACS_THREADS_H
#define ACS_THREADS_H

#include "api/context.h"

/* Whether no worker is awake. A worker that falls asleep looks for work after this turned true. */
bool acs_workers_asleep(acs_context *context);
/* There is work: wake a worker unless one is awake. Without workers, wake the callers that wait. */
void acs_wake_somebody(acs_context *context);
/* Wake the threads for which a step found news. */
void acs_pass_on_news(acs_context *context, const acs_core_news *news);
/*
 * One step of the core with an action of the calling thread. `may`: bits ACS_MAY_.
 * @return false if nothing changed, so that the thread may rest; a poll that found nothing changes nothing.
 */
bool acs_step_with(acs_context *context, acs_action *action, uint32_t may);
/* What the step of a caller may do. */
uint32_t acs_caller_may(acs_context *context);
/*
 * One step of a caller. *load is set to what the step left to do; it stays as it was if no action was free.
 * @return as acs_step_with; false also if no action was free.
 */
bool acs_caller_steps(acs_context *context, uint32_t may, acs_core_load *load);

#endif

/*
 * Threads around the core (threads.c): steps that callers and workers take, and waking either of them. Called by every
 * call that queues an op or waits, by the backend's threads, and by acs_open and acs_close, which start and stop
 * workers.
 */
#ifndef ACS_THREADS_H
#define ACS_THREADS_H

#include "api/context.h"

/* Whether the library made the calling thread. */
bool acs_thread_is_ours(void);
/* Time of the context in ns: real, or that of the simulated host. */
uint64_t acs_context_now_ns(void *context);

/* ------------------------------------------------------------------------------------------------- workers, waking */

/* Start the workers, and make the actions with which callers step. On failure acs_workers_stop ends those started. */
acs_status acs_workers_start(acs_context *context);
/* Stop and join all threads of the context. @return number of threads left behind inside an op that was given up. */
uint32_t acs_workers_stop(acs_context *context);
/* Start the thread of host functions, unless there is one or the program asked for no workers. */
void acs_host_thread_start(acs_context *context);
/*
 * A thread, maybe that of host functions, is inside an op that may never return. From now on workers and callers run
 * callbacks and frees, which are never skipped.
 */
static inline void acs_host_thread_give_up(acs_context *context)
{
    atomic_store_explicit(&context->host_thread, 3, memory_order_release); /* B: pairs with has_host_thread */
}

/*
 * Whether no worker is awake, so that a caller has to step itself. A worker that falls asleep looks for work after this
 * turned true.
 */
bool acs_workers_asleep(acs_context *context);
/* There is work: wake a worker unless one is awake. Without workers, wake the callers that wait. */
void acs_wake_somebody(acs_context *context);
/* Wake the threads for which a step found news. */
void acs_pass_on_news(acs_context *context, const acs_core_news *news);
/* An op was queued: wake a worker, or step here. `kernel`: the op is a kernel, which this call may issue itself. */
void acs_context_queued(acs_context *context, acs_op op, bool kernel);
/* The backend has completions to poll for. Called on the backend's threads. */
void acs_context_completed(void *context);

/* ------------------------------------------------------------------------------------------------------------ steps */

/*
 * One step of the core with an action of the calling thread. `may`: bits ACS_MAY_.
 * @return false if nothing changed, so that the thread may rest; a poll that found nothing changes nothing.
 */
bool acs_step_with(acs_context *context, acs_action *action, uint32_t may);
/* Bits ACS_MAY_ of a caller's step. */
uint32_t acs_caller_may(acs_context *context);
/*
 * One step of a caller. *load is set to what the step left to do; it stays as it was if no action was free.
 * @return as acs_step_with; false also if no action was free.
 */
bool acs_caller_steps(acs_context *context, uint32_t may, acs_core_load *load);
/* One step on the calling thread, by the stepper where there is one. False: nothing to do now. */
bool acs_context_step(acs_context *context);

/* --------------------------------------------------------------------------------------------------- CPUs (cpus.c) */

/* Read the list of CPUs to which threads are pinned (ACS_CPUS) into the context. */
acs_status acs_cpus_parse(acs_context *context, const char *list);
/* CPU for the next thread, in turn; -1: threads are not pinned. */
int acs_context_cpu_next(void *context);

#endif

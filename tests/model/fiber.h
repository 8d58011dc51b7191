/*
 * The threads of a scenario as coroutines, each on a stack of its own in the arena: one runs until its next visible
 * operation, which waits in `op` until the search performs it.
 */
#ifndef MODEL_FIBER_H
#define MODEL_FIBER_H

#include "internal.h"

typedef struct model_fiber {
    void (*scenario)(void);        /* one of these two */
    void *(*function)(void *);
    void *argument;
    model_op op;                   /* what it wants to do next */
    bool ended, daemon, signalled; /* signalled: may take its mutex again */
} model_fiber;

extern model_fiber g_fibers[MODEL_THREADS];

/* Forget all threads of the last execution. */
void fibers_reset(void);
/* Add a thread; it does not run yet. */
int fiber_add(void (*scenario)(void), void *(*function)(void *), void *argument);
/* On a thread of the scenario: do this operation when the search says so; returns it with its result. */
const model_op *fiber_visible(model_site *site, model_op op);
/* Let it run to its next visible operation. */
void fiber_run(int thread);
/* Run `body`; false if model_fail was called meanwhile, in whatever thread. */
bool fiber_guard(void (*body)(void));
/* What model_fail was told. */
const char *fiber_failure(void);

#endif

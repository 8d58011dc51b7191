/*
 * Scenes as an environment for policies that the caller trains. One thread at a time uses an environment. A call that fails
 * ends the process with a message, as in the rest of this sample.
 */
#ifndef PHYSICS_ENVIRONMENT_H
#define PHYSICS_ENVIRONMENT_H

#include <acs.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef struct environment environment;

/** A scene's memory, where the context's ops run, until environment_close. Arrays have a row for each feature. */
typedef struct environment_view {
    const char *name;
    int worlds, observed, actions, horizon; /* horizon: steps of an episode */
    float *obs;                             /* observed x worlds, a column for each world; the last step's */
    float *act;                             /* actions x worlds: angles that motors go to in the next step */
    float *reward;                          /* worlds: each step adds its own */
    int *done;                              /* worlds: whether the episode ended with the last step */
    /** On the host; for each action offset, amplitude, gain, bias, cosine and sine of the delay of the scene's rhythm. */
    const float *drive;
} environment_view;

/** Scenes with memory of the context, in their first state. Waits. NULL: no context, or nothing to simulate. */
environment *environment_open(acs_context *context, int scenes, int worlds, uint64_t seed);
/** Queue a step of all scenes on the context. Waits only while the context's FIFO is full. */
void environment_step(environment *e);
/** @return 0 if there is no such scene. */
int environment_scene(const environment *e, int index, environment_view *view);
/** Kernels that all steps have queued. */
uint64_t environment_kernels(const environment *e);
/** Wait for the context, and free the memory. */
void environment_close(environment *e);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif

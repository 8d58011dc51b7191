/*
 * A step whose launches are the same every time: every pair type at its maximum size, nothing read back.
 *
 * What changes from step to step lies in device memory beside the arena: the clock, which pair types have candidates,
 * and for each set of those the bodies of the islands, as the host would find them.
 */
#ifndef PHYSICS_BENCH_REPLAY_H
#define PHYSICS_BENCH_REPLAY_H

#include "kernels.h"

/** Per scene, on the device. */
struct replay_state {
    int clock;                        /* ticks before this step */
    int active[MAX_TYPES];            /* the last tick in which a pair type had candidates */
    unsigned bodies[1u << MAX_TYPES]; /* [set of pair types]: bit b is body b */
};

/** narrow with a thread for every place in the candidate lists. */
struct narrow_all_args {
    unsigned threads;
    narrow_args n;
    replay_state *r;
};

/** solve over the bodies that could be in an island; those that are not return at once. */
struct solve_all_args {
    unsigned threads;
    solve_args v;
    const replay_state *r;
};

/** apply over all bodies; those that are in no island return at once. */
struct apply_all_args {
    unsigned threads;
    int worlds, tick;
    const model *m;
    const float *dv;
    float *vel;
    const replay_state *r;
};

/** The end of a step: one thread. */
struct clock_args {
    unsigned threads;
    int ticks;
    replay_state *r;
};

extern const kernel_object kernel_narrow_all, kernel_solve_all, kernel_apply_all, kernel_clock;

#endif

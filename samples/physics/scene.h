/*
 * A scene: one body plan in many worlds, all its memory in one contiguous arena, and where each field lies in it.
 */
#ifndef PHYSICS_SCENE_H
#define PHYSICS_SCENE_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels.h"
#include "plan.h"

/** The fields of an arena that begins at some address: on the device, or a copy on the host. */
struct arena {
    model *m;
    float *pos, *rot, *vel, *dv[2];
    float *first_pos, *first_rot, *first_vel;
    float *joint[JOINT_CLASSES], *motor[JOINT_CLASSES];
    float *act, *obs, *hidden, *weights_in, *weights_out, *pace, *reward;
    int *done;
    int *candidates[2][MAX_TYPES], *counts[2]; /* [tick & 1] */
    float *manifold[MAX_TYPES], *lambda[MAX_TYPES];
    /* Only written where the device decides, so not part of the state that ways to run have in common. */
    device_words *words;
    size_t common, bytes; /* up to the words, and all */
};

struct scene {
    const plan *p;
    int index, worlds;
    int first_tile[MAX_TYPES + 1]; /* where a pair type's counts begin; the last: how many counts there are */
    arena at;                      /* on the device */
    int *host_counts[2];           /* pinned; [tick & 1] */
    std::vector<char> image;       /* the arena as a run begins */
};

/** How many CTAs broad takes for a pair type: one count each. */
int scene_tiles(const plan &p, int type, int worlds);
/** Bytes of an arena, and its fields when it begins at `base`. */
arena scene_layout(const plan &p, int worlds, char *base);
/** Fills plan, counts and image of scene `index`; `at` and `host_counts` are the caller's. */
void scene_init(scene &s, int index, int worlds, uint64_t seed);
/** The worlds' bodies as capsule ends, from a copy of the arena. */
void scene_capsule(const scene &s, const arena &copy, int body, int world, vec3 &a, vec3 &b);

#endif

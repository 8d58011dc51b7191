/*
 * The five body plans: ant, grasp, humanoid, cheetah, walker.
 */
#ifndef PHYSICS_PLAN_H
#define PHYSICS_PLAN_H

#include "model.h"

enum { PLANS = 5 };

/** What only the host needs to know of a plan: names, colours, bounds. */
struct plan_info {
    const char *name;
    const char *type_name[MAX_TYPES];
    unsigned colour[MAX_BODIES]; /* 0xrrggbb */
    float view_width;            /* metres that a picture shows */
    float most_energy;           /* joules per world that --check allows, potential and kinetic */
    float drop[2];               /* height range from which worlds start, metres above contact */
    float tilt;                  /* most initial tilt, as turn_of measures */
};

struct plan {
    plan_info info;
    model m;
};

/** Plan k, 0 to PLANS - 1. Built at first use; lives as long as the program. */
const plan &plan_get(int k);

#endif

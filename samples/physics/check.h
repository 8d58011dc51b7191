/*
 * Is what came out the same, and is it physics?
 */
#ifndef PHYSICS_CHECK_H
#define PHYSICS_CHECK_H

#include "simulation.h"

/** The worst over all worlds of a scene, at one moment. */
struct physics_bounds {
    double energy;      /* joules, potential above the ground and kinetic */
    double penetration; /* metres that a body is inside the ground or another body of a pair type */
    double joint_gap;   /* metres between the two anchors of a joint */
    long missed;        /* contacts that are no candidates */
    bool finite;        /* no NaN, no infinity */
};

/** Measures the worlds of a copy of the arena. `merge` keeps the worse of `worst` and what is found. */
void check_measure(const scene &s, const std::vector<char> &state, physics_bounds &worst);

/** Do the bounds hold that the plan states? Writes what does not to standard error. */
bool check_bounds(const scene &s, const physics_bounds &worst);

/** Is what all ways to run write the same bit for bit? Writes the first difference to standard error. */
bool check_same(const scene &s, const std::vector<char> &want, const std::vector<char> &got, const char *label);

/** A number that stands for the bits of positions, rotations and velocities: the same on every machine. */
uint64_t check_hash(const scene &s, const std::vector<char> &state, uint64_t hash);

#endif

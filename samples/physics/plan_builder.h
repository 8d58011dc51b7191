/*
 * Builds a model from bodies, joints and pair types given one after another. Used by plan.cpp only.
 */
#ifndef PHYSICS_PLAN_BUILDER_H
#define PHYSICS_PLAN_BUILDER_H

#include "plan.h"

class plan_builder {
public:
    plan_builder(const char *name, int substeps, float timestep);

    /** A capsule from `from` to `to` in the rest pose; a sphere where they are equal. @return its number. */
    int body(vec3 from, vec3 to, float radius, float mass, unsigned colour);
    /** The body follows a path of its own: nothing moves it. */
    void on_path(int body, float low, float lift);
    /** A joint at `anchor`; the first `dofs` of axes (first, second, first x second) are free. @return its number. */
    int joint(int parent, int child, int dofs, vec3 anchor, vec3 first, vec3 second, float stiffness);
    /** Limits and drive of the joint's degree of freedom k: see drive_model; `delay` in turns of the rhythm. */
    void drive(int joint, int k, float low, float high, float offset, float amplitude, float delay, float gain = 1,
               float bias = 0);
    /** Starts a contact pair type. */
    void type(const char *name);
    /** Adds to it: both ends of `a` (one of a sphere) against the ground, or a against b. */
    void ground(int a);
    void pair(int a, int b);
    /** Completes adjacency and masses, and returns the plan. `beat` in turns per second. */
    plan finish(float beat);

    plan p;

private:
    void slot(int a, int b, int end);
};

#endif

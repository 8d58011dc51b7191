/*
 * Every kernel of the simulation: its arguments, and its object. The code is in motion.cu, contact.cu and policy.cu.
 *
 * A field lies in memory as [item][component][world]: neighbouring threads touch neighbouring words, and a range of
 * bodies is one contiguous range of bytes.
 */
#ifndef PHYSICS_KERNELS_H
#define PHYSICS_KERNELS_H

#include "kernel.h"
#include "model.h"

/* Components of a field's item. */
enum {
    POS = 3,
    ROT = 4,
    VEL = 6, /* linear, angular */
    JOINT = 12,  /* impulse on the child (the opposite on the parent), torques: parent's, child's, the locked axes' */
    MOTOR = 3,   /* torque on the child */
    IMPULSE = 3, /* of a contact, on body a */
    MANIFOLD = 16,
    PACE = 3 /* rhythm: cosine, sine, and the age of the episode in steps */
};

/* What a manifold holds. MANIFOLD_TICK is the tick in which narrow wrote it, as an integer's bits. */
enum {
    MANIFOLD_NORMAL = 0,
    MANIFOLD_ARM_A = 3,
    MANIFOLD_ARM_B = 6,
    MANIFOLD_SPEED = 9, /* of a against b at the contact, before the contact acts */
    MANIFOLD_BIAS = 12,
    MANIFOLD_MASS_NORMAL = 13,
    MANIFOLD_MASS_SLIDE = 14,
    MANIFOLD_TICK = 15
};

enum { ITERATIONS = 2, BROAD_TILE = CONTACT_BLOCK };

/** What kernels read on the device where the host decides nothing. */
struct device_words {
    int clock;                       /* the substep; kinetic, its first kernel, moves it on */
    int found[2][MAX_TYPES];         /* [substep & 1][pair type]: the last substep that broad has found candidates for */
    unsigned island[2][MAX_ISLANDS]; /* [substep & 1]: of the model's islands: not 0 if there are candidates of it */
};

/** The number of the substep: what a kernel was told, or what it reads. */
PHYSICS_HD int substep_of(int tick, const device_words *words)
{
    return words ? words->clock : tick;
}

/** Bit t: there are candidates of pair type t in this substep. */
PHYSICS_HD unsigned types_found(const device_words &words, int substep)
{
    unsigned found = 0;
    for (int t = 0; t < MAX_TYPES; t++)
        found |= static_cast<unsigned>(words.found[substep & 1][t] == substep) << t;
    return found;
}

/** Does a body take part in this substep's contacts? */
PHYSICS_HD bool takes_part(const model &m, const device_words *words, int substep, int body)
{
    return !words || (m.in_islands[types_found(*words, substep)] >> body & 1);
}

PHYSICS_HD size_t at(int worlds, int components, int item, int component, int world)
{
    return (static_cast<size_t>(item) * components + component) * worlds + world;
}

PHYSICS_HD vec3 load3(const float *field, int worlds, int components, int item, int first, int world)
{
    const float *p = field + at(worlds, components, item, first, world);
    return {p[0], p[worlds], p[2 * static_cast<size_t>(worlds)]};
}

PHYSICS_HD void store3(float *field, int worlds, int components, int item, int first, int world, vec3 v)
{
    float *p = field + at(worlds, components, item, first, world);
    p[0] = v.x;
    p[worlds] = v.y;
    p[2 * static_cast<size_t>(worlds)] = v.z;
}

PHYSICS_HD quat load_rot(const float *rot, int worlds, int body, int world)
{
    const float *p = rot + at(worlds, ROT, body, 0, world);
    const size_t step = static_cast<size_t>(worlds);
    return {p[0], p[step], p[2 * step], p[3 * step]};
}

/** Bounded speeds are what lets the broad phase promise that it misses no contact. */
PHYSICS_HD void store_velocity(const model &m, float *vel, int worlds, int body, int world, vec3 speed, vec3 spin)
{
    if (m.planar) {
        speed.y = 0;
        spin.x = spin.z = 0;
    }
    store3(vel, worlds, VEL, body, 0, world, limit_length(speed, m.most_speed));
    store3(vel, worlds, VEL, body, 3, world, limit_length(spin, m.most_spin));
}

/*
 * Arguments of kernels have no padding. ACS compares them byte by byte with those that the kernel had the last time, and
 * what changes has to be set.
 */

/** kinetic(vel -> +pos, +rot, +clock): bodies move for one substep. */
struct kinetic_args {
    unsigned threads;
    int worlds;
    const model *m;
    const float *vel;
    float *pos, *rot;
    device_words *words; /* NULL: there is no clock */
};

/** joint(pos, rot, vel -> +dJ) of one class: keeps bodies together and joints inside limits; starts from the last dJ. */
struct joint_args {
    unsigned threads;
    int worlds, joint_class, unused;
    const model *m;
    const float *pos, *rot, *vel;
    float *out;
};

/** motor(rot, vel, act -> dA) of one class: the motors' torques. */
struct motor_args {
    unsigned threads;
    int worlds, joint_class, unused;
    const model *m;
    const float *rot, *vel, *act;
    float *out;
};

/** integrate(dJ*, dA* -> +vel): joints, motors, gravity. */
struct integrate_args {
    unsigned threads;
    int worlds;
    const model *m;
    const float *pos, *pace;
    const float *joint[JOINT_CLASSES], *motor[JOINT_CLASSES];
    float *vel;
};

/**
 * broad(pos, rot -> cand, count, found) of one pair type, for the next substep: CTA k lists its candidates from
 * cand + k * BROAD_TILE on.
 */
struct broad_args {
    unsigned threads;
    int worlds, type, tick;
    const model *m;
    const float *pos, *rot;
    int *candidates, *counts;
    device_words *words; /* as of narrow */
};

/** islands(found -> island): which of the model's islands have candidates in the next substep. One thread. */
struct islands_args {
    unsigned threads;
    int unused;
    const model *m;
    device_words *words;
};

/**
 * narrow(cand, count, pos, rot, vel -> +manifold) of one pair type. If the host decides, there is a thread for each
 * candidate; else one for each place in the lists.
 */
struct narrow_args {
    unsigned threads;
    int worlds, type, tick;
    const model *m;
    const int *candidates, *counts;
    const float *pos, *rot, *vel;
    float *manifold;
    const device_words *words; /* NULL: the host decides, and `tick` is the substep */
};

/** solve(manifold*, dv -> dv', +lambda*): one iteration over the bodies first_body.. of one island. */
struct solve_args {
    unsigned threads;
    int worlds, tick, iteration, first_body;
    unsigned types; /* bit t: pair type t takes part */
    const model *m;
    const float *dv_in;
    float *dv_out;
    const float *manifold[MAX_TYPES];
    float *lambda[MAX_TYPES]; /* [side][slot]: each body keeps a copy of its own, so that none waits for the other */
    const device_words *words; /* as of narrow; not NULL: only bodies of islands with candidates take part */
};

/** apply(dv -> +vel) over the islands' bodies. */
struct apply_args {
    unsigned threads;
    int worlds, tick, islands;
    int first_body[MAX_ISLANDS], bodies[MAX_ISLANDS];
    const model *m;
    const float *dv;
    float *vel;
    const device_words *words; /* as of solve */
};

/** observe(pos, rot, vel -> obs, +pace): what the policy sees; the rhythm advances. */
struct observe_args {
    unsigned threads;
    int worlds;
    const model *m;
    const float *pos, *rot, *vel;
    float *pace, *obs;
};

/** hidden(obs, weights -> hidden): the policy network's first layer. */
struct hidden_args {
    unsigned threads;
    int worlds;
    const model *m;
    const float *obs, *weights;
    float *hidden;
};

/** action(hidden, weights, pace -> act): its second layer, and the rhythm that it modulates. */
struct action_args {
    unsigned threads;
    int worlds;
    const model *m;
    const float *hidden, *weights, *pace;
    float *act;
};

/** reward(pos, vel, act -> +reward, +pace, done). */
struct reward_args {
    unsigned threads;
    int worlds;
    const model *m;
    const float *pos, *vel, *act;
    float *pace, *reward;
    int *done;
};

/** reset(done, first pos, first rot, first vel -> +pos, +rot, +vel): ended episodes begin again. */
struct reset_args {
    unsigned threads;
    int worlds;
    const model *m;
    const int *done;
    const float *first_pos, *first_rot, *first_vel;
    float *pos, *rot, *vel;
};

extern const kernel_object kernel_kinetic, kernel_joint, kernel_motor, kernel_integrate, kernel_broad, kernel_islands,
    kernel_narrow, kernel_solve, kernel_apply, kernel_observe, kernel_hidden, kernel_action, kernel_reward,
    kernel_reset;

#endif

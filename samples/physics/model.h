/*
 * A body plan as the kernels see it: bodies, joints, contact pair types and constants, in one struct that lies at the
 * head of every scene's arena and is never written while the simulation runs.
 *
 * Bodies are capsules (or spheres, where the half axis is 0) with scalar inertia. Body 0 is the ground: z = 0.
 * In the rest pose all rotations are the identity, so anchors and axes of a joint need no frame of their own.
 */
#ifndef PHYSICS_MODEL_H
#define PHYSICS_MODEL_H

#include "vec.h"

enum {
    MAX_BODIES = 16,
    MAX_JOINTS = 12,
    MAX_DOFS = 20,
    MAX_TYPES = 8,  /* contact pair types */
    MAX_SLOTS = 40, /* places for a contact, per world */
    MAX_BODY_SLOTS = 16,
    MAX_BODY_JOINTS = 5,
    JOINT_CLASSES = 3, /* by degrees of freedom: class g has g + 1 */
    MAX_ISLANDS = 2,
    HIDDEN = 24,       /* units of the policy network's hidden layer */
    MAX_OBSERVED = 12 + MAX_DOFS
};

struct body_model {
    vec3 rest; /* centre in the rest pose */
    vec3 half; /* from the centre to one end of the capsule's axis */
    float radius;
    float mass;
    float inverse_mass; /* 0: the ground, or a body that follows a path of its own */
    float inverse_inertia;
    float contact_share; /* by how much a contact's mobility is raised, since several push one body at once */
    int joints;
    int joint_class[MAX_BODY_JOINTS], joint_place[MAX_BODY_JOINTS]; /* class, and place in the class */
    int joint_is_child[MAX_BODY_JOINTS];
    int slots;
    int slot[MAX_BODY_SLOTS];
};

struct joint_model {
    int parent, child, dofs, first_dof;
    vec3 parent_anchor, child_anchor; /* from the body's centre */
    vec3 axis[3];                     /* orthonormal; the first `dofs` are free */
    float low[3], high[3];            /* limits, as turn_of measures */
    float stiffness, most_torque;     /* of the motor */
};

/** Where one contact of a pair may arise: an end of capsule `a` against the ground (b = 0), or two capsules. */
struct slot_model {
    int a, b;
    int end;         /* against the ground: 0 the lower end of the axis vector, 1 the upper */
    int type, place; /* pair type, and place in the type */
    float margin;    /* by how much its bounding volumes are fattened */
};

/** How a degree of freedom is driven: offset + amplitude * clamp(gain * cos(phase - delay) + bias, -1, 1) + network. */
struct drive_model {
    float offset, amplitude, gain, bias, delay_cos, delay_sin;
};

struct type_model {
    int first_slot, slots;
};

/** Bodies first .. first + bodies - 1, which contacts of these pair types (bit t: type t) may connect. */
struct island_model {
    int first, bodies;
    unsigned types;
};

struct model {
    int bodies, joints, dofs, types, slots, substeps;
    int planar;    /* moves in the plane y = 0 only */
    int path_body; /* the body that follows a path of its own; -1: none */
    float path_low, path_lift;
    float timestep; /* of a substep, seconds */
    float most_speed, most_spin;
    float phase_cos, phase_sin; /* turn of the rhythm per environment step */
    float fallen_height;        /* root below it: the episode ends soon */
    int horizon;                /* environment steps of an episode */
    int root;
    int class_joints[JOINT_CLASSES];
    int class_joint[JOINT_CLASSES][MAX_JOINTS];
    body_model body[MAX_BODIES];
    joint_model joint[MAX_JOINTS];
    drive_model drive[MAX_DOFS];
    type_model type[MAX_TYPES];
    slot_model slot[MAX_SLOTS];
    int islands;
    island_model island[MAX_ISLANDS];     /* if all pair types have candidates; islands.h */
    unsigned in_islands[1 << MAX_TYPES];  /* [set of pair types with candidates]: bit b: body b is in an island */
};

#endif

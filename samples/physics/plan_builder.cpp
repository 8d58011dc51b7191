/*
 * Owns the step from a description to a model: inertia, adjacency, contact slots. Called by plan.cpp; allocates
 * nothing. A plan that does not fit the model's fixed sizes is a mistake in plan.cpp: it stops the program with a
 * message.
 */
#include "plan_builder.h"

#include <cstdio>
#include <cstdlib>

#include "islands.h"

static void require(bool fits, const char *what)
{
    if (!fits) {
        fprintf(stderr, "physics: a body plan has too many %s\n", what);
        exit(2);
    }
}

plan_builder::plan_builder(const char *name, int substeps, float timestep) : p{}
{
    p.info.name = name;
    p.m.substeps = substeps;
    p.m.timestep = timestep;
    p.m.path_body = -1;
    p.m.most_speed = 6;
    p.m.most_spin = 14;
    p.m.root = 1;
    p.m.bodies = 1; /* the ground */
}

int plan_builder::body(vec3 from, vec3 to, float radius, float mass, unsigned colour)
{
    require(p.m.bodies < MAX_BODIES, "bodies");
    const int b = p.m.bodies++;
    body_model &body = p.m.body[b];
    const vec3 axis = to - from;

    body.rest = (from + to) * 0.5f;
    body.half = axis * 0.5f;
    body.radius = radius;
    body.mass = mass;
    body.inverse_mass = 1 / mass;
    /* One number, as the joints want it: that of a thin rod across its axis, three times over, for the inertia that the
     * motors' gears reflect onto real robots' links. It lets motors be stiff without shaking light links. */
    body.inverse_inertia = 1 / (mass * (0.4f * radius * radius + dot(axis, axis) / 4));
    p.info.colour[b] = colour;
    return b;
}

void plan_builder::on_path(int body, float low, float lift)
{
    p.m.path_body = body;
    p.m.path_low = low;
    p.m.path_lift = lift;
    p.m.body[body].inverse_mass = 0;
    p.m.body[body].inverse_inertia = 0;
}

int plan_builder::joint(int parent, int child, int dofs, vec3 anchor, vec3 first, vec3 second, float stiffness)
{
    require(p.m.joints < MAX_JOINTS && p.m.dofs + dofs <= MAX_DOFS, "joints");
    const int number = p.m.joints++, joint_class = dofs - 1;
    joint_model &j = p.m.joint[number];

    j.parent = parent;
    j.child = child;
    j.dofs = dofs;
    j.first_dof = p.m.dofs;
    p.m.dofs += dofs;
    j.parent_anchor = anchor - p.m.body[parent].rest;
    j.child_anchor = anchor - p.m.body[child].rest;
    j.axis[0] = first;
    j.axis[1] = second;
    j.axis[2] = cross(first, second);
    j.stiffness = stiffness;
    j.most_torque = 0.3f * stiffness;
    const int place = p.m.class_joints[joint_class]++;
    p.m.class_joint[joint_class][place] = number;
    for (int side = 0; side < 2; side++) {
        body_model &body = p.m.body[side ? child : parent];
        require(body.joints < MAX_BODY_JOINTS, "joints on one body");
        body.joint_class[body.joints] = joint_class;
        body.joint_place[body.joints] = place;
        body.joint_is_child[body.joints++] = side;
    }
    return number;
}

void plan_builder::drive(int joint, int k, float low, float high, float offset, float amplitude, float delay,
                         float gain, float bias)
{
    joint_model &j = p.m.joint[joint];
    const double angle = 2 * M_PI * static_cast<double>(delay);

    j.low[k] = low;
    j.high[k] = high;
    p.m.drive[j.first_dof + k] = {
        offset, amplitude, gain, bias, static_cast<float>(cos(angle)), static_cast<float>(sin(angle))};
}

void plan_builder::type(const char *name)
{
    require(p.m.types < MAX_TYPES, "contact pair types");
    p.info.type_name[p.m.types] = name;
    p.m.type[p.m.types++] = {p.m.slots, 0};
}

void plan_builder::slot(int a, int b, int end)
{
    require(p.m.slots < MAX_SLOTS, "contact slots");
    type_model &type = p.m.type[p.m.types - 1];
    const int number = p.m.slots++;

    p.m.slot[number] = {a, b, end, p.m.types - 1, type.slots++, 0};
    for (int side = 0; side < 2; side++) {
        body_model &body = p.m.body[side ? b : a];
        if (body.inverse_mass == 0)
            continue; /* the ground and a body on a path feel no contact */
        require(body.slots < MAX_BODY_SLOTS, "contact slots on one body");
        body.slot[body.slots++] = number;
    }
}

void plan_builder::ground(int a)
{
    const vec3 half = p.m.body[a].half;
    slot(a, 0, 0);
    if (dot(half, half) > 0)
        slot(a, 0, 1);
}

void plan_builder::pair(int a, int b)
{
    slot(a, b, 0);
}

/* The highest speed of a point on a body's surface; the ground's is 0. */
static float most_surface_speed(const model &m, int body)
{
    const body_model &b = m.body[body];
    return body == 0 ? 0 : m.most_speed + m.most_spin * (length(b.half) + b.radius);
}

plan plan_builder::finish(float beat)
{
    model &m = p.m;
    const double angle = 2 * M_PI * static_cast<double>(beat * m.timestep * static_cast<float>(m.substeps));

    m.phase_cos = static_cast<float>(cos(angle));
    m.phase_sin = static_cast<float>(sin(angle));
    /* More contacts than two seldom push one body at once; a larger share makes each of them softer. */
    for (int b = 1; b < m.bodies; b++)
        m.body[b].contact_share = static_cast<float>(m.body[b].slots < 2 ? m.body[b].slots : 2);
    /* The farthest that surfaces come in two substeps: see contact.cu. */
    for (int s = 0; s < m.slots; s++)
        m.slot[s].margin = 2 * m.timestep * (most_surface_speed(m, m.slot[s].a) + most_surface_speed(m, m.slot[s].b));
    require(fill_islands(m), "bodies between islands");
    require(m.substeps % 2 == 0, "an odd number of substeps: two steps in a row would not have the same ops");
    return p;
}

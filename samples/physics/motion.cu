/*
 * Kernels that move bodies: kinetic, joint, motor, integrate, apply.
 *
 * Joints are velocity constraints with a share of the position error fed back (Baumgarte), all solved at once from the
 * same velocities: each joint sees a body's mass divided by the number of joints on it (mass splitting), so the sum of
 * all impulses does not overshoot. A thread writes its own words only and sums in a fixed order: no atomics.
 */
#include "kernels.h"

/* Share of a position error that is put right per substep, of linear and of angular errors. */
#define LINEAR_FEEDBACK 0.35f
#define ANGULAR_FEEDBACK 0.2f
/* How much of what mass splitting takes away the last substep's impulse gives back: a warm start that stays stable. */
#define JOINT_MEMORY 0.8f
/* Share of a free axis' relative spin that friction in the joint takes per substep. */
#define JOINT_FRICTION 0.02f
#define GRAVITY 9.81f

PHYSICS_HD void kinetic_thread(const kinetic_args &a, unsigned i)
{
    const int b = static_cast<int>(i) / a.worlds, w = static_cast<int>(i) % a.worlds;
    const float h = a.m->timestep;
    const vec3 p = load3(a.pos, a.worlds, POS, b, 0, w), v = load3(a.vel, a.worlds, VEL, b, 0, w);
    const vec3 s = load3(a.vel, a.worlds, VEL, b, 3, w) * (0.5f * h);
    const quat q = load_rot(a.rot, a.worlds, b, w), dq = multiply({0, s.x, s.y, s.z}, q);
    const quat r = normalize({q.w + dq.w, q.x + dq.x, q.y + dq.y, q.z + dq.z});
    float *out = a.rot + at(a.worlds, ROT, b, 0, w);

    store3(a.pos, a.worlds, POS, b, 0, w, p + v * h);
    out[0] = r.w;
    out[a.worlds] = r.x;
    out[2 * a.worlds] = r.y;
    out[3 * a.worlds] = r.z;
    if (i == 0 && a.words)
        a.words->clock++;
}

PHYSICS_KERNEL(kinetic, kinetic_args, BODY_BLOCK)

/* Spin about one axis that brings `turn` back to where it should be: all of it on a locked axis, past a limit else. */
PHYSICS_HD float axis_spin(const joint_model &j, int k, float turn, float spin, float rate)
{
    if (k >= j.dofs)
        return -(spin + rate * turn);
    if (turn < j.low[k]) {
        const float wanted = -(spin + rate * (turn - j.low[k]));
        return wanted > 0 ? wanted : 0;
    }
    if (turn > j.high[k]) {
        const float wanted = -(spin + rate * (turn - j.high[k]));
        return wanted < 0 ? wanted : 0;
    }
    return -JOINT_FRICTION * spin;
}

PHYSICS_HD void joint_thread(const joint_args &a, unsigned i)
{
    const int place = static_cast<int>(i) / a.worlds, w = static_cast<int>(i) % a.worlds, n = a.worlds;
    const model &m = *a.m;
    const joint_model &j = m.joint[m.class_joint[a.joint_class][place]];
    const body_model &bp = m.body[j.parent], &bc = m.body[j.child];
    const quat qp = load_rot(a.rot, n, j.parent, w), qc = load_rot(a.rot, n, j.child, w);
    const vec3 rp = rotate(qp, j.parent_anchor), rc = rotate(qc, j.child_anchor);
    const vec3 wp = load3(a.vel, n, VEL, j.parent, 3, w), wc = load3(a.vel, n, VEL, j.child, 3, w);
    const vec3 gap = load3(a.pos, n, POS, j.child, 0, w) + rc - load3(a.pos, n, POS, j.parent, 0, w) - rp;
    const vec3 speed =
        load3(a.vel, n, VEL, j.child, 0, w) + cross(wc, rc) - load3(a.vel, n, VEL, j.parent, 0, w) - cross(wp, rp);
    const float np = static_cast<float>(bp.joints), nc = static_cast<float>(bc.joints);
    /* A joint turns a body twice, by its impulse's arm and by its torque: hence the inertia is split once more. */
    const float ip = (np + 1) * bp.inverse_inertia, ic = (nc + 1) * bc.inverse_inertia;
    const sym3 mobility = point_mobility(np * bp.inverse_mass, ip, rp) + point_mobility(nc * bc.inverse_mass, ic, rc);
    const vec3 fresh = solve(mobility, (speed + gap * (LINEAR_FEEDBACK / m.timestep)) * -1.0f);
    const vec3 impulse = fresh + load3(a.out, n, JOINT, place, 0, w) * (JOINT_MEMORY * (1 - 2 / (np + nc)));
    const vec3 turn = turn_of(multiply(conjugate(qp), qc)), spin = wc - wp,
               before = load3(a.out, n, JOINT, place, 9, w);
    const float keep_locked = JOINT_MEMORY * (ip + ic - bp.inverse_inertia - bc.inverse_inertia);
    vec3 locked = {0, 0, 0}, free = {0, 0, 0};

    for (int k = 0; k < 3; k++) {
        const vec3 axis = rotate(qp, j.axis[k]);
        const float wanted = axis_spin(j, k, dot(turn, j.axis[k]), dot(spin, axis), ANGULAR_FEEDBACK / m.timestep);
        if (k < j.dofs)
            free = free + axis * wanted;
        else
            locked = locked + axis * (wanted + keep_locked * dot(before, axis));
    }
    locked = locked * (1.0f / (ip + ic));
    const vec3 torque = locked + free * (1.0f / (ip + ic));
    store3(a.out, n, JOINT, place, 0, w, impulse);
    store3(a.out, n, JOINT, place, 3, w, (cross(rp, impulse) + torque) * -1.0f);
    store3(a.out, n, JOINT, place, 6, w, cross(rc, impulse) + torque);
    store3(a.out, n, JOINT, place, 9, w, locked);
}

PHYSICS_KERNEL(joint, joint_args, BODY_BLOCK)

/* A motor is a spring and a damper towards its target, taken implicitly: stable however stiff it is. */
PHYSICS_HD void motor_thread(const motor_args &a, unsigned i)
{
    const int place = static_cast<int>(i) / a.worlds, w = static_cast<int>(i) % a.worlds, n = a.worlds;
    const model &m = *a.m;
    const joint_model &j = m.joint[m.class_joint[a.joint_class][place]];
    const body_model &bp = m.body[j.parent], &bc = m.body[j.child];
    const quat qp = load_rot(a.rot, n, j.parent, w), qc = load_rot(a.rot, n, j.child, w);
    const vec3 turn = turn_of(multiply(conjugate(qp), qc));
    const vec3 spin = load3(a.vel, n, VEL, j.child, 3, w) - load3(a.vel, n, VEL, j.parent, 3, w);
    const float mobility = bp.inverse_inertia + bc.inverse_inertia;
    const float h = m.timestep, damping = j.stiffness * 0.015f, most = j.most_torque * h;
    const float soft = 1.0f / (1.0f + h * (damping + h * j.stiffness) * mobility);
    vec3 torque = {0, 0, 0};

    for (int k = 0; k < j.dofs; k++) {
        const vec3 axis = rotate(qp, j.axis[k]);
        const float target = a.act[at(n, 1, j.first_dof + k, 0, w)];
        const float pull =
            j.stiffness * (target - dot(turn, j.axis[k])) - (damping + h * j.stiffness) * dot(spin, axis);
        torque = torque + axis * clamp(h * pull * soft, -most, most);
    }
    store3(a.out, n, MOTOR, place, 0, w, torque);
}

PHYSICS_KERNEL(motor, motor_args, BODY_BLOCK)

/* The path of a body that no impulse moves, the palm of the hand: down while the rhythm's sine is negative, up else. */
PHYSICS_HD vec3 path_speed(const integrate_args &a, int world)
{
    const float sine = a.pace[at(a.worlds, PACE, 0, 1, world)];
    const float height = a.m->path_low + a.m->path_lift * (sine > 0 ? sine : 0);
    const float off = height - a.pos[at(a.worlds, POS, a.m->path_body, 2, world)];
    return {0, 0, clamp(off * 8.0f, -1.5f, 1.5f)};
}

PHYSICS_HD void integrate_thread(const integrate_args &a, unsigned i)
{
    const int b = static_cast<int>(i) / a.worlds, w = static_cast<int>(i) % a.worlds, n = a.worlds;
    const model &m = *a.m;
    const body_model &body = m.body[b];
    vec3 impulse = {0, 0, 0}, torque = {0, 0, 0};

    if (b == m.path_body) {
        store_velocity(m, a.vel, n, b, w, path_speed(a, w), {0, 0, 0});
        return;
    }
    if (body.inverse_mass == 0)
        return;
    for (int k = 0; k < body.joints; k++) {
        const float *joint = a.joint[body.joint_class[k]], *motor = a.motor[body.joint_class[k]];
        const int place = body.joint_place[k], child = body.joint_is_child[k];
        const vec3 pull = load3(motor, n, MOTOR, place, 0, w);
        impulse = impulse + load3(joint, n, JOINT, place, 0, w) * (child ? 1.0f : -1.0f);
        torque = torque + load3(joint, n, JOINT, place, child ? 6 : 3, w) + pull * (child ? 1.0f : -1.0f);
    }
    const float h = m.timestep, drag = 1.0f - 0.3f * h;
    vec3 speed = load3(a.vel, n, VEL, b, 0, w) + impulse * body.inverse_mass;
    vec3 spin = load3(a.vel, n, VEL, b, 3, w) + torque * body.inverse_inertia;
    speed.z -= GRAVITY * h;
    store_velocity(m, a.vel, n, b, w, speed, spin * drag);
}

PHYSICS_KERNEL(integrate, integrate_args, BODY_BLOCK)

PHYSICS_HD void apply_thread(const apply_args &a, unsigned i)
{
    const int w = static_cast<int>(i) % a.worlds, n = a.worlds;
    int b = static_cast<int>(i) / a.worlds, island = 0;

    while (b >= a.bodies[island])
        b -= a.bodies[island++];
    b += a.first_body[island];
    if (a.m->body[b].inverse_mass == 0 || !takes_part(*a.m, a.words, substep_of(a.tick, a.words), b))
        return;
    store_velocity(*a.m, a.vel, n, b, w, load3(a.vel, n, VEL, b, 0, w) + load3(a.dv, n, VEL, b, 0, w),
                   load3(a.vel, n, VEL, b, 3, w) + load3(a.dv, n, VEL, b, 3, w));
}

PHYSICS_KERNEL(apply, apply_args, BODY_BLOCK)

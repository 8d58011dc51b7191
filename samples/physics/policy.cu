/*
 * Kernels of one environment step: observe, hidden, action, reward, reset.
 *
 * The policy is a rhythm per joint, as central pattern generators of animals give it, modulated by a two-layer network
 * with weights drawn from the seed. Worlds differ in their rhythm's phase and in how their episode began.
 */
#include "kernels.h"

PHYSICS_HD void observe_thread(const observe_args &a, unsigned i)
{
    const int w = static_cast<int>(i), n = a.worlds;
    const model &m = *a.m;
    const float c = a.pace[at(n, PACE, 0, 0, w)], s = a.pace[at(n, PACE, 0, 1, w)];
    const float c2 = c * m.phase_cos - s * m.phase_sin, s2 = s * m.phase_cos + c * m.phase_sin;
    const float scale = 0.5f * (3.0f - (c2 * c2 + s2 * s2)); /* one Newton step keeps the rhythm on the unit circle */
    const vec3 v = load3(a.vel, n, VEL, m.root, 0, w), spin = load3(a.vel, n, VEL, m.root, 3, w);
    const vec3 tilt = turn_of(load_rot(a.rot, n, m.root, w));
    const float height = a.pos[at(n, POS, m.root, 2, w)];
    const float seen[12] = {height, v.x,    v.y,    v.z,    spin.x,     spin.y,
                            spin.z, tilt.x, tilt.y, tilt.z, c2 * scale, s2 * scale};

    a.pace[at(n, PACE, 0, 0, w)] = c2 * scale;
    a.pace[at(n, PACE, 0, 1, w)] = s2 * scale;
    for (int k = 0; k < 12; k++)
        a.obs[at(n, 1, k, 0, w)] = seen[k];
    for (int k = 0; k < m.joints; k++) {
        const joint_model &j = m.joint[k];
        const vec3 turn = turn_of(multiply(conjugate(load_rot(a.rot, n, j.parent, w)), load_rot(a.rot, n, j.child, w)));
        for (int d = 0; d < j.dofs; d++)
            a.obs[at(n, 1, 12 + j.first_dof + d, 0, w)] = dot(turn, j.axis[d]);
    }
}

PHYSICS_KERNEL(observe, observe_args, CONTACT_BLOCK)

PHYSICS_HD void hidden_thread(const hidden_args &a, unsigned i)
{
    const int unit = static_cast<int>(i) / a.worlds, w = static_cast<int>(i) % a.worlds, inputs = 12 + a.m->dofs;
    float sum = 0;

    for (int k = 0; k < inputs; k++)
        sum += a.weights[unit * MAX_OBSERVED + k] * a.obs[at(a.worlds, 1, k, 0, w)];
    a.hidden[at(a.worlds, 1, unit, 0, w)] = squash(sum);
}

PHYSICS_KERNEL(hidden, hidden_args, BODY_BLOCK)

PHYSICS_HD void action_thread(const action_args &a, unsigned i)
{
    const int dof = static_cast<int>(i) / a.worlds, w = static_cast<int>(i) % a.worlds, n = a.worlds;
    const drive_model &d = a.m->drive[dof];
    const float c = a.pace[at(n, PACE, 0, 0, w)], s = a.pace[at(n, PACE, 0, 1, w)];
    const float beat = clamp(d.gain * (c * d.delay_cos + s * d.delay_sin) + d.bias, -1, 1);
    float sum = 0;

    for (int k = 0; k < HIDDEN; k++)
        sum += a.weights[dof * HIDDEN + k] * a.hidden[at(n, 1, k, 0, w)];
    a.act[at(n, 1, dof, 0, w)] = d.offset + d.amplitude * beat + 0.08f * squash(sum);
}

PHYSICS_KERNEL(action, action_args, BODY_BLOCK)

PHYSICS_HD void reward_thread(const reward_args &a, unsigned i)
{
    const int w = static_cast<int>(i), n = a.worlds;
    const model &m = *a.m;
    const float height = a.pos[at(n, POS, m.root, 2, w)];
    float *age = &a.pace[at(n, PACE, 0, 2, w)], effort = 0;

    for (int k = 0; k < m.dofs; k++)
        effort += a.act[at(n, 1, k, 0, w)] * a.act[at(n, 1, k, 0, w)];
    a.reward[w] += a.vel[at(n, VEL, m.root, 0, w)] - 0.01f * effort;
    /* A fallen body lies there for a while before its episode ends: time runs faster for it. */
    *age += height < m.fallen_height ? 4.0f : 1.0f;
    a.done[w] = *age >= static_cast<float>(m.horizon);
    if (a.done[w])
        *age = 0;
}

PHYSICS_KERNEL(reward, reward_args, CONTACT_BLOCK)

PHYSICS_HD void reset_thread(const reset_args &a, unsigned i)
{
    const int b = static_cast<int>(i) / a.worlds, w = static_cast<int>(i) % a.worlds, n = a.worlds;

    if (!a.done[w])
        return;
    for (int k = 0; k < POS; k++)
        a.pos[at(n, POS, b, k, w)] = a.first_pos[at(n, POS, b, k, w)];
    for (int k = 0; k < ROT; k++)
        a.rot[at(n, ROT, b, k, w)] = a.first_rot[at(n, ROT, b, k, w)];
    for (int k = 0; k < VEL; k++)
        a.vel[at(n, VEL, b, k, w)] = a.first_vel[at(n, VEL, b, k, w)];
}

PHYSICS_KERNEL(reset, reset_args, BODY_BLOCK)

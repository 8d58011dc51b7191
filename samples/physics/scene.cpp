/*
 * Owns the layout of an arena and the state in which a run begins. Called once per scene, before anything is launched.
 * Never touches device memory: it makes an image on the host that runners upload.
 */
#include "scene.h"

#include <cstring>

namespace {

/* Hands out 256-byte aligned pieces, so that no two fields share a cache line. Without a base it only measures. */
struct cutter {
    char *base;
    size_t used;

    template <class T> T *take(size_t count)
    {
        char *p = base ? base + used : nullptr;
        used += (count * sizeof(T) + 255) / 256 * 256;
        return reinterpret_cast<T *>(p);
    }
};

/* SplitMix64: a stream of numbers that depends on the seed only, on every machine. */
struct random_source {
    uint64_t state;

    /* In [low, high). */
    float next(float low, float high)
    {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        return low + (high - low) * static_cast<float>(z >> 40) * 0x1p-24f;
    }
};

} // namespace

int scene_tiles(const plan &p, int type, int worlds)
{
    return (p.m.type[type].slots * worlds + BROAD_TILE - 1) / BROAD_TILE;
}

arena scene_layout(const plan &p, int worlds, char *base)
{
    const model &m = p.m;
    const size_t n = static_cast<size_t>(worlds), bodies = n * static_cast<size_t>(m.bodies);
    const size_t dofs = n * static_cast<size_t>(m.dofs);
    cutter c = {base, 0};
    arena a{};

    a.m = c.take<model>(1);
    a.weights_in = c.take<float>(HIDDEN * MAX_OBSERVED);
    a.weights_out = c.take<float>(MAX_DOFS * HIDDEN);
    float **const of_bodies[] = {&a.pos, &a.rot, &a.vel, &a.first_pos, &a.first_rot, &a.first_vel, &a.dv[0], &a.dv[1]};
    const size_t width[] = {POS, ROT, VEL, POS, ROT, VEL, VEL, VEL};
    for (int k = 0; k < 8; k++)
        *of_bodies[k] = c.take<float>(bodies * width[k]);
    for (int g = 0; g < JOINT_CLASSES; g++) {
        a.joint[g] = c.take<float>(n * JOINT * static_cast<size_t>(m.class_joints[g]));
        a.motor[g] = c.take<float>(n * MOTOR * static_cast<size_t>(m.class_joints[g]));
    }
    a.act = c.take<float>(dofs);
    a.obs = c.take<float>(n * 12 + dofs);
    a.hidden = c.take<float>(n * HIDDEN);
    a.pace = c.take<float>(n * PACE);
    a.reward = c.take<float>(n);
    a.done = c.take<int>(n);
    size_t tiles = 0;
    for (int t = 0; t < m.types; t++) {
        const size_t slots = n * static_cast<size_t>(m.type[t].slots),
                     own = static_cast<size_t>(scene_tiles(p, t, worlds));
        for (int k = 0; k < 2; k++)
            a.candidates[k][t] = c.take<int>(own * BROAD_TILE);
        a.manifold[t] = c.take<float>(slots * MANIFOLD);
        a.lambda[t] = c.take<float>(slots * IMPULSE * 2);
        tiles += own;
    }
    for (int k = 0; k < 2; k++)
        a.counts[k] = c.take<int>(tiles);
    a.common = c.used;
    a.words = c.take<device_words>(1);
    a.bytes = c.used;
    return a;
}

/* A rotation by turn_of-like amounts about the axes: the vector part is half of each. */
static quat tilted(float x, float y, float z)
{
    const float rest = 1 - 0.25f * (x * x + y * y + z * z);
    return normalize({sqrtf(rest > 0 ? rest : 0), 0.5f * x, 0.5f * y, 0.5f * z});
}

/* Puts one world's bodies into the rest pose, tilted about the root, the lowest `gap` above the ground. */
static void pose_world(const plan &p, const arena &a, int worlds, int w, random_source &random)
{
    const model &m = p.m;
    const float t = p.info.tilt, side = m.planar ? 0 : t;
    const quat q = tilted(random.next(-side, side), random.next(-t, t), random.next(-side, side));
    const vec3 centre = m.body[m.root].rest;
    const vec3 push = {random.next(-0.3f, 0.3f), m.planar ? 0 : random.next(-0.3f, 0.3f), 0};
    const float gap = random.next(p.info.drop[0], p.info.drop[1]);
    const bool stands = p.info.drop[1] <= 0; /* the scene is built at its place: nothing is lifted, thrown or tilted */
    float lowest = 1e9f;

    for (int b = 1; b < m.bodies; b++) {
        const vec3 at_rest = centre + rotate(q, m.body[b].rest - centre);
        const float low = at_rest.z - fabsf(rotate(q, m.body[b].half).z) - m.body[b].radius;
        lowest = low < lowest ? low : lowest;
    }
    for (int b = 0; b < m.bodies; b++) {
        vec3 at_rest = centre + rotate(q, m.body[b].rest - centre);
        const quat r = b == 0 ? quat{1, 0, 0, 0} : q;
        const float rot[ROT] = {r.w, r.x, r.y, r.z};
        at_rest.z += stands ? 0 : gap - lowest;
        store3(a.first_pos, worlds, POS, b, 0, w, b == 0 ? vec3{0, 0, 0} : at_rest);
        for (int k = 0; k < ROT; k++)
            a.first_rot[at(worlds, ROT, b, k, w)] = rot[k];
        store3(a.first_vel, worlds, VEL, b, 0, w, b == 0 || stands ? vec3{0, 0, 0} : push);
        store3(a.first_vel, worlds, VEL, b, 3, w, {0, 0, 0});
    }
}

void scene_init(scene &s, int index, int worlds, uint64_t seed)
{
    random_source random = {seed * 1000003u + static_cast<uint64_t>(index) * 7919u};

    s.p = &plan_get(index);
    s.index = index;
    s.worlds = worlds;
    s.first_tile[0] = 0;
    for (int t = 0; t < MAX_TYPES; t++)
        s.first_tile[t + 1] = s.first_tile[t] + (t < s.p->m.types ? scene_tiles(*s.p, t, worlds) : 0);
    s.image.assign(scene_layout(*s.p, worlds, nullptr).bytes, 0);
    const arena a = scene_layout(*s.p, worlds, s.image.data());
    const model &m = s.p->m;
    *a.m = m;
    for (int k = 0; k < HIDDEN * MAX_OBSERVED; k++)
        a.weights_in[k] = random.next(-0.4f, 0.4f);
    for (int k = 0; k < MAX_DOFS * HIDDEN; k++)
        a.weights_out[k] = random.next(-0.4f, 0.4f);
    for (int w = 0; w < worlds; w++) {
        const bool together = s.p->info.drop[1] <= 0; /* a scene built at its place begins at the start of its rhythm */
        const float x = together ? -1 : random.next(-1, 1), y = together ? -0.3f : random.next(-1, 1);
        const float size = 1 / sqrtf(x * x + y * y + 1e-6f);
        pose_world(*s.p, a, worlds, w, random);
        a.pace[at(worlds, PACE, 0, 0, w)] = x * size;
        a.pace[at(worlds, PACE, 0, 1, w)] = y * size;
        /* Episodes end at different times; the last world's at once, so that every run, however short, has a reset. */
        const float age = random.next(0, 0.6f);
        a.pace[at(worlds, PACE, 0, 2, w)] = w + 1 < worlds ? age * static_cast<float>(m.horizon)
                                                           : static_cast<float>(m.horizon - 2);
    }
    const size_t bodies = static_cast<size_t>(m.bodies) * static_cast<size_t>(worlds) * sizeof(float);
    memcpy(a.pos, a.first_pos, bodies * POS);
    memcpy(a.rot, a.first_rot, bodies * ROT);
    memcpy(a.vel, a.first_vel, bodies * VEL);
    for (int d = 0; d < m.dofs; d++)
        for (int w = 0; w < worlds; w++)
            a.act[at(worlds, 1, d, 0, w)] = m.drive[d].offset;
}

void scene_capsule(const scene &s, const arena &copy, int body, int world, vec3 &a, vec3 &b)
{
    const vec3 centre = load3(copy.pos, s.worlds, POS, body, 0, world);
    const vec3 half = rotate(load_rot(copy.rot, s.worlds, body, world), s.p->m.body[body].half);
    a = centre - half;
    b = centre + half;
}

/*
 * Owns the judgement of a final state: bit for bit against the one-stream run, and against bounds that physics sets.
 * Called by main with copies of arenas; its geometry is its own, so that a mistake of the kernels' is not repeated.
 */
#include "check.h"

#include <algorithm>
#include <cstdio>

enum { GROUND = 0 };

#define MOST_PENETRATION 0.04 /* metres */
#define MOST_JOINT_GAP 0.09   /* metres, for a moment, where a body lands hard */

namespace {

struct double3 {
    double x, y, z;
};

double3 minus(double3 a, double3 b)
{
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}

double3 along(double3 a, double3 b, double t)
{
    return {a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t, a.z + (b.z - a.z) * t};
}

double distance(double3 a, double3 b)
{
    const double3 d = minus(a, b);
    return sqrt(d.x * d.x + d.y * d.y + d.z * d.z);
}

struct segment3 {
    double3 a, b;
};

segment3 axis_of(const scene &s, const arena &state, int body, int world)
{
    vec3 a, b;
    scene_capsule(s, state, body, world, a, b);
    return {{a.x, a.y, a.z}, {b.x, b.y, b.z}};
}

/* Distance of two segments, by golden section on one and projection on the other: not the kernels' formula. */
double segment_distance(const segment3 &p, const segment3 &q)
{
    const auto at = [&](double t) {
        const double3 x = along(p.a, p.b, t), d = minus(q.b, q.a), r = minus(x, q.a);
        const double dd = d.x * d.x + d.y * d.y + d.z * d.z, k = dd > 0 ? (r.x * d.x + r.y * d.y + r.z * d.z) / dd : 0;
        return distance(x, along(q.a, q.b, std::min(1.0, std::max(0.0, k))));
    };
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) {
        const double a = high - (high - low) * 0.618033988749895, b = low + (high - low) * 0.618033988749895;
        if (at(a) < at(b))
            high = b;
        else
            low = a;
    }
    return std::min({at((low + high) / 2), at(0), at(1)});
}

double gap_of(const scene &s, const arena &state, const slot_model &slot, int world)
{
    const model &m = s.p->m;
    const segment3 p = axis_of(s, state, slot.a, world);
    const double radius = static_cast<double>(m.body[slot.a].radius);

    if (slot.b == GROUND)
        return (slot.end ? p.b.z : p.a.z) - radius;
    return segment_distance(p, axis_of(s, state, slot.b, world)) - radius - static_cast<double>(m.body[slot.b].radius);
}

double energy_of(const scene &s, const arena &state, int world)
{
    const model &m = s.p->m;
    double sum = 0;

    for (int b = 1; b < m.bodies; b++) {
        const body_model &body = m.body[b];
        if (body.inverse_mass == 0)
            continue;
        const vec3 v = load3(state.vel, s.worlds, VEL, b, 0, world), w = load3(state.vel, s.worlds, VEL, b, 3, world);
        const vec3 at_body = load3(state.pos, s.worlds, POS, b, 0, world);
        sum += static_cast<double>(body.mass) *
               (9.81 * static_cast<double>(at_body.z) + 0.5 * static_cast<double>(dot(v, v)));
        sum += 0.5 * static_cast<double>(dot(w, w)) / static_cast<double>(body.inverse_inertia);
    }
    return sum;
}

double joint_gap_of(const scene &s, const arena &state, const joint_model &j, int world)
{
    const quat qp = load_rot(state.rot, s.worlds, j.parent, world), qc = load_rot(state.rot, s.worlds, j.child, world);
    const vec3 p = load3(state.pos, s.worlds, POS, j.parent, 0, world) + rotate(qp, j.parent_anchor);
    const vec3 c = load3(state.pos, s.worlds, POS, j.child, 0, world) + rotate(qc, j.child_anchor);
    return static_cast<double>(length(p - c));
}

/* Bodies that begin an episode in this very step may touch what the last list of candidates does not know yet. */
bool just_reset(const scene &s, const arena &state, int world)
{
    return state.done[world] != 0 && s.worlds > world;
}

/* Is the place in one of the lists of the latest tick, whichever of the two buffers that is? */
std::vector<bool> listed_places(const scene &s, const arena &state, int type)
{
    std::vector<bool> listed(static_cast<size_t>(s.p->m.type[type].slots) * static_cast<size_t>(s.worlds), false);
    for (int side = 0; side < 2; side++)
        for (int t = s.first_tile[type]; t < s.first_tile[type + 1]; t++)
            for (int k = 0; k < state.counts[side][t]; k++)
                listed[static_cast<size_t>(state.candidates[side][type][(t - s.first_tile[type]) * BROAD_TILE + k])] =
                    true;
    return listed;
}

} // namespace

void check_measure(const scene &s, const std::vector<char> &state, physics_bounds &worst)
{
    const model &m = s.p->m;
    const arena a = scene_layout(*s.p, s.worlds, const_cast<char *>(state.data()));
    const float *const all = a.pos;

    for (size_t k = 0; k < static_cast<size_t>(m.bodies) * static_cast<size_t>(s.worlds) * POS; k++)
        worst.finite = worst.finite && std::isfinite(all[k]);
    for (int w = 0; w < s.worlds; w++) {
        const double energy = energy_of(s, a, w);
        worst.finite = worst.finite && std::isfinite(energy);
        worst.energy = std::max(worst.energy, energy);
        for (int j = 0; j < m.joints; j++)
            worst.joint_gap = std::max(worst.joint_gap, joint_gap_of(s, a, m.joint[j], w));
    }
    for (int t = 0; t < m.types; t++) {
        const std::vector<bool> listed = listed_places(s, a, t);
        for (int k = 0; k < m.type[t].slots; k++)
            for (int w = 0; w < s.worlds; w++) {
                const double gap = gap_of(s, a, m.slot[m.type[t].first_slot + k], w);
                worst.penetration = std::max(worst.penetration, -gap);
                worst.missed += gap < 0 && !just_reset(s, a, w) && !listed[static_cast<size_t>(k * s.worlds + w)];
            }
    }
}

bool check_bounds(const scene &s, const physics_bounds &worst)
{
    const double most = static_cast<double>(s.p->info.most_energy);
    const bool ok = worst.finite && worst.energy <= most && worst.penetration <= MOST_PENETRATION &&
                    worst.joint_gap <= MOST_JOINT_GAP && worst.missed == 0;

    if (!ok)
        fprintf(stderr,
                "physics: scene %d (%s) is out of bounds: %s, energy %.0f of %.0f J, penetration %.1f of %.1f mm, "
                "joint gap %.1f of %.1f mm, contacts missed %ld of 0\n",
                s.index, s.p->info.name, worst.finite ? "finite" : "NOT FINITE", worst.energy, most,
                worst.penetration * 1e3, MOST_PENETRATION * 1e3, worst.joint_gap * 1e3, MOST_JOINT_GAP * 1e3,
                worst.missed);
    return ok;
}

bool check_same(const scene &s, const std::vector<char> &want, const std::vector<char> &got, const char *label)
{
    const size_t common = scene_layout(*s.p, s.worlds, nullptr).common;
    size_t k = 0;

    while (k < common && want[k] == got[k])
        k++;
    if (k == common)
        return true;
    fprintf(stderr, "physics: scene %d (%s): the %s run differs from the one-stream run, first at byte %zu of %zu\n",
            s.index, s.p->info.name, label, k, common);
    return false;
}

uint64_t check_hash(const scene &s, const std::vector<char> &state, uint64_t hash)
{
    const arena a = scene_layout(*s.p, s.worlds, const_cast<char *>(state.data()));
    const size_t bodies = static_cast<size_t>(s.p->m.bodies) * static_cast<size_t>(s.worlds) * sizeof(float);
    const struct {
        const float *data;
        size_t bytes;
    } fields[] = {{a.pos, bodies * POS}, {a.rot, bodies * ROT}, {a.vel, bodies * VEL}};

    for (const auto &f : fields)
        for (size_t k = 0; k < f.bytes; k++)
            hash = (hash ^ reinterpret_cast<const unsigned char *>(f.data)[k]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

/*
 * What happens at one place where bodies may touch: nearest points, the manifold of a candidate, one body's impulses.
 *
 * Kernels that differ only in which thread does which part share these functions: those of contact.cu, and those that
 * the bench compares with them. Nothing here knows of grids; the tick is handed in, since a kernel may read it from
 * memory.
 */
#ifndef PHYSICS_CONTACT_H
#define PHYSICS_CONTACT_H

#include "kernels.h"

#include <cstring>

#define CONTACT_FEEDBACK 0.2f /* share of a penetration that is put right per substep */
#define CONTACT_SLOP 0.002f   /* metres of penetration that are left alone */
#define MOST_PUSH 2.0f        /* metres per second that putting right may use */
#define FRICTION 0.9f

struct capsule {
    vec3 a, b;
    float radius;
};

PHYSICS_HD capsule capsule_of(const model &m, const float *pos, const float *rot, int worlds, int body, int world)
{
    const vec3 centre = load3(pos, worlds, POS, body, 0, world);
    const vec3 half = rotate(load_rot(rot, worlds, body, world), m.body[body].half);
    return {centre - half, centre + half, m.body[body].radius};
}

/* Points of two segments that are nearest to each other (Ericson, Real-Time Collision Detection, 5.1.9). */
PHYSICS_HD void nearest(const capsule &p, const capsule &q, vec3 &on_p, vec3 &on_q)
{
    const vec3 d1 = p.b - p.a, d2 = q.b - q.a, r = p.a - q.a;
    const float a = dot(d1, d1), e = dot(d2, d2), f = dot(d2, r), c = dot(d1, r), b = dot(d1, d2), tiny = 1e-9f;
    float s = 0, t = 0;

    if (a > tiny && e > tiny) {
        const float det = a * e - b * b;
        s = det > tiny ? clamp((b * f - c * e) / det, 0, 1) : 0;
        t = (b * s + f) / e;
        if (t < 0 || t > 1) {
            t = clamp(t, 0, 1);
            s = clamp((b * t - c) / a, 0, 1);
        }
    } else if (a > tiny) {
        s = clamp(-c / a, 0, 1);
    } else if (e > tiny) {
        t = clamp(f / e, 0, 1);
    }
    on_p = p.a + d1 * s;
    on_q = q.a + d2 * t;
}

/** Where two bodies are nearest: the normal points from b to a. */
struct touch {
    vec3 normal, point;
    float gap;
};

PHYSICS_HD touch touch_of(const model &m, const float *pos, const float *rot, int worlds, const slot_model &s,
                          int world)
{
    const capsule p = capsule_of(m, pos, rot, worlds, s.a, world);
    if (s.b == 0) {
        const vec3 end = s.end ? p.b : p.a;
        return {{0, 0, 1}, {end.x, end.y, end.z - p.radius}, end.z - p.radius};
    }
    const capsule q = capsule_of(m, pos, rot, worlds, s.b, world);
    vec3 on_p, on_q;
    nearest(p, q, on_p, on_q);
    const vec3 apart = on_p - on_q;
    const float distance = length(apart);
    const vec3 normal = distance > 1e-6f ? apart * (1.0f / distance) : vec3{0, 0, 1};
    const float gap = distance - p.radius - q.radius;
    return {normal, on_q + normal * (q.radius + 0.5f * gap), gap};
}

/* Change of the contact's normal speed per unit of impulse, with the bodies' shares. */
PHYSICS_HD float mobility_along(const body_model &b, vec3 arm, vec3 axis)
{
    const vec3 turn = cross(arm, axis);
    return b.contact_share * (b.inverse_mass + b.inverse_inertia * dot(turn, turn));
}

/* The same for sliding in any direction: an upper bound, so that friction never overshoots. */
PHYSICS_HD float mobility_any(const body_model &b, vec3 arm)
{
    return b.contact_share * (b.inverse_mass + b.inverse_inertia * dot(arm, arm));
}

PHYSICS_HD vec3 speed_at(const float *vel, int worlds, int body, int world, vec3 arm)
{
    return load3(vel, worlds, VEL, body, 0, world) + cross(load3(vel, worlds, VEL, body, 3, world), arm);
}

/** The manifold of the candidate that is `rest` places behind the first of its tile. */
PHYSICS_HD void narrow_entry(const narrow_args &a, int tick, unsigned tile, unsigned rest)
{
    const model &m = *a.m;
    const int n = a.worlds;
    const int entry = a.candidates[tile * BROAD_TILE + rest], place = entry / n, w = entry % n;
    const slot_model &s = m.slot[m.type[a.type].first_slot + place];
    const touch c = touch_of(m, a.pos, a.rot, n, s, w);
    if (c.gap > s.margin)
        return;
    const vec3 arm_a = c.point - load3(a.pos, n, POS, s.a, 0, w), arm_b = c.point - load3(a.pos, n, POS, s.b, 0, w);
    const body_model &ba = m.body[s.a], &bb = m.body[s.b];
    const float over = -c.gap - CONTACT_SLOP;
    /* Apart: may close the gap in this substep, no faster. Inside each other: pushed out. */
    const float bias = c.gap > 0  ? c.gap / m.timestep
                       : over > 0 ? -clamp(CONTACT_FEEDBACK * over / m.timestep, 0, MOST_PUSH)
                                  : 0;
    float *out = a.manifold + at(n, MANIFOLD, place, 0, w);
    const size_t step = static_cast<size_t>(n);

    store3(a.manifold, n, MANIFOLD, place, MANIFOLD_NORMAL, w, c.normal);
    store3(a.manifold, n, MANIFOLD, place, MANIFOLD_ARM_A, w, arm_a);
    store3(a.manifold, n, MANIFOLD, place, MANIFOLD_ARM_B, w, arm_b);
    store3(a.manifold, n, MANIFOLD, place, MANIFOLD_SPEED, w,
           speed_at(a.vel, n, s.a, w, arm_a) - (s.b ? speed_at(a.vel, n, s.b, w, arm_b) : vec3{0, 0, 0}));
    out[MANIFOLD_BIAS * step] = bias;
    out[MANIFOLD_MASS_NORMAL * step] =
        1.0f / (mobility_along(ba, arm_a, c.normal) + mobility_along(bb, arm_b, c.normal));
    out[MANIFOLD_MASS_SLIDE * step] = 1.0f / (mobility_any(ba, arm_a) + mobility_any(bb, arm_b));
    memcpy(&out[MANIFOLD_TICK * step], &tick, sizeof tick);
}

/** The manifold of the candidate number `i` of a pair type, counted over all tiles. */
PHYSICS_HD void narrow_nth(const narrow_args &a, unsigned i)
{
    unsigned tile = 0, rest = i;

    while (rest >= static_cast<unsigned>(a.counts[tile]))
        rest -= static_cast<unsigned>(a.counts[tile++]);
    narrow_entry(a, a.tick, tile, rest);
}

/** The manifold of place number `i` in the lists of a pair type, if there is a candidate. */
PHYSICS_HD void narrow_place(const narrow_args &a, unsigned i)
{
    const unsigned tile = i / BROAD_TILE, rest = i % BROAD_TILE;

    if (rest < static_cast<unsigned>(a.counts[tile]))
        narrow_entry(a, substep_of(a.tick, a.words), tile, rest);
}

/* The change of speed at the contact that earlier iterations brought to body `b`. */
PHYSICS_HD vec3 gained(const solve_args &a, int b, int w, vec3 arm)
{
    if (a.iteration == 0 || a.m->body[b].inverse_mass == 0)
        return {0, 0, 0};
    return speed_at(a.dv_in, a.worlds, b, w, arm);
}

/* The new impulse of one contact, on body a: pushing only, and friction inside its cone. */
PHYSICS_HD vec3 contact_impulse(const solve_args &a, const slot_model &s, int w, vec3 old)
{
    const float *field = a.manifold[s.type], *one = field + at(a.worlds, MANIFOLD, s.place, 0, w);
    const size_t step = static_cast<size_t>(a.worlds);
    const vec3 normal = load3(field, a.worlds, MANIFOLD, s.place, MANIFOLD_NORMAL, w);
    const vec3 arm_a = load3(field, a.worlds, MANIFOLD, s.place, MANIFOLD_ARM_A, w);
    const vec3 arm_b = load3(field, a.worlds, MANIFOLD, s.place, MANIFOLD_ARM_B, w);
    const vec3 speed = load3(field, a.worlds, MANIFOLD, s.place, MANIFOLD_SPEED, w) + gained(a, s.a, w, arm_a) -
                       gained(a, s.b, w, arm_b);
    const float along = dot(speed, normal), had = dot(old, normal);
    float push = had - one[MANIFOLD_MASS_NORMAL * step] * (along + one[MANIFOLD_BIAS * step]);
    push = push > 0 ? push : 0;
    const vec3 slide = speed - normal * along;
    const vec3 grip = (old - normal * had) - slide * one[MANIFOLD_MASS_SLIDE * step];
    return normal * push + limit_length(grip, FRICTION * push);
}

/** One iteration for one body: the sum of what its contacts of this tick change. */
PHYSICS_HD void solve_body(const solve_args &a, int tick, int b, int w)
{
    const int n = a.worlds;
    const body_model &body = a.m->body[b];
    vec3 speed = {0, 0, 0}, spin = {0, 0, 0};

    if (a.iteration > 0) {
        speed = load3(a.dv_in, n, VEL, b, 0, w);
        spin = load3(a.dv_in, n, VEL, b, 3, w);
    }
    for (int k = 0; k < body.slots && body.inverse_mass > 0; k++) {
        const slot_model &s = a.m->slot[body.slot[k]];
        int written;
        if (!(a.types >> s.type & 1))
            continue;
        memcpy(&written, &a.manifold[s.type][at(n, MANIFOLD, s.place, MANIFOLD_TICK, w)], sizeof written);
        if (written != tick)
            continue;
        const int side = s.b == b, entry = side * a.m->type[s.type].slots + s.place;
        const vec3 old = a.iteration > 0 ? load3(a.lambda[s.type], n, IMPULSE, entry, 0, w) : vec3{0, 0, 0};
        const vec3 now = contact_impulse(a, s, w, old), change = (now - old) * (side ? -1.0f : 1.0f);
        const vec3 arm = load3(a.manifold[s.type], n, MANIFOLD, s.place, side ? MANIFOLD_ARM_B : MANIFOLD_ARM_A, w);
        store3(a.lambda[s.type], n, IMPULSE, entry, 0, w, now);
        speed = speed + change * body.inverse_mass;
        spin = spin + cross(arm, change) * body.inverse_inertia;
    }
    store3(a.dv_out, n, VEL, b, 0, w, speed);
    store3(a.dv_out, n, VEL, b, 3, w, spin);
}

#endif

/*
 * The bench's own kernels: narrow over all pair types at once, and the ones of a step that is replayed.
 *
 * They share the sample's functions for one contact and one body, so they write the bits that the sample's kernels
 * write; only which thread does what, and where a thread learns the tick and the counts, differs.
 */
#include "contact.h"
#include "fuse.h"
#include "replay.h"

PHYSICS_HD void narrow_fused_thread(const narrow_fused_args &a, unsigned i)
{
    const unsigned block = i / CONTACT_BLOCK;
    int k = 0;

    while (k + 1 < a.types && block >= a.of[k + 1].first_block)
        k++;
    const fused_type &f = a.of[k];
    const unsigned place = i - f.first_block * CONTACT_BLOCK;
    if (place >= f.threads)
        return;
    const int *const words = reinterpret_cast<const int *>(a.base);
    const narrow_args n = {f.threads,
                           a.worlds,
                           f.type,
                           a.tick,
                           reinterpret_cast<const model *>(a.base),
                           words + f.candidates,
                           words + f.counts,
                           a.pos,
                           a.rot,
                           a.vel,
                           a.base + f.manifold};
    narrow_nth(n, place);
}

PHYSICS_KERNEL(narrow_fused, narrow_fused_args, CONTACT_BLOCK)

/* CTA k takes the candidates of tile k, however many there are. */
PHYSICS_HD void narrow_all_thread(const narrow_all_args &a, unsigned i)
{
    const unsigned tile = i / BROAD_TILE, rest = i % BROAD_TILE;

    if (rest >= static_cast<unsigned>(a.n.counts[tile]))
        return;
    const int tick = a.n.tick + a.r->clock;
    if (rest == 0)
        a.r->active[a.n.type] = tick; /* all who write it write the same */
    narrow_entry(a.n, tick, tile, rest);
}

PHYSICS_KERNEL(narrow_all, narrow_all_args, CONTACT_BLOCK)

/* The bodies of this tick's islands: bit b is body b. */
PHYSICS_HD unsigned island_bodies(const replay_state &r, int tick)
{
    unsigned active = 0;
    for (int t = 0; t < MAX_TYPES; t++)
        active |= static_cast<unsigned>(r.active[t] == tick) << t;
    return r.bodies[active];
}

PHYSICS_HD void solve_all_thread(const solve_all_args &a, unsigned i)
{
    const int place = static_cast<int>(i), b = a.v.first_body + place / a.v.worlds, tick = a.v.tick + a.r->clock;

    if (island_bodies(*a.r, tick) >> b & 1)
        solve_body(a.v, tick, b, place % a.v.worlds);
}

PHYSICS_KERNEL(solve_all, solve_all_args, CONTACT_BLOCK)

PHYSICS_HD void apply_all_thread(const apply_all_args &a, unsigned i)
{
    const int b = static_cast<int>(i) / a.worlds, w = static_cast<int>(i) % a.worlds, n = a.worlds;

    if (!(island_bodies(*a.r, a.tick + a.r->clock) >> b & 1) || a.m->body[b].inverse_mass == 0)
        return;
    store_velocity(*a.m, a.vel, n, b, w, load3(a.vel, n, VEL, b, 0, w) + load3(a.dv, n, VEL, b, 0, w),
                   load3(a.vel, n, VEL, b, 3, w) + load3(a.dv, n, VEL, b, 3, w));
}

PHYSICS_KERNEL(apply_all, apply_all_args, BODY_BLOCK)

PHYSICS_HD void clock_thread(const clock_args &a, unsigned)
{
    a.r->clock += a.ticks;
}

PHYSICS_KERNEL(clock, clock_args, 1)

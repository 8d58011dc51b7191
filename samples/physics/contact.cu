/*
 * Kernels about contacts: broad, islands, narrow, solve.
 *
 * broad lists, per pair type, the places where fattened capsules overlap; narrow makes a manifold of each listed place
 * one substep later, which is why the volumes are fattened by the way of two substeps at full speed; solve runs one
 * Jacobi iteration of impulses with friction. A list is in the order of its places: no result hangs on timing. islands
 * tells the GPU which sections run, where it decides.
 */
#include "contact.h"

/* Shared by the threads of a CTA of broad: who hit, then how many hits lie before each row of 16 threads. */
struct broad_shared {
    static const int phases = 3;
    static const int row = 16;
    int hit[BROAD_TILE];
    int before_row[BROAD_TILE / row + 1];
};

PHYSICS_HD void broad_phase(const broad_args &a, int phase, unsigned block, unsigned thread, broad_shared &shared)
{
    const int t = static_cast<int>(thread), i = static_cast<int>(block) * BROAD_TILE + t,
              rows = BROAD_TILE / broad_shared::row;
    const type_model &type = a.m->type[a.type];

    if (phase == 0) {
        const int place = i / a.worlds, w = i % a.worlds;
        const slot_model &s = a.m->slot[type.first_slot + (place < type.slots ? place : 0)];
        shared.hit[t] = place < type.slots && touch_of(*a.m, a.pos, a.rot, a.worlds, s, w).gap < s.margin;
    } else if (phase == 1 && t <= rows) {
        int sum = 0;
        for (int k = 0; k < t * broad_shared::row; k++)
            sum += shared.hit[k];
        shared.before_row[t] = sum;
        if (t == rows)
            a.counts[block] = sum;
        if (t == rows && sum > 0 && a.words) {
            const int next = substep_of(a.tick, a.words) + 1;
            a.words->found[next & 1][a.type] = next; /* CTAs that write it write the same */
        }
    } else if (phase == 2 && shared.hit[t]) {
        int rank = shared.before_row[t / broad_shared::row];
        for (int k = t / broad_shared::row * broad_shared::row; k < t; k++)
            rank += shared.hit[k];
        a.candidates[block * BROAD_TILE + rank] = i;
    }
}

PHYSICS_BLOCK_KERNEL(broad, broad_args, broad_shared, BROAD_TILE)

PHYSICS_HD void islands_thread(const islands_args &a, unsigned)
{
    const int next = a.words->clock + 1;
    const unsigned found = types_found(*a.words, next);

    for (int k = 0; k < a.m->islands; k++)
        a.words->island[next & 1][k] = a.m->island[k].types & found;
}

PHYSICS_KERNEL(islands, islands_args, CONTACT_BLOCK)

PHYSICS_HD void narrow_thread(const narrow_args &a, unsigned i)
{
    if (a.words)
        narrow_place(a, i);
    else
        narrow_nth(a, i);
}

PHYSICS_KERNEL(narrow, narrow_args, CONTACT_BLOCK)

PHYSICS_HD void solve_thread(const solve_args &a, unsigned i)
{
    const int place = static_cast<int>(i), b = a.first_body + place / a.worlds;
    const int substep = substep_of(a.tick, a.words);

    if (takes_part(*a.m, a.words, substep, b))
        solve_body(a, substep, b, place % a.worlds);
}

PHYSICS_KERNEL(solve, solve_args, CONTACT_BLOCK)

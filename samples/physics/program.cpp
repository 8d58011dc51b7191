/*
 * Owns the order of launches and their footprints. Called by the run loop; asks the runner only for counts that have
 * come back. Never looks at who executes the ops: every runner is given the same ones.
 *
 * Counts lag by one substep: broad of tick t fills buffer t & 1, a copy brings its counts home, and narrow of tick
 * t + 1 works on them. So the host waits for a copy behind which a whole substep has been queued already. If the host
 * does not decide, there is no copy, and the ops are the same in each step whose first tick has the same parity.
 */
#include "program.h"

#include <cstdio>
#include <cstdlib>

#include "runner.h"

program::program(const scene &s, actor a, decider d)
    : s_(s), m_(s.p->m), actor_(a), decider_(d), tick_(1), substep_(0), next_(BEFORE_COUNTS), footprints_(false)
{
    ready.reserve(64);
}

/* The memory that `add` reuses from portion to portion is what keeps this off the profile. */
op &program::add_op(const kernel_object &kernel, const void *args, size_t bytes, size_t threads, uint32_t block)
{
    ready.emplace_back();
    op &o = ready.back();

    o.kernel = &kernel;
    o.scene = s_.index;
    o.grid = static_cast<uint32_t>((threads + block - 1) / block);
    o.block = block;
    o.arg_bytes = static_cast<uint32_t>(bytes);
    o.segments = 0;
    memcpy(o.args, args, bytes);
    touch_model(o);
    return o;
}

/* ------------------------------------------------------------------------------------------------------ footprints */

void program::touch(op &o, acs_access access, const void *p, size_t bytes)
{
    if (!footprints_ || bytes == 0)
        return;
    if (o.segments == OP_SEGMENTS) {
        fprintf(stderr, "physics: %s needs more than %d segments\n", o.kernel->site.name, OP_SEGMENTS);
        exit(2);
    }
    o.segment[o.segments++] =
        acs_make_segment(ACS_EXTENT_BYTES, access, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(p)), bytes, 1, 0);
}

void program::touch_model(op &o)
{
    touch(o, ACS_READ, s_.at.m, sizeof(model));
}

/* A field of the bodies first .. first + bodies - 1: one range, since a body's components and worlds lie together. */
void program::touch_range(op &o, acs_access access, const float *field, int components, int first, int bodies)
{
    const size_t one = static_cast<size_t>(components) * static_cast<size_t>(s_.worlds);
    touch(o, access, field + one * static_cast<size_t>(first), one * static_cast<size_t>(bodies) * sizeof(float));
}

/* A field of any set of bodies: one range for each run of neighbours. */
void program::touch_bodies(op &o, acs_access access, const float *field, int components, unsigned bodies)
{
    for (int b = 0; b < m_.bodies; b++) {
        int end = b;
        while (end < m_.bodies && (bodies >> end & 1))
            end++;
        if (end > b)
            touch_range(o, access, field, components, b, end - b);
        b = end;
    }
}

/* Bodies that a pair type looks at, without the ground. */
unsigned program::type_bodies(int type) const
{
    unsigned bodies = 0;
    for (int k = 0; k < m_.type[type].slots; k++) {
        const slot_model &s = m_.slot[m_.type[type].first_slot + k];
        bodies |= 1u << s.a | 1u << s.b;
    }
    return bodies & ~1u;
}

/* --------------------------------------------------------------------------------------------- portions of a substep */

void program::add_joints(int joint_class)
{
    const int joints = m_.class_joints[joint_class], n = s_.worlds;
    const size_t threads = static_cast<size_t>(joints) * static_cast<size_t>(n);
    const arena &a = s_.at;
    if (joints == 0)
        return;
    const joint_args j = {
        static_cast<unsigned>(threads), n, joint_class, 0, a.m, a.pos, a.rot, a.vel, a.joint[joint_class]};
    op &o = add(kernel_joint, j, threads, BODY_BLOCK);
    touch_range(o, ACS_READ, a.pos, POS, 0, m_.bodies);
    touch_range(o, ACS_READ, a.rot, ROT, 0, m_.bodies);
    touch_range(o, ACS_READ, a.vel, VEL, 0, m_.bodies);
    touch_range(o, ACS_UPDATE, a.joint[joint_class], JOINT, 0, joints);

    const motor_args t = {
        static_cast<unsigned>(threads), n, joint_class, 0, a.m, a.rot, a.vel, a.act, a.motor[joint_class]};
    op &p = add(kernel_motor, t, threads, BODY_BLOCK);
    touch_range(p, ACS_READ, a.rot, ROT, 0, m_.bodies);
    touch_range(p, ACS_READ, a.vel, VEL, 0, m_.bodies);
    touch_range(p, ACS_READ, a.act, 1, 0, m_.dofs);
    touch_range(p, ACS_WRITE, a.motor[joint_class], MOTOR, 0, joints);
}

void program::add_integrate()
{
    const arena &a = s_.at;
    const size_t threads = static_cast<size_t>(m_.bodies) * static_cast<size_t>(s_.worlds);
    integrate_args i = {static_cast<unsigned>(threads), s_.worlds, a.m, a.pos, a.pace, {}, {}, a.vel};

    for (int g = 0; g < JOINT_CLASSES; g++) {
        i.joint[g] = a.joint[g];
        i.motor[g] = a.motor[g];
    }
    op &o = add(kernel_integrate, i, threads, BODY_BLOCK);
    for (int g = 0; g < JOINT_CLASSES; g++) {
        touch_range(o, ACS_READ, a.joint[g], JOINT, 0, m_.class_joints[g]);
        touch_range(o, ACS_READ, a.motor[g], MOTOR, 0, m_.class_joints[g]);
    }
    if (m_.path_body >= 0) {
        touch_range(o, ACS_READ, a.pos, POS, m_.path_body, 1);
        touch_range(o, ACS_READ, a.pace, PACE, 0, 1);
    }
    touch_range(o, ACS_UPDATE, a.vel, VEL, 0, m_.bodies);
}

void program::add_broad(int type)
{
    const arena &a = s_.at;
    const int side = tick_ & 1, tiles = s_.first_tile[type + 1] - s_.first_tile[type];
    int *const counts = a.counts[side] + s_.first_tile[type];
    const size_t threads = static_cast<size_t>(tiles) * BROAD_TILE;
    const broad_args b = {static_cast<unsigned>(threads),
                          s_.worlds,
                          type,
                          told_tick(),
                          a.m,
                          a.pos,
                          a.rot,
                          a.candidates[side][type],
                          counts,
                          words()};
    op &o = add(kernel_broad, b, threads, BROAD_TILE);

    touch_bodies(o, ACS_READ, a.pos, POS, type_bodies(type));
    touch_bodies(o, ACS_READ, a.rot, ROT, type_bodies(type));
    touch(o, ACS_UPDATE, a.candidates[side][type], threads * sizeof(int));
    touch(o, ACS_WRITE, counts, static_cast<size_t>(tiles) * sizeof(int));
    if (!words())
        return;
    touch(o, ACS_READ, &words()->clock, sizeof words()->clock);
    touch(o, ACS_UPDATE, &words()->found[side ^ 1][type], sizeof words()->found[0][0]);
}

void program::add_copy()
{
    const int side = tick_ & 1;
    ready.emplace_back();
    op &o = ready.back();

    o.kernel = nullptr;
    o.scene = s_.index;
    o.source = s_.at.counts[side];
    o.target = s_.host_counts[side];
    o.bytes = static_cast<size_t>(s_.first_tile[m_.types]) * sizeof(int);
    o.copy = side;
}

/* For the sections of the next tick. */
void program::add_islands()
{
    const islands_args k = {1, 0, s_.at.m, words()};
    op &o = add(kernel_islands, k, 1, CONTACT_BLOCK);

    touch_words(o, tick_ + 1);
    touch(o, ACS_WRITE, words()->island[(tick_ + 1) & 1], sizeof(unsigned) * static_cast<size_t>(m_.islands));
}

/* What brings the counts of this tick to whoever decides. */
void program::add_counts()
{
    if (decider_ == HOST_DECIDES)
        add_copy();
    else if (decider_ == GPU_DECIDES)
        add_islands();
}

void program::before_counts()
{
    const arena &a = s_.at;
    const size_t threads = static_cast<size_t>(m_.bodies) * static_cast<size_t>(s_.worlds);
    const kinetic_args k = {static_cast<unsigned>(threads), s_.worlds, a.m, a.vel, a.pos, a.rot, words()};
    op &o = add(kernel_kinetic, k, threads, BODY_BLOCK);

    touch_range(o, ACS_READ, a.vel, VEL, 0, m_.bodies);
    touch_range(o, ACS_UPDATE, a.pos, POS, 0, m_.bodies);
    touch_range(o, ACS_UPDATE, a.rot, ROT, 0, m_.bodies);
    if (words())
        touch(o, ACS_UPDATE, &words()->clock, sizeof words()->clock);
    for (int g = 0; g < JOINT_CLASSES; g++)
        add_joints(g);
    add_integrate();
    for (int t = 0; t < m_.types; t++)
        add_broad(t);
    add_counts();
}

/* NULL: the host decides. */
device_words *program::words() const
{
    return decider_ == HOST_DECIDES ? nullptr : s_.at.words;
}

/* What takes_part reads of a tick. */
void program::touch_words(op &o, int tick)
{
    if (!words())
        return;
    touch(o, ACS_READ, &words()->clock, sizeof words()->clock);
    touch(o, ACS_READ, words()->found[tick & 1], sizeof words()->found[0]);
}

/* Kernels that read the clock are told no other number. So their arguments are the same in each step. */
int program::told_tick() const
{
    return words() ? 0 : tick_;
}

op &program::add_narrow(int type, unsigned threads)
{
    const arena &a = s_.at;
    const int side = (tick_ - 1) & 1, tiles = s_.first_tile[type + 1] - s_.first_tile[type];
    const unsigned bodies = type_bodies(type);
    const int *const counts = a.counts[side] + s_.first_tile[type];
    const int *const candidates = a.candidates[side][type];
    const narrow_args n = {threads, s_.worlds, type,  told_tick(), a.m,              candidates,
                           counts,  a.pos,     a.rot, a.vel,       a.manifold[type], words()};
    op &o = add(kernel_narrow, n, threads, CONTACT_BLOCK);
    unsigned with_ground = bodies;

    for (int k = 0; k < m_.type[type].slots; k++)
        with_ground |= 1u << m_.slot[m_.type[type].first_slot + k].b;
    touch(o, ACS_READ, candidates, static_cast<size_t>(tiles) * BROAD_TILE * sizeof(int));
    touch(o, ACS_READ, counts, static_cast<size_t>(tiles) * sizeof(int));
    if (words())
        touch(o, ACS_READ, &words()->clock, sizeof words()->clock);
    touch_bodies(o, ACS_READ, a.pos, POS, with_ground);
    touch_bodies(o, ACS_READ, a.rot, ROT, bodies);
    touch_bodies(o, ACS_READ, a.vel, VEL, bodies);
    touch_range(o, ACS_UPDATE, a.manifold[type], MANIFOLD, 0, m_.type[type].slots);
    return o;
}

/* Where the host does not decide, bodies may be left out: what they would write is kept. */
op &program::add_solve(const island &i, int iteration)
{
    const arena &a = s_.at;
    const size_t threads = static_cast<size_t>(i.bodies) * static_cast<size_t>(s_.worlds);
    const float *const in = a.dv[(iteration + 1) & 1];
    float *const out = a.dv[iteration & 1];
    solve_args v = {static_cast<unsigned>(threads), s_.worlds, told_tick(), iteration, i.first, i.types, a.m, in, out,
                    {}, {}, words()};

    for (int t = 0; t < m_.types; t++) {
        v.manifold[t] = a.manifold[t];
        v.lambda[t] = a.lambda[t];
    }
    op &o = add(kernel_solve, v, threads, CONTACT_BLOCK);
    for (int t = 0; t < m_.types; t++)
        if (i.types >> t & 1) {
            touch_range(o, ACS_READ, a.manifold[t], MANIFOLD, 0, m_.type[t].slots);
            touch_range(o, ACS_UPDATE, a.lambda[t], IMPULSE, 0, 2 * m_.type[t].slots);
        }
    if (iteration > 0)
        touch_range(o, ACS_READ, in, VEL, i.first, i.bodies);
    touch_range(o, words() ? ACS_UPDATE : ACS_WRITE, out, VEL, i.first, i.bodies);
    touch_words(o, tick_);
    return o;
}

op &program::add_apply(const island *islands, int count)
{
    const arena &a = s_.at;
    const float *const dv = a.dv[(ITERATIONS - 1) & 1];
    apply_args p = {0, s_.worlds, told_tick(), count, {}, {}, a.m, dv, a.vel, words()};
    size_t bodies = 0;

    for (int k = 0; k < count; k++) {
        p.first_body[k] = islands[k].first;
        p.bodies[k] = islands[k].bodies;
        bodies += static_cast<size_t>(islands[k].bodies);
    }
    const size_t threads = bodies * static_cast<size_t>(s_.worlds);
    p.threads = static_cast<unsigned>(threads);
    op &o = add(kernel_apply, p, threads, BODY_BLOCK);
    for (int k = 0; k < count; k++) {
        touch_range(o, ACS_READ, dv, VEL, islands[k].first, islands[k].bodies);
        touch_range(o, ACS_UPDATE, a.vel, VEL, islands[k].first, islands[k].bodies);
    }
    touch_words(o, tick_);
    return o;
}

void program::after_counts()
{
    const int *const counts = s_.host_counts[(tick_ - 1) & 1];
    island islands[MAX_ISLANDS] = {};
    unsigned active = 0;

    for (int t = 0; t < m_.types; t++) {
        int count = 0;
        for (int k = s_.first_tile[t]; k < s_.first_tile[t + 1]; k++)
            count += counts[k];
        if (count > 0) {
            add_narrow(t, static_cast<unsigned>(count));
            active |= 1u << t;
        }
    }
    const int found = find_islands(m_, active, islands);
    for (int k = 0; k < ITERATIONS; k++)
        for (int i = 0; i < found; i++)
            add_solve(islands[i], k);
    if (found > 0)
        add_apply(islands, found);
}

/* The narrow phases of these pair types, whatever is found. */
void program::add_narrows(unsigned types)
{
    for (int t = 0; t < m_.types; t++)
        if (types >> t & 1)
            add_narrow(t, static_cast<unsigned>(s_.first_tile[t + 1] - s_.first_tile[t]) * BROAD_TILE);
}

/* Everything about one of the model's islands, behind the word that says whether it has candidates. */
void program::add_section(int k)
{
    const unsigned *const word = &s_.at.words->island[tick_ & 1][k];
    const size_t first = ready.size();

    add_narrows(m_.island[k].types);
    for (int i = 0; i < ITERATIONS; i++)
        add_solve(m_.island[k], i);
    add_apply(&m_.island[k], 1);
    for (size_t i = first; i < ready.size(); i++)
        ready[i].section = word;
    ready[first].section_begins = true;
    ready.back().section_ends = true;
}

/* The ops of a tick for all contacts that there can be. */
void program::all_contacts()
{
    if (decider_ == GPU_DECIDES) {
        for (int k = 0; k < m_.islands; k++)
            add_section(k);
        return;
    }
    add_narrows((1u << m_.types) - 1);
    for (int i = 0; i < ITERATIONS; i++)
        for (int k = 0; k < m_.islands; k++)
            add_solve(m_.island[k], i);
    add_apply(m_.island, m_.islands);
}

/* ----------------------------------------------------------------------------------------------- end of an env step */

void program::add_observe()
{
    const arena &a = s_.at;
    const size_t n = static_cast<size_t>(s_.worlds);
    const observe_args b = {static_cast<unsigned>(n), s_.worlds, a.m, a.pos, a.rot, a.vel, a.pace, a.obs};
    op &o = add(kernel_observe, b, n, CONTACT_BLOCK);
    touch_range(o, ACS_READ, a.pos, POS, m_.root, 1);
    touch_range(o, ACS_READ, a.rot, ROT, 0, m_.bodies);
    touch_range(o, ACS_READ, a.vel, VEL, m_.root, 1);
    touch_range(o, ACS_UPDATE, a.pace, PACE, 0, 1);
    touch_range(o, ACS_WRITE, a.obs, 1, 0, 12 + m_.dofs);
}

void program::add_policy()
{
    const arena &a = s_.at;
    const size_t n = static_cast<size_t>(s_.worlds), dofs = n * static_cast<size_t>(m_.dofs);
    const hidden_args h = {static_cast<unsigned>(n * HIDDEN), s_.worlds, a.m, a.obs, a.weights_in, a.hidden};
    op &p = add(kernel_hidden, h, n * HIDDEN, BODY_BLOCK);
    touch_range(p, ACS_READ, a.obs, 1, 0, 12 + m_.dofs);
    touch(p, ACS_READ, a.weights_in, HIDDEN * MAX_OBSERVED * sizeof(float));
    touch_range(p, ACS_WRITE, a.hidden, 1, 0, HIDDEN);

    const action_args t = {static_cast<unsigned>(dofs), s_.worlds, a.m, a.hidden, a.weights_out, a.pace, a.act};
    op &q = add(kernel_action, t, dofs, BODY_BLOCK);
    touch_range(q, ACS_READ, a.hidden, 1, 0, HIDDEN);
    touch(q, ACS_READ, a.weights_out, MAX_DOFS * HIDDEN * sizeof(float));
    touch_range(q, ACS_READ, a.pace, PACE, 0, 1);
    touch_range(q, ACS_WRITE, a.act, 1, 0, m_.dofs);
}

void program::add_reset()
{
    const arena &a = s_.at;
    const size_t threads = static_cast<size_t>(m_.bodies) * static_cast<size_t>(s_.worlds);
    const reset_args r = {static_cast<unsigned>(threads), s_.worlds, a.m,   a.done, a.first_pos,
                          a.first_rot,                    a.first_vel, a.pos, a.rot,  a.vel};
    op &o = add(kernel_reset, r, threads, BODY_BLOCK);

    touch(o, ACS_READ, a.done, static_cast<size_t>(s_.worlds) * sizeof(int));
    touch_range(o, ACS_READ, a.first_pos, POS, 0, m_.bodies);
    touch_range(o, ACS_READ, a.first_rot, ROT, 0, m_.bodies);
    touch_range(o, ACS_READ, a.first_vel, VEL, 0, m_.bodies);
    touch_range(o, ACS_UPDATE, a.pos, POS, 0, m_.bodies);
    touch_range(o, ACS_UPDATE, a.rot, ROT, 0, m_.bodies);
    touch_range(o, ACS_UPDATE, a.vel, VEL, 0, m_.bodies);
}

void program::add_reward()
{
    const arena &a = s_.at;
    const size_t n = static_cast<size_t>(s_.worlds);
    const reward_args r = {static_cast<unsigned>(n), s_.worlds, a.m, a.pos, a.vel, a.act, a.pace, a.reward, a.done};
    op &o = add(kernel_reward, r, n, CONTACT_BLOCK);
    touch_range(o, ACS_READ, a.pos, POS, m_.root, 1);
    touch_range(o, ACS_READ, a.vel, VEL, m_.root, 1);
    touch_range(o, ACS_READ, a.act, 1, 0, m_.dofs);
    touch_range(o, ACS_UPDATE, a.reward, 1, 0, 1);
    touch_range(o, ACS_UPDATE, a.pace, PACE, 0, 1);
    touch(o, ACS_WRITE, a.done, n * sizeof(int));
}

/* With ACTOR_CALLER the scene is observed behind the reset, so that the next action fits the new state. */
void program::step_end()
{
    if (actor_ == ACTOR_SCENE) {
        add_observe();
        add_policy();
    }
    add_reward();
    add_reset();
    if (actor_ == ACTOR_CALLER)
        add_observe();
}

/* ---------------------------------------------------------------------------------------------------------- driving */

void program::prime(bool footprints)
{
    footprints_ = footprints;
    ready.clear();
    tick_ = 0;
    for (int t = 0; t < m_.types; t++)
        add_broad(t);
    add_counts();
    if (actor_ == ACTOR_CALLER)
        add_observe();
    tick_ = 1;
}

bool program::advance(runner &r, bool footprints)
{
    footprints_ = footprints;
    ready.clear();
    switch (next_) {
    case BEFORE_COUNTS:
        before_counts();
        next_ = AFTER_COUNTS;
        return true;
    case AFTER_COUNTS:
        if (decider_ == HOST_DECIDES) {
            r.wait_copy(s_.index, (tick_ - 1) & 1);
            after_counts();
        } else {
            all_contacts();
        }
        tick_++;
        next_ = ++substep_ < m_.substeps ? BEFORE_COUNTS : STEP_END;
        return true;
    case STEP_END:
        step_end();
        substep_ = 0;
        next_ = STEP_OVER;
        return true;
    default:
        next_ = BEFORE_COUNTS;
        return false;
    }
}

/*
 * Owns the ways in which no counts are read back, as engines for reinforcement learning do it today: a step is the same
 * launches every time, every pair type at its maximum size and all islands that there can be. Called by the measurement.
 *
 * The ops come from the sample's own program, told that every place is a candidate; narrow, solve and apply are then
 * exchanged for kernels that learn tick, counts and islands on the device. So the final state is the same bit for bit.
 */
#include "replay.h"

#include <cstdio>
#include <cstdlib>

#include "grapher.h"
#include "runner.h"

static_assert(sizeof(narrow_all_args) <= OP_ARG_BYTES && sizeof(solve_all_args) <= OP_ARG_BYTES, "must fit into an op");

namespace {

class no_runner : public runner {
public:
    void launch(const op &) override {}
    void wait_copy(int, int) override {}
    void finish() override {}
};

/* Anything about `r` that kernels of the step read or write, as a segment: a footprint of the sample's has room. */
void touch(op &o, acs_access access, const void *p, size_t bytes)
{
    if (o.segments == OP_SEGMENTS) {
        fprintf(stderr, "physics-bench: %s needs more than %d segments\n", o.kernel->site.name, OP_SEGMENTS);
        exit(1);
    }
    o.segment[o.segments++] =
        acs_make_segment(ACS_EXTENT_BYTES, access, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(p)), bytes, 1, 0);
}

template <class Args> void set_args(op &o, const kernel_object &kernel, const Args &a, uint32_t block)
{
    o.kernel = &kernel;
    o.block = block;
    o.grid = (a.threads + block - 1) / block;
    o.arg_bytes = sizeof a;
    memcpy(o.args, &a, sizeof a);
}

template <class Args> Args args_of(const op &o)
{
    Args a;
    memcpy(&a, o.args, sizeof a);
    return a;
}

void exchange_narrow(op &o, replay_state *r)
{
    const narrow_args n = args_of<narrow_args>(o);
    const narrow_all_args a = {n.threads, n, r};
    set_args(o, kernel_narrow_all, a, BROAD_TILE);
    touch(o, ACS_READ, &r->clock, sizeof r->clock);
    touch(o, ACS_UPDATE, &r->active[n.type], sizeof(int));
}

void exchange_solve(op &o, replay_state *r)
{
    const solve_args v = args_of<solve_args>(o);
    const solve_all_args a = {v.threads, v, r};
    set_args(o, kernel_solve_all, a, CONTACT_BLOCK);
    touch(o, ACS_READ, r, offsetof(replay_state, bodies));
}

/* Over all bodies: islands of fewer pair types may reach over bodies that no island of all of them has. */
void exchange_apply(op &o, const scene &s, int tick, replay_state *r)
{
    const apply_args p = args_of<apply_args>(o);
    const unsigned threads = static_cast<unsigned>(s.p->m.bodies) * static_cast<unsigned>(s.worlds);
    const size_t bytes = static_cast<size_t>(threads) * VEL * sizeof(float);
    const apply_all_args a = {threads, s.worlds, tick, p.m, p.dv, p.vel, r};
    set_args(o, kernel_apply_all, a, BODY_BLOCK);
    touch(o, ACS_READ, p.dv, bytes);
    touch(o, ACS_UPDATE, p.vel, bytes);
    touch(o, ACS_READ, r, offsetof(replay_state, bodies));
}

op clock_op(const scene &s, replay_state *r)
{
    op o{};
    const clock_args c = {1, s.p->m.substeps, r};
    o.scene = s.index;
    set_args(o, kernel_clock, c, 1);
    touch(o, ACS_UPDATE, &r->clock, sizeof r->clock);
    return o;
}

/* A scene's step with its state, which a run begins with `first`. */
struct replayed_scene {
    const scene *s;
    replay_state *state, first;
    std::vector<op> ops;
    dag edges;
};

/* Lists the step's ops: one environment step of the sample's program in which every place is a candidate. */
void list_ops(replayed_scene &one)
{
    const scene &s = *one.s;
    std::vector<int> full(static_cast<size_t>(s.first_tile[MAX_TYPES]), BROAD_TILE);
    const scene all = {s.p, s.index, s.worlds, {}, s.at, {full.data(), full.data()}, {}};
    scene told = all;
    no_runner none;
    int tick = 0;

    memcpy(told.first_tile, s.first_tile, sizeof told.first_tile);
    program p(told);
    p.prime(true);
    while (p.advance(none, true))
        for (op o : p.ready) {
            if (!o.kernel)
                continue;
            if (o.kernel == &kernel_narrow) {
                tick = args_of<narrow_args>(o).tick;
                exchange_narrow(o, one.state);
            } else if (o.kernel == &kernel_solve) {
                exchange_solve(o, one.state);
            } else if (o.kernel == &kernel_apply) {
                exchange_apply(o, s, tick, one.state);
            }
            one.ops.push_back(o);
        }
    one.ops.push_back(clock_op(s, one.state));
    one.edges = dag_of(one.ops);
    for (unsigned active = 0; active < 1u << s.p->m.types; active++) {
        program::island found[MAX_ISLANDS] = {};
        const int count = p.find_islands(active, found);
        for (int k = 0; k < count; k++)
            one.first.bodies[active] |= ((1u << found[k].bodies) - 1) << found[k].first;
    }
}

/* What graph-max and max-stream share: the scenes' ops and state, and the beginning of a run. */
class max_driver : public driver {
public:
    explicit max_driver(const driver_setup &setup) : sim_(setup.sim), order_(setup.issue_order)
    {
        for (const auto &s : sim_.scenes) {
            void *at = nullptr;
            if (s->p->m.substeps % 2 != 0) {
                fprintf(stderr, "physics-bench: %s: a step that is replayed needs an even number of substeps\n",
                        s->p->info.name);
                exit(1);
            }
            require_acs(acs_malloc(sim_.context, sizeof(replay_state), ACS_MEMORY_DEVICE, &at), "acs_malloc");
            scenes_.push_back({s.get(), static_cast<replay_state *>(at), {}, {}, {}});
            list_ops(scenes_.back());
        }
    }

    ~max_driver() override
    {
        for (const replayed_scene &one : scenes_)
            (void)acs_free(sim_.context, one.state);
    }
    max_driver(const max_driver &) = delete;
    max_driver &operator=(const max_driver &) = delete;

    void begin() override
    {
        std::vector<const scene *> all;
        const std::unique_ptr<runner> plain = sim_.gpu ? make_stream_runner(1, static_cast<int>(scenes_.size()))
                                                       : make_inline_runner(false);
        for (const replayed_scene &one : scenes_) {
            memory_copy(sim_.gpu, one.state, &one.first, sizeof one.first);
            all.push_back(one.s);
        }
        issue first(all, ORDER_SCENE, *plain);
        first.prime();
        plain->finish();
    }

protected:
    const simulation &sim_;
    const order order_;
    std::vector<replayed_scene> scenes_;
};

class graph_max_driver : public max_driver {
public:
    graph_max_driver(const driver_setup &setup, grouping g) : max_driver(setup)
    {
        size_t next = 0;
        for (const auto &group : grouped_scenes(setup.sim, g)) {
            ops_graph graph;
            for (size_t k = 0; k < group.size(); k++, next++)
                graph.parts.push_back({&scenes_[next].ops, &scenes_[next].edges});
            graphs_.push_back(make_grapher(setup, false));
            graphs_.back()->keep(graph);
        }
    }

    void begin() override
    {
        max_driver::begin();
        for (auto &g : graphs_)
            g->counts = driver_counts();
    }

    void step() override
    {
        for (auto &g : graphs_)
            g->replay();
    }

    void finish() override
    {
        for (auto &g : graphs_)
            g->finish();
    }

    driver_counts counts() const override
    {
        driver_counts sum;
        for (const auto &g : graphs_)
            sum.kernels += g->counts.kernels;
        return sum;
    }

private:
    std::vector<std::unique_ptr<grapher>> graphs_;
};

class max_stream_driver : public max_driver {
public:
    explicit max_stream_driver(const driver_setup &setup)
        : max_driver(setup), runner_(sim_.gpu ? make_stream_runner(1, static_cast<int>(scenes_.size()))
                                              : make_inline_runner(false))
    {
    }

    void begin() override
    {
        max_driver::begin();
        counts_ = driver_counts();
    }

    void step() override
    {
        size_t left = 1;

        for (const replayed_scene &one : scenes_)
            for (size_t k = 0; order_ == ORDER_SCENE && k < one.ops.size(); k++)
                send(one.ops[k]);
        for (size_t k = 0; order_ == ORDER_INTERLEAVED && left > 0; k++) {
            left = 0;
            for (const replayed_scene &one : scenes_)
                if (k < one.ops.size()) {
                    send(one.ops[k]);
                    left++;
                }
        }
    }

    void finish() override { runner_->finish(); }
    driver_counts counts() const override { return counts_; }

private:
    void send(const op &o)
    {
        runner_->launch(o);
        counts_.kernels++;
    }

    std::unique_ptr<runner> runner_;
    driver_counts counts_;
};

} // namespace

std::unique_ptr<driver> make_graph_max_driver(const driver_setup &setup, grouping g)
{
    return std::make_unique<graph_max_driver>(setup, g);
}

std::unique_ptr<driver> make_max_stream_driver(const driver_setup &setup)
{
    return std::make_unique<max_stream_driver>(setup);
}

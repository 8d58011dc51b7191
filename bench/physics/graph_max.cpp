/*
 * Owns the ways in which no counts are read back, as engines for reinforcement learning do it today: a step is the same
 * launches every time, every pair type at its maximum size and all islands that there can be. Called by the measurement.
 *
 * The ops are those of the sample's own program where kernels decide, so the final state is the same bit for bit.
 */
#include "grapher.h"
#include "runner.h"

namespace {

class no_runner : public runner {
public:
    void launch(const op &) override {}
    void wait_copy(int, int) override {}
    void finish() override {}
};

/* A scene's step. */
struct replayed_scene {
    const scene *s;
    std::vector<op> ops;
    dag edges;
};

/* Lists the step's ops. */
void list_ops(replayed_scene &one)
{
    no_runner none;
    program p(*one.s, ACTOR_SCENE, KERNELS_DECIDE);

    p.prime(true);
    while (p.advance(none, true))
        one.ops.insert(one.ops.end(), p.ready.begin(), p.ready.end());
    one.edges = dag_of(one.ops);
}

/* What graph-max and max-stream share: the scenes' ops, and the beginning of a run. */
class max_driver : public driver {
public:
    explicit max_driver(const driver_setup &setup) : sim_(setup.sim), order_(setup.issue_order)
    {
        for (const auto &s : sim_.scenes) {
            scenes_.push_back({s.get(), {}, {}});
            list_ops(scenes_.back());
        }
    }

    void begin() override
    {
        std::vector<const scene *> all;
        const std::unique_ptr<runner> plain =
            sim_.gpu ? make_stream_runner(1, static_cast<int>(scenes_.size()), KERNELS_DECIDE)
                     : make_inline_runner(false, KERNELS_DECIDE);
        for (const replayed_scene &one : scenes_)
            all.push_back(one.s);
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

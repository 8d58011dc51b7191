/*
 * Owns the running of graphs on the CPU, for tests: each node runs as late as the edges let it, so that an edge that is
 * missing changes the result. Called in place of CUDA's graphs with --emulate; its times mean nothing.
 */
#include "grapher.h"

#include <cstring>

#include "runner.h"

std::vector<std::vector<const scene *>> grouped_scenes(const simulation &sim, grouping g)
{
    std::vector<std::vector<const scene *>> groups;

    for (const auto &one : sim.scenes) {
        if (groups.empty() || g == GROUP_SCENES)
            groups.emplace_back();
        groups.back().push_back(one.get());
    }
    return groups;
}

namespace {

/* A copy of a graph that outlives what it was made from, as an executable graph does. */
struct kept_part {
    std::vector<op> ops;
    dag edges;
};

class emulated_grapher : public grapher {
public:
    explicit emulated_grapher(const char *forget) : plain_(make_inline_runner(false)), forget_(forget) {}

    uint64_t launch(const ops_graph &g) override
    {
        for (size_t k = g.parts.size(); k-- > 0;)
            run(*g.parts[k].ops, *g.parts[k].edges);
        return ++counts.graphs;
    }

    void wait(uint64_t) override {}

    void keep(const ops_graph &g) override
    {
        for (const ops_graph::part &p : g.parts)
            kept_.push_back({*p.ops, *p.edges});
    }

    void replay() override
    {
        for (size_t k = kept_.size(); k-- > 0;)
            run(kept_[k].ops, kept_[k].edges);
    }

    void finish() override {}

private:
    /* The node that became ready last runs first; of several at once, the last in program order. */
    void run(const std::vector<op> &ops, const dag &edges)
    {
        std::vector<std::vector<size_t>> before(ops.size());
        std::vector<size_t> left(ops.size()), ready;

        for (size_t k = 0; k < ops.size(); k++) {
            if (forget_ && ops[k].kernel && strcmp(ops[k].kernel->site.name, forget_) == 0) {
                ready.push_back(k);
                continue;
            }
            left[k] = edges.after[k].size();
            for (const int j : edges.after[k])
                before[static_cast<size_t>(j)].push_back(k);
            if (left[k] == 0)
                ready.push_back(k);
        }
        while (!ready.empty()) {
            const size_t k = ready.back();
            ready.pop_back();
            plain_->launch(ops[k]);
            counts.kernels += ops[k].kernel != nullptr;
            for (const size_t next : before[k])
                if (--left[next] == 0)
                    ready.push_back(next);
        }
    }

    std::unique_ptr<runner> plain_;
    const char *const forget_;
    std::vector<kept_part> kept_;
};

} // namespace

std::unique_ptr<grapher> make_emulated_grapher(const char *forget)
{
    return std::make_unique<emulated_grapher>(forget);
}

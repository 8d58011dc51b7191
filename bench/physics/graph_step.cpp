/*
 * Owns the ways that build graphs as they go: in each round one graph holds all that is known between two waits for
 * counts, that is, what comes after one substep's counts and what comes before the next one's. Since counts lag by one
 * substep, a graph is built while the one before it runs. Called by the measurement; issues nothing outside of graphs.
 */
#include <algorithm>
#include <unordered_map>

#include "grapher.h"
#include "runner.h"

namespace {

/* A scene with its ops of this round, and the edges of all sequences of ops that it has had. */
struct member {
    const scene *s;
    std::unique_ptr<program> p;
    std::vector<op> ops;
    uint64_t copied[2]; /* the launch with the last copy to each of the scene's host buffers */
    std::unordered_map<uint64_t, dag> known;

    const dag &edges()
    {
        const uint64_t key = dag_key(ops);
        const auto found = known.find(key);
        return found != known.end() ? found->second : known.emplace(key, dag_of(ops)).first->second;
    }
};

/* The scenes of one graph. A runner only because programs wait through one. */
class group : public runner {
public:
    group(const std::vector<const scene *> &scenes, std::unique_ptr<grapher> g) : grapher_(std::move(g))
    {
        for (const scene *s : scenes)
            members_.push_back({s, nullptr, {}, {0, 0}, {}});
    }

    void launch(const op &) override {}
    void wait_copy(int scene, int copy) override
    {
        for (const member &m : members_)
            if (m.s->index == scene)
                grapher_->wait(m.copied[copy]);
    }
    void finish() override { grapher_->finish(); }

    void begin()
    {
        grapher_->finish();
        for (member &m : members_) {
            m.p = std::make_unique<program>(*m.s);
            m.p->prime(true);
            take(m);
        }
        flush();
        grapher_->finish();
        grapher_->counts = driver_counts();
    }

    /* Round 0 is what precedes the first counts; round r of s substeps follows those of substep r. */
    void round(int r)
    {
        for (member &m : members_) {
            const int substeps = m.s->p->m.substeps;
            if (r > substeps)
                continue;
            for (int portions = r == 0 ? 1 : 2; portions > 0; portions--) {
                m.p->advance(*this, true);
                take(m);
            }
            if (r == substeps)
                m.p->advance(*this, true); /* the step is over */
        }
        flush();
    }

    int rounds() const
    {
        int most = 0;
        for (const member &m : members_)
            most = std::max(most, m.s->p->m.substeps + 1);
        return most;
    }

    const driver_counts &counts() const { return grapher_->counts; }

private:
    /* The program gives its list away where it can: ops are large. */
    static void take(member &m)
    {
        if (m.ops.empty())
            m.ops.swap(m.p->ready);
        else
            m.ops.insert(m.ops.end(), m.p->ready.begin(), m.p->ready.end());
    }

    void flush()
    {
        graph_.parts.clear();
        for (member &m : members_)
            if (!m.ops.empty())
                graph_.parts.push_back({&m.ops, &m.edges()});
        if (graph_.parts.empty())
            return;
        const uint64_t number = grapher_->launch(graph_);
        for (member &m : members_) {
            for (const op &o : m.ops)
                if (!o.kernel)
                    m.copied[o.copy] = number;
            m.ops.clear();
        }
    }

    std::unique_ptr<grapher> grapher_;
    std::vector<member> members_;
    ops_graph graph_;
};

class graph_step_driver : public driver {
public:
    graph_step_driver(const driver_setup &setup, grouping g, bool update) : order_(setup.issue_order)
    {
        for (const auto &scenes : grouped_scenes(setup.sim, g))
            groups_.push_back(std::make_unique<group>(scenes, make_grapher(setup, update)));
    }

    void begin() override
    {
        for (auto &g : groups_)
            g->begin();
    }

    void step() override
    {
        int most = 0;

        for (auto &g : groups_) {
            most = std::max(most, g->rounds());
            for (int r = 0; order_ == ORDER_SCENE && r < g->rounds(); r++)
                g->round(r);
        }
        for (int r = 0; order_ == ORDER_INTERLEAVED && r < most; r++)
            for (auto &g : groups_)
                g->round(r);
    }

    void finish() override
    {
        for (auto &g : groups_)
            g->finish();
    }

    driver_counts counts() const override
    {
        driver_counts sum;
        for (const auto &g : groups_) {
            sum.kernels += g->counts().kernels;
            sum.graphs += g->counts().graphs;
            sum.instantiated += g->counts().instantiated;
            sum.updated += g->counts().updated;
        }
        return sum;
    }

private:
    const order order_;
    std::vector<std::unique_ptr<group>> groups_;
};

} // namespace

std::unique_ptr<driver> make_graph_step_driver(const driver_setup &setup, grouping g, bool update)
{
    return std::make_unique<graph_step_driver>(setup, g, update);
}

/*
 * Owns the ways that make one CUDA graph of all that lies between two waits of the program: built and instantiated in
 * each run, built to update a kept one, and replayed. Their shape is the bench's. Called through the list of vehicles.
 */
#include <algorithm>

#include "graphs_shape.h"
#include "vehicle.h"

namespace design {

namespace {

enum graph_mode { BUILD, UPDATE, REPLAY };

/* One graph per stretch, made before time 0: what that takes of the host is spent where the mode has it done. */
class graph_thread : public thread {
public:
    graph_thread(run &r, graph_mode mode, const bench::graph_shape &shape)
        : thread(r), mode_(mode), shape_(shape), stream_(acs_sim_stream(r.machine, 0))
    {
        for (uint32_t k = 0; k < r.prog.tasks.size(); k++)
            if (r.prog.tasks[k].kind == WAIT)
                waits_.push_back(k);
    }

protected:
    bool decide(uint64_t now) override
    {
        if (waiting_) {
            if (!run_.all_seen(last_tasks_))
                return false;
            waiting_ = false;
            spend(run_.gpu.host.synchronize);
            return true;
        }
        if (stretch_ == shape_.stretch_end.size()) {
            handed_over(now);
            return false;
        }
        issue(stretch_);
        waiting_ = stretch_ < waits_.size(); /* a read follows the graph in its stream: it waits for all of that */
        stretch_++;
        return true;
    }

private:
    /* The nodes of a stretch; those that depend on nothing are roots. */
    uint32_t make(size_t stretch, uint32_t *nodes, uint32_t *roots)
    {
        const size_t first = stretch == 0 ? 0 : shape_.stretch_end[stretch - 1];
        const uint32_t graph = acs_sim_graph(run_.machine, 0);
        acs_sim_kernel join = {};

        join.ctas = join.threads = 1;
        *nodes = *roots = 0;
        last_tasks_.clear();
        for (size_t k = first; k < shape_.stretch_end[stretch]; k++) {
            const bench::graph_node &n = shape_.nodes[k];
            const uint32_t node = n.op == bench::NODE_JOIN
                                      ? acs_sim_graph_node(run_.machine, graph, &join, ACS_SIM_NODE_FIXED, nullptr)
                                      : run_.node(graph, n.op);
            if (n.op != bench::NODE_JOIN)
                last_tasks_.push_back(n.op);
            for (uint32_t u = 0; u < n.up_count; u++)
                acs_sim_graph_edge(run_.machine, graph, shape_.ups[n.first_up + u] - static_cast<uint32_t>(first), node);
            ++*nodes;
            *roots += n.up_count == 0;
        }
        return graph;
    }

    void issue(size_t stretch)
    {
        const acs_sim_host_costs &h = run_.gpu.host;
        uint32_t nodes, roots;
        const uint32_t graph = make(stretch, &nodes, &roots);

        if (nodes == 0)
            return;
        if (mode_ != REPLAY)
            spend(uint64_t(h.graph_add_node) * nodes);
        if (mode_ == UPDATE)
            spend(uint64_t(h.graph_update_node) * nodes);
        const bool made = mode_ == BUILD || (mode_ == UPDATE && !run_.prog.recurs); /* an update that does not fit fails */
        if (made)
            spend(uint64_t(h.graph_instantiate_node) * nodes);
        launching(0, h.graph_launch + uint64_t(h.graph_launch_root) * roots + uint64_t(h.graph_launch_node) * nodes,
                  [this, graph](uint64_t at) { acs_sim_graph_launch(run_.machine, at, stream_, graph); });
        if (made)
            spend(uint64_t(h.graph_destroy_node) * nodes);
    }

    const graph_mode mode_;
    const bench::graph_shape &shape_;
    const uint32_t stream_;
    std::vector<uint32_t> waits_, last_tasks_;
    size_t stretch_ = 0;
    bool waiting_ = false;
};

class graphs : public vehicle {
public:
    graphs(const program &p, graph_mode mode, bool joins)
        : mode_(mode), joins_(joins), shape_(bench::shape_graphs(planned_ops(p), p.dag, joins, 1))
    {
    }
    void begin(run &r) override
    {
        run_ = &r;
        thread_ = std::make_unique<graph_thread>(r, mode_, shape_);
        r.wake(*thread_, 0);
    }
    void seen(uint32_t, uint64_t now) override { run_->wake(*thread_, now); }
    uint64_t host_busy() const override { return thread_->busy(); }
    std::string setting() const override { return joins_ ? "joins of many edges" : "edges of the dag"; }

private:
    const graph_mode mode_;
    const bool joins_;
    const bench::graph_shape shape_;
    run *run_ = nullptr;
    std::unique_ptr<graph_thread> thread_;
};

void add(std::vector<vehicle_kind> &list, const char *name, const char *about, graph_mode mode)
{
    list.push_back({name, about, mode == REPLAY ? bench::BOUND : bench::RIVAL, 2,
                    [mode](const program &p, int v) { return std::make_unique<graphs>(p, mode, v == 1); }});
}

} // namespace

void add_graph_vehicles(std::vector<vehicle_kind> &list)
{
    add(list, "graph-build", "a CUDA graph built, instantiated, launched and destroyed in each run", BUILD);
    add(list, "graph-update", "a CUDA graph built in each run, by which a kept executable one is updated", UPDATE);
    add(list, "graph-replay", "a CUDA graph instantiated beforehand: the bound for static work", REPLAY);
}

} // namespace design

/*
 * Owns the ways that issue many ops by one launch of a cached graph, made long before: batches whose topology was seen
 * before, with parameters set per node; the level template, into which any program fits; GPU-side issue. Called through
 * the list of vehicles.
 *
 * Batches are cut from program order, and end where the program waits. Each op also costs the thread its insertion into
 * the window, as in the chained way.
 */
#include <algorithm>

#include "vehicle.h"

namespace design {

namespace {

/*
 * A kernel at a graph's head that sets its nodes' parameters: 0.25 us a kernel were measured with one, of which the
 * front end's share is 0.19. An unused node of the level template costs 0.09 us. (gpu-costs, H200.)
 */
enum { SET_NS = 60, UNUSED_NS = 90 };
enum { LEVEL_WIDTH = 16, MOST_LEVELS = 32 };
/* Device launches that one execution of the launching graph may make. */
enum { MOST_DEVICE_LAUNCHES = 120 };

enum batch_mode { KEPT, LAYERS, DEVICE };

struct batch {
    uint32_t graph = 0, stream = 0;
    uint32_t nodes = 0, roots = 0;
    std::vector<uint32_t> behind; /* batches that it must wait for */
    std::vector<uint32_t> tasks;
    uint32_t event = ACS_SIM_NONE;
    std::vector<uint32_t> wait;   /* tasks that the program waits for before it goes on */
};

acs_sim_kernel one_block(uint64_t ns)
{
    acs_sim_kernel k = {};
    k.ctas = k.threads = 1;
    k.cta_ns = ns;
    return k;
}

/* Cuts a program into batches and makes their graphs. */
class cutter {
public:
    cutter(run &r, batch_mode mode, uint32_t size)
        : run_(r), mode_(mode), size_(size), batch_of_(r.prog.tasks.size()), node_(r.prog.tasks.size()),
          level_(r.prog.tasks.size())
    {
    }

    std::vector<batch> cut()
    {
        for (uint32_t k = 0; k < run_.prog.tasks.size(); k++) {
            if (run_.prog.tasks[k].kind == WAIT) {
                close();
                if (batches_.empty())
                    batches_.push_back(batch());
                for (uint32_t u : run_.prog.dag.up[k])
                    batches_.back().wait.push_back(u);
                continue;
            }
            if (!fits(k))
                close();
            if (mode_ == LAYERS)
                put_into_level(k);
            batch_of_[k] = static_cast<uint32_t>(batches_.size());
            open_.push_back(k);
        }
        close();
        return std::move(batches_);
    }

private:
    bool inner(uint32_t u) const
    {
        return run_.prog.tasks[u].kind != WAIT && !open_.empty() && batch_of_[u] == batches_.size();
    }

    /* The first level with room behind those of the upstream ops. */
    uint32_t level_for(uint32_t k) const
    {
        uint32_t level = 0;
        for (uint32_t u : run_.prog.dag.up[k])
            if (inner(u))
                level = std::max(level, level_[u] + 1);
        while (level < used_.size() && used_[level] == LEVEL_WIDTH)
            level++;
        return level;
    }

    bool fits(uint32_t k) const
    {
        return open_.size() < size_ && (mode_ != LAYERS || level_for(k) < MOST_LEVELS);
    }

    void put_into_level(uint32_t k)
    {
        level_[k] = level_for(k);
        if (level_[k] >= used_.size())
            used_.resize(level_[k] + 1);
        used_[level_[k]]++;
    }

    void close()
    {
        if (open_.empty())
            return;
        batch b;
        b.graph = acs_sim_graph(run_.machine, 0);
        b.tasks = open_;
        b.nodes = static_cast<uint32_t>(open_.size());
        if (mode_ == KEPT)
            make_kept(b);
        else if (mode_ == LAYERS)
            make_layers(b);
        else
            make_device(b);
        find_order(b);
        batches_.push_back(b);
        open_.clear();
        used_.clear();
    }

    void add_inner_edges(const batch &b, uint32_t k, uint32_t *count)
    {
        for (uint32_t u : run_.prog.dag.up[k])
            if (inner(u)) {
                acs_sim_graph_edge(run_.machine, b.graph, node_[u], node_[k]);
                ++*count;
            }
    }

    void make_kept(batch &b)
    {
        for (uint32_t k : open_) {
            uint32_t edges = 0;
            node_[k] = run_.node(b.graph, k);
            add_inner_edges(b, k, &edges);
            b.roots += edges == 0;
        }
    }

    /*
     * The smallest template of 4, 8, 16 or 32 levels that the batch fits into; a kernel behind each level, never empty.
     */
    void make_layers(batch &b)
    {
        uint32_t levels = 4;
        while (levels < used_.size())
            levels *= 2;
        const acs_sim_kernel head = one_block(uint64_t(SET_NS) * b.nodes);
        uint32_t barrier = acs_sim_graph_node(run_.machine, b.graph, &head, ACS_SIM_NODE_FIXED, nullptr);
        b.roots = 1;
        for (uint32_t level = 0; level < levels; level++) {
            std::vector<uint32_t> nodes;
            for (uint32_t k : open_)
                if (level_[k] == level) {
                    nodes.push_back(run_.node(b.graph, k));
                    acs_sim_graph_edge(run_.machine, b.graph, barrier, nodes.back());
                }
            const acs_sim_kernel join = one_block(UNUSED_NS * (LEVEL_WIDTH - nodes.size()));
            const uint32_t next = acs_sim_graph_node(run_.machine, b.graph, &join, ACS_SIM_NODE_FIXED, nullptr);
            for (uint32_t n : nodes)
                acs_sim_graph_edge(run_.machine, b.graph, n, next);
            if (nodes.empty())
                acs_sim_graph_edge(run_.machine, b.graph, barrier, next);
            barrier = next;
        }
    }

    /*
     * Every op is launched by the one that it waited for longest; roots by the head, through a tree where they are
     * many.
     */
    void make_device(batch &b)
    {
        const acs_sim_kernel head = one_block(uint64_t(SET_NS) * b.nodes), nothing = one_block(0);
        const uint32_t first = acs_sim_graph_node(run_.machine, b.graph, &head, ACS_SIM_NODE_FIXED, nullptr);
        const uint32_t many = static_cast<uint32_t>(std::count_if(open_.begin(), open_.end(), [this](uint32_t k) {
            const auto &up = run_.prog.dag.up[k];
            return std::none_of(up.begin(), up.end(), [this](uint32_t u) { return inner(u); });
        }));
        uint32_t launcher = first, launched = 0;
        b.roots = 1;
        for (uint32_t k : open_) {
            const auto &up = run_.prog.dag.up[k];
            const bool root = std::none_of(up.begin(), up.end(), [this](uint32_t u) { return inner(u); });
            uint32_t edges = 0;
            if (root && many > MOST_DEVICE_LAUNCHES && launched++ % MOST_DEVICE_LAUNCHES == 0) {
                launcher = acs_sim_graph_node(run_.machine, b.graph, &nothing, ACS_SIM_NODE_RELEASED, nullptr);
                acs_sim_graph_edge(run_.machine, b.graph, first, launcher);
            }
            node_[k] = run_.node(b.graph, k, ACS_SIM_NODE_RELEASED);
            add_inner_edges(b, k, &edges);
            if (edges == 0)
                acs_sim_graph_edge(run_.machine, b.graph, launcher, node_[k]);
        }
    }

    /* Batches that this one depends on, newest first; those of device windows and templates follow in one stream. */
    void find_order(batch &b)
    {
        for (uint32_t k : open_)
            for (uint32_t u : run_.prog.dag.up[k])
                if (run_.prog.tasks[u].kind != WAIT && !inner(u))
                    b.behind.push_back(batch_of_[u]);
        std::sort(b.behind.rbegin(), b.behind.rend());
        b.behind.erase(std::unique(b.behind.begin(), b.behind.end()), b.behind.end());
    }

    run &run_;
    const batch_mode mode_;
    const uint32_t size_;
    std::vector<batch> batches_;
    std::vector<uint32_t> open_, batch_of_, node_, level_;
    std::vector<uint32_t> used_; /* places taken, by level */
};

class batch_thread : public thread {
public:
    batch_thread(run &r, batch_mode mode, std::vector<batch> &batches) : thread(r), mode_(mode), batches_(batches)
    {
        for (int s = 0; s < STREAMS; s++)
            streams_.push_back(acs_sim_stream(r.machine, 0));
    }

protected:
    bool decide(uint64_t now) override
    {
        if (waiting_) {
            if (!run_.all_seen(batches_[next_ - 1].wait))
                return false;
            waiting_ = false;
            spend(run_.gpu.host.synchronize);
            return true;
        }
        if (next_ == batches_.size()) {
            handed_over(now);
            return false;
        }
        batch &b = batches_[next_++];
        if (!b.tasks.empty())
            issue(b);
        waiting_ = !b.wait.empty();
        return true;
    }

private:
    enum { STREAMS = 4 };

    /* In the stream of the newest batch that it is behind, which spares a wait; else in the next one. */
    void issue(batch &b)
    {
        const acs_sim_host_costs &h = run_.gpu.host;

        b.stream = b.behind.empty() ? streams_[mode_ == KEPT ? turn_++ % STREAMS : 0] : batches_[b.behind[0]].stream;
        spend(uint64_t(costs.fifo + costs.insert) * b.tasks.size());
        spend(uint64_t(mode_ == KEPT ? h.graph_set_node : h.device_set_node) * b.nodes);
        for (uint32_t other : b.behind) {
            const batch &up = batches_[other];
            if (up.stream != b.stream && up.event != ACS_SIM_NONE)
                spend(h.wait, [this, &up, &b](uint64_t at) { acs_sim_wait(run_.machine, at, b.stream, up.event); });
        }
        const uint64_t nodes = mode_ == KEPT ? b.nodes : 0;
        launching(0, h.graph_launch + uint64_t(h.graph_launch_root) * b.roots + h.graph_launch_node * nodes,
                  [this, &b](uint64_t at) { acs_sim_graph_launch(run_.machine, at, b.stream, b.graph); });
        spend(h.record, [this, &b](uint64_t at) {
            b.event = acs_sim_event(run_.machine);
            acs_sim_record(run_.machine, at, b.stream, b.event);
        });
    }

    const batch_mode mode_;
    std::vector<batch> &batches_;
    std::vector<uint32_t> streams_;
    size_t next_ = 0;
    uint32_t turn_ = 0;
    bool waiting_ = false;
};

class batched : public vehicle {
public:
    batched(batch_mode mode, uint32_t size) : mode_(mode), size_(size) {}
    void begin(run &r) override
    {
        run_ = &r;
        batches_ = cutter(r, mode_, size_).cut();
        thread_ = std::make_unique<batch_thread>(r, mode_, batches_);
        r.wake(*thread_, 0);
    }
    void seen(uint32_t, uint64_t now) override { run_->wake(*thread_, now); }
    uint64_t host_busy() const override { return thread_->busy(); }
    std::string setting() const override { return "batches of " + std::to_string(size_); }
    std::string note() const override { return "graphs launched " + std::to_string(batches_.size()); }

private:
    const batch_mode mode_;
    const uint32_t size_;
    run *run_ = nullptr;
    std::vector<batch> batches_;
    std::unique_ptr<batch_thread> thread_;
};

/* Sizes tried, the fastest counts. */
const uint32_t KEPT_SIZES[] = {32, 64, 128, 256}, TEMPLATE_SIZES[] = {128, 256, 512};

} // namespace

void add_batch_vehicles(std::vector<vehicle_kind> &list)
{
    list.push_back({"kept", "batches of program order through kept graphs of a topology seen before", bench::OURS, 4,
                    [](const program &, int v) { return std::make_unique<batched>(KEPT, KEPT_SIZES[v]); }, nullptr,
                    true});
    list.push_back({"layers", "the level template: up to 32 levels of 16 nodes, set by the device", bench::OURS, 3,
                    [](const program &, int v) { return std::make_unique<batched>(LAYERS, TEMPLATE_SIZES[v]); }});
    list.push_back({"gpu-side", "GPU-side issue: finished kernels launch what they release", bench::OURS, 3,
                    [](const program &, int v) { return std::make_unique<batched>(DEVICE, TEMPLATE_SIZES[v]); }});
}

} // namespace design

/*
 * Owns the shape of a run's graphs: what is a node, which edges there are, where joins pay, and who shares a slot. Called
 * by the graph runners when they prepare. Makes no CUDA call, so that it is tested without a GPU.
 */
#include "graphs_shape.h"

#include <algorithm>
#include <map>

#include "plan.h"

namespace bench {

namespace {

class shaper {
public:
    shaper(const std::vector<op> &ops, const dag &d, bool joins, int slots)
        : ops_(ops), dag_(d), joins_(joins), slots_(static_cast<size_t>(slots)), node_of_(ops.size()),
          calls_(slots_), last_call_(slots_)
    {
        for (const op &o : ops)
            shape_.calls = shape_.calls || o.kind == OP_CALL;
        if (shape_.calls)
            behind_.resize(ops.size() * slots_);
    }

    graph_shape run()
    {
        size_t first = 0;
        for (size_t end : stretches(ops_)) {
            add_stretch(first, end);
            shape_.stretch_end.push_back(shape_.nodes.size());
            first = end;
        }
        return std::move(shape_);
    }

private:
    typedef std::vector<uint32_t> list;

    void add_stretch(size_t first, size_t end)
    {
        std::map<list, uint32_t> group; /* upstream ops: how many ops have just those */

        join_of_.clear();
        std::fill(calls_.begin(), calls_.end(), 0);
        for (size_t k = first; joins_ && k < end; k++)
            if (ops_[k].kind != OP_READ)
                group[inner(k, first)]++;
        for (size_t k = first; k < end; k++) {
            if (ops_[k].kind == OP_READ)
                continue;
            list up = inner(k, first);
            const size_t n = joins_ ? group[up] : 0, m = up.size();
            const int slot = shape_.calls ? take_slot(k, up) : 0;
            const bool joined = n * m > n + m;
            if (joined && up.size() == m) /* one that also follows a call of its slot shares its list with nobody */
                add_behind_join(k, up, slot);
            else
                add_node(k, nodes_of(up), slot);
        }
    }

    /* Upstream ops of op k in its stretch. */
    list inner(size_t k, size_t first) const
    {
        list up;
        for (uint32_t u : dag_.up[k])
            if (u >= first)
                up.push_back(u);
        return up;
    }

    list nodes_of(const list &ops) const
    {
        list nodes;
        for (uint32_t k : ops)
            nodes.push_back(node_of_[k]);
        return nodes;
    }

    uint32_t append(uint32_t op, const list &up, int slot)
    {
        shape_.nodes.push_back({op, static_cast<uint32_t>(shape_.ups.size()), static_cast<uint32_t>(up.size()), slot});
        shape_.ups.insert(shape_.ups.end(), up.begin(), up.end());
        return static_cast<uint32_t>(shape_.nodes.size()) - 1;
    }

    void add_node(size_t k, const list &up, int slot) { node_of_[k] = append(static_cast<uint32_t>(k), up, slot); }

    void add_behind_join(size_t k, const list &up, int slot)
    {
        const auto found = join_of_.find(up);
        uint32_t join;
        if (found != join_of_.end()) {
            join = found->second;
        } else {
            join = append(NODE_JOIN, nodes_of(up), 0);
            join_of_.emplace(up, join);
            shape_.joins++;
        }
        add_node(k, {join}, slot);
    }

    /*
     * The calls of a slot form a chain, so how many of them an op is behind says which ones. A call takes a slot all of
     * whose calls it is behind (the busiest such), else an empty one, else queues behind the slot that was used longest ago.
     */
    int take_slot(size_t k, list &up)
    {
        uint32_t *const mine = &behind_[k * slots_];
        for (uint32_t u : up)
            raise(mine, u);
        if (ops_[k].kind != OP_CALL)
            return 0;
        size_t best = slots_, oldest = 0;
        for (size_t s = 0; s < slots_; s++) {
            if (mine[s] == calls_[s] && (best == slots_ || calls_[s] > calls_[best]))
                best = s;
            if (last_call_[s] < last_call_[oldest])
                oldest = s;
        }
        if (best == slots_) {
            best = oldest;
            up.push_back(last_call_[best]);
            raise(mine, last_call_[best]);
        }
        mine[best] = ++calls_[best];
        last_call_[best] = static_cast<uint32_t>(k);
        shape_.slots = std::max(shape_.slots, static_cast<int>(best) + 1);
        return static_cast<int>(best);
    }

    void raise(uint32_t *mine, uint32_t up) const
    {
        for (size_t s = 0; s < slots_; s++)
            mine[s] = std::max(mine[s], behind_[up * slots_ + s]);
    }

    const std::vector<op> &ops_;
    const dag &dag_;
    const bool joins_;
    const size_t slots_;
    std::vector<uint32_t> node_of_;    /* by op */
    std::map<list, uint32_t> join_of_; /* by upstream ops: the node */
    std::vector<uint32_t> calls_;      /* by slot: in this stretch */
    std::vector<uint32_t> last_call_;  /* by slot */
    std::vector<uint32_t> behind_;     /* per op and slot: how many of the slot's calls it is behind; itself counts */
    graph_shape shape_;
};

} // namespace

graph_shape shape_graphs(const std::vector<op> &ops, const dag &d, bool joins, int slots)
{
    return shaper(ops, d, joins, slots).run();
}

} // namespace bench

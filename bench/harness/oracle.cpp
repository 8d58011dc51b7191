/*
 * Owns the replay of a program with one dependency lost. Called by acs-workloads and its tests, never in a timed region.
 */
#include "oracle.h"

#include <algorithm>

#include "dag.h"
#include "program.h"

namespace bench {

static std::string edge_name(const trace &t, uint32_t from, uint32_t to)
{
    return std::string(op_name(t.ops[from])) + " (op " + std::to_string(from + 1) + ") -> " + op_name(t.ops[to]) +
           " (op " + std::to_string(to + 1) + ")";
}

static void play(program &p, const trace &t, const dag &d, uint32_t from, uint32_t to)
{
    p.reset();
    for (uint32_t k : order_without(d, from, to))
        execute(p.mem(), t.ops[k]);
}

lost_edges lose_each_edge(program &p, uint64_t most, bool decides)
{
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    lost_edges found;

    p.reset();
    const trace t = record(p, decides);
    const dag d = find_dag(t);
    const std::vector<char> right = p.result();
    for (uint32_t to = 0; to < d.up.size(); to++)
        for (uint32_t from : d.up[to])
            if (t.ops[to].kind != OP_READ && t.ops[from].kind != OP_READ)
                edges.emplace_back(from, to);
    found.edges = edges.size();
    found.played = std::min<uint64_t>(most, edges.size());
    for (uint64_t i = 0; i < found.played; i++) {
        const auto edge = edges[i * edges.size() / found.played];
        play(p, t, d, edge.first, edge.second);
        const bool oracle = !p.check().empty(), bits = p.result() != right;
        found.by_oracle += oracle;
        found.by_bits += bits;
        if (oracle || bits)
            continue;
        if (p.spares(t.ops[edge.first], t.ops[edge.second]))
            found.spared++;
        else
            found.missed.push_back(edge_name(t, edge.first, edge.second));
    }
    return found;
}

} // namespace bench

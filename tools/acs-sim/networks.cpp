/*
 * Owns networks as programs for the machine: the bench's own, whose ops are taken down without being run. What the host
 * decides on the way comes from the seed. Called through the list of programs.
 */
#include <cstring>

#include "memory.h"
#include "programs.h"
#include "workload.h"

namespace design {

namespace {

/* Writes ops down. Reads get numbers from -1 to 1, so that each candidate is chosen half of the time. */
class scribe : public bench::sink {
public:
    explicit scribe(uint64_t seed) : seed_(seed)
    {
        trace.reads = std::make_shared<std::deque<acs_segment>>();
    }

    void launch(const bench::op &o) override { trace.ops.push_back(o); }

    void read(void *to, const void *from, size_t bytes) override
    {
        float *const seen = static_cast<float *>(to);
        for (size_t k = 0; k < bytes / sizeof *seen; k++)
            seen[k] = static_cast<float>(2 * bench::random_unit(seed_, drawn_++) - 1);
        trace.reads->push_back(ACS_IN(from, bytes));
        bench::op o = {};
        o.kind = bench::OP_READ;
        o.from = from;
        o.bytes = bytes;
        o.segments = &trace.reads->back();
        o.segment_count = 1;
        trace.ops.push_back(o);
    }

    bench::trace trace;

private:
    const uint64_t seed_;
    uint64_t drawn_ = 0;
};

/*
 * What the bench tells planners of a network's op: 1.5 us, and so much for every 500 blocks, which is how many an H200 runs
 * at once. The 1.5 are the launch's and the hop's, which the machine has of its own.
 */
double told_us(const bench::op &o)
{
    const double waves = (o.grid + 499) / 500;
    return std::max(0.1, (static_cast<double>(o.us) - 1.5) / waves);
}

/*
 * One stream on an H200, us per op, at size normal (workloads.json of bench/results/h200-2026-11-21-b). These kernels last
 * longer than their launches, so it is about what they take one after another.
 */
const struct {
    const char *name;
    double us_per_op;
} measured[] = {{"instanas", 14.52}, {"dynroute", 8.53},  {"condconv", 7.60},
                {"squeezenet", 14.24}, {"nasnet", 8.29}, {"randwire", 7.75}};
/* Of that, what is between kernels: gpu-costs, a hop in one stream with the empty kernel. */
const double HOP_US = 1.41;

/* One inference, as the paper measures. */
bench::trace trace_of(const std::string &name, const std::string &size, uint64_t seed, std::unique_ptr<bench::program> &made,
                      bench::memory &m)
{
    const bench::workload *found = nullptr;
    bench::sizes sizes;

    for (const bench::workload &w : bench::workloads())
        if (name == w.name)
            found = &w;
    bench::require(found != nullptr, "the bench has no such network");
    for (const bench::parameter &p : found->parameters)
        sizes.set(p.name, size == "tiny" ? p.tiny : size == "normal" ? p.normal : p.paper);
    if (sizes.has("images"))
        sizes.set("images", 1);
    made = found->make(m, sizes);
    scribe s(seed);
    made->run(s);
    return std::move(s.trace);
}

/* By how much what the bench tells has to be multiplied for one stream to take what it was measured to take. */
double correction(const std::string &name, uint64_t seed)
{
    bench::memory m(false);
    std::unique_ptr<bench::program> made;
    const bench::trace t = trace_of(name, "normal", seed, made, m);
    double told = 0, per_op = 0;

    for (const bench::op &o : t.ops)
        if (o.kind == bench::OP_KERNEL)
            told += told_us(o) * ((o.grid + 499) / 500);
    for (const auto &row : measured)
        if (name == row.name)
            per_op = row.us_per_op;
    return (per_op - HOP_US) * static_cast<double>(t.ops.size()) / told;
}

} // namespace

program make_network(const program_request &q, const std::string &name)
{
    bench::memory m(false);
    std::unique_ptr<bench::program> made;
    const bench::trace t = trace_of(name, q.size, q.shape.seed, made, m);
    const double us = q.kernel_us, factor = us < 0 ? correction(name, q.shape.seed) : 1;
    program p = from_trace(
        t,
        [us, factor](const bench::op &o) { return static_cast<uint64_t>((us < 0 ? factor * told_us(o) : us) * 1000); },
        ACS_SIM_WITHIN, {});
    p.times = us < 0 ? "the bench's estimates, times what makes one stream take what was measured on an H200"
                     : "given: every block takes as long";
    return p;
}

} // namespace design

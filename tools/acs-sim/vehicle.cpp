/*
 * Owns the list of ways to issue, and what one play is measured by. Called by the command line and the studies.
 */
#include "vehicle.h"

#include <algorithm>

namespace design {

const issue_costs costs;

uint64_t published_check_ns(uint32_t window, uint32_t segments)
{
    /* Rows of the table: windows of 16 and 32, with 6 and 10 segments. Beyond, every pair of segments is compared. */
    const auto at = [segments](double six, double ten) {
        if (segments <= 6)
            return six * segments / 6;
        return segments <= 10 ? six + (ten - six) * (segments - 6) / 4 : ten * segments * segments / 100;
    };
    const double small = at(410, 700), large = at(510, 1640);
    if (window <= 16)
        return static_cast<uint64_t>(small * window / 16);
    if (window <= 32)
        return static_cast<uint64_t>(small + (large - small) * (window - 16) / 16);
    return static_cast<uint64_t>(large * window / 32);
}

const std::vector<vehicle_kind> &vehicle_kinds()
{
    static const std::vector<vehicle_kind> list = [] {
        std::vector<vehicle_kind> all;
        add_stream_vehicles(all);
        add_graph_vehicles(all);
        add_acs_sw(all);
        add_acs_hw(all);
        add_core(all);
        add_chained(all);
        add_batch_vehicles(all);
        return all;
    }();
    return list;
}

const vehicle_kind *find_vehicle(const std::string &name)
{
    for (const vehicle_kind &v : vehicle_kinds())
        if (name == v.name)
            return &v;
    return nullptr;
}

/* Places for blocks taken over all places, from the tasks' own times: what the paper calls achieved occupancy. */
static double occupancy(const acs_sim_gpu &gpu, const program &p, double total_us)
{
    double taken = 0;
    for (const task &t : p.tasks)
        if (t.kind == KERNEL)
            taken += static_cast<double>(t.kernel.ctas) * static_cast<double>(t.kernel.cta_ns) * t.kernel.threads;
    const double places = static_cast<double>(gpu.sm_threads) * gpu.sms * p.devices;
    return total_us > 0 ? taken / places / total_us / 1000 : 0;
}

result play_one(run &r, vehicle &v, const char *name)
{
    result found;
    double busy = 0;

    r.play(v);
    found.name = name;
    found.setting = v.setting();
    found.note = v.note();
    found.wrong = r.wrong();
    found.total_us = static_cast<double>(r.total()) / 1000;
    found.submit_us = static_cast<double>(r.submit()) / 1000;
    found.host_us = static_cast<double>(v.host_busy()) / 1000;
    for (uint32_t d = 0; d < r.prog.devices; d++)
        busy += static_cast<double>(acs_sim_count(r.machine, d).sm_busy_ns);
    if (r.total())
        found.busy = busy / static_cast<double>(r.total()) / r.gpu.sms / r.prog.devices;
    found.waves = occupancy(r.gpu, r.prog, found.total_us);
    return found;
}

result simulate(const acs_sim_gpu &gpu, const program &p, const vehicle_kind &kind)
{
    acs_sim_gpu model = gpu;
    result best;

    best.name = kind.name;
    if (p.devices > 1 && !kind.many_devices) {
        best.left_out = "issues to one device only";
        return best;
    }
    if (!p.recurs && kind.keeps) {
        best.left_out = "no program like this one was seen before";
        return best;
    }
    if (kind.direct) {
        best = kind.direct(gpu, p);
        best.name = kind.name;
        best.waves = occupancy(gpu, p, best.total_us);
        return best;
    }
    if (kind.alter)
        kind.alter(model);
    for (int variant = 0; variant < kind.variants; variant++) {
        run r(model, p);
        r.link_ns = gpu.device.launch_latency;
        const std::unique_ptr<vehicle> v = kind.make(p, variant);
        const result now = play_one(r, *v, kind.name);
        if (variant == 0 || !now.wrong.empty() || now.total_us < best.total_us)
            best = now;
        if (!best.wrong.empty())
            break;
    }
    return best;
}

} // namespace design

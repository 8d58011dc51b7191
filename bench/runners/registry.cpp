/*
 * Owns the list of runners. Called by the benchmark programs; runs nothing itself.
 */
#include "runners.h"
#include "spread.h"

#include <algorithm>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace bench {

int cpu_count()
{
    return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

void pin_thread(const machine &m, int index)
{
    cpu_set_t set;

    if (m.first_cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET(spread_cpu(m.first_cpu, cpu_count(), index), &set);
    require(pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0, "cannot pin a thread to its CPU");
}

const std::vector<runner_kind> &runner_kinds()
{
    static const std::vector<runner_kind> list = [] {
        std::vector<runner_kind> all;
        add_serial(all);
#if BENCH_CUDA
        add_streams(all);
        add_graphs(all);
#endif
        add_acs_sw(all);
        add_openmp(all);
        add_starpu(all);
        add_acs(all);
        return all;
    }();
    return list;
}

std::vector<contestant> make_contestants(const machine &m, const std::vector<std::string> &names, std::string *unknown)
{
    const auto wanted = [&](const runner_kind &k, const std::string &name) {
        return (m.gpu ? k.gpu : k.host) && (name == "all" || name == k.name);
    };
    std::vector<contestant> made;

    unknown->clear();
    for (const std::string &name : names)
        if (std::none_of(runner_kinds().begin(), runner_kinds().end(),
                         [&](const runner_kind &k) { return wanted(k, name); })) {
            *unknown = name;
            return made;
        }
    for (const runner_kind &k : runner_kinds())
        if (std::any_of(names.begin(), names.end(), [&](const std::string &name) { return wanted(k, name); }))
            made.push_back({&k, k.make(m)});
    return made;
}

} // namespace bench

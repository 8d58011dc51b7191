/*
 * Owns the list of runners. Called by the benchmark programs; runs nothing itself.
 */
#include "runners.h"

#include <pthread.h>
#include <sched.h>

namespace bench {

void pin_thread(const machine &m, int index)
{
    cpu_set_t set;

    if (m.first_cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET(m.first_cpu + index, &set);
    require(pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0, "cannot pin a thread to its CPU");
}

const std::vector<runner_kind> &runner_kinds()
{
    static const std::vector<runner_kind> list = [] {
        std::vector<runner_kind> all;
        return all;
    }();
    return list;
}

} // namespace bench

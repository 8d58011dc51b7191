/*
 * Owns the ways `acs` and `acs-*`: the library's own core on the sim backend, as it chooses to issue and by each of its own
 * vehicles. Called through the list of vehicles. Its host threads are the backend's, with what it takes their own work to
 * cost.
 */
#include <algorithm>
#include <cstring>

#include "vehicle.h"

extern "C" {
#include "core_play.h"
}

namespace design {

namespace {

/* The model's number; it has to be as it is listed. */
bool model_number(const acs_sim_gpu &gpu, uint32_t *number)
{
    for (*number = 0; acs_sim_gpu_at(*number); ++*number)
        if (acs_sim_gpu_at(*number) == &gpu)
            return true;
    return false;
}

/* What went by launches and as bundles, where anything did. */
std::string issued(const acs_statistics &s)
{
    static const char *const names[] = {"", "launch", "replay", "resident"};

    if (!s.bundles && !s.bundles_refused)
        return "";
    std::string text = ", " + std::to_string(s.bundles) + " bundles (" + std::to_string(s.bundles_refused) +
                       " refused), ops";
    for (int issue = ACS_ISSUE_LAUNCH; issue < ACS_ISSUE_COUNT; issue++)
        text += std::string(" ") + names[issue] + " " + std::to_string(s.issued_by[issue]);
    return text;
}

template <int ISSUE>
result play_core(const acs_sim_gpu &gpu, const program &p)
{
    std::vector<core_task> tasks;
    core_result played;
    uint32_t number;
    result r;

    if (!model_number(gpu, &number)) {
        r.left_out = "the core runs on the models of the list only";
        return r;
    }
    for (size_t k = 0; k < p.tasks.size(); k++) {
        const task &t = p.tasks[k];
        core_task c = {};
        c.kernel = t.kind == COPY ? copy_kernel(gpu, t) : t.kernel;
        c.type = t.type;
        c.wait = t.kind == WAIT;
        c.up = p.dag.up[k].data();
        c.up_count = static_cast<uint32_t>(p.dag.up[k].size());
        tasks.push_back(c);
    }
    if (!core_play(number, ISSUE, tasks.data(), static_cast<uint32_t>(tasks.size()), &played)) {
        r.wrong = played.text;
        return r;
    }
    if (played.early)
        r.wrong = std::to_string(played.early) + " tasks ended before one that they depend on";
    r.total_us = static_cast<double>(played.total_ns) / 1000;
    r.submit_us = static_cast<double>(played.submit_ns) / 1000;
    r.busy = static_cast<double>(played.counters.sm_busy_ns) / 1000 / r.total_us / gpu.sms;
    r.setting = "up to " + std::to_string(played.statistics.slots_used) + " slots";
    r.note = "waits " + std::to_string(played.statistics.waits_sent) + ", marks " + std::to_string(played.statistics.marks) +
             ", submissions " + std::to_string(played.statistics.submissions) +
             issued(played.statistics);
    return r;
}

} // namespace

void add_core(std::vector<vehicle_kind> &list)
{
    static const struct {
        const char *name, *about;
        result (*play)(const acs_sim_gpu &gpu, const program &p);
    } ways[] = {
        {"acs", "ACS itself: the real core with the options of the environment, on the sim backend", play_core<-1>},
        {"acs-launch", "the same with ACS_ISSUE=launch: a launch for each kernel", play_core<ACS_ISSUE_LAUNCH>},
        {"acs-replay", "ACS_ISSUE=replay: a kept graph for each shape of a bundle", play_core<ACS_ISSUE_REPLAY>},
        {"acs-resident", "ACS_ISSUE=resident: one kernel runs the blocks of all", play_core<ACS_ISSUE_RESIDENT>},
    };
    for (const auto &way : ways) {
        vehicle_kind kind = {};
        kind.name = way.name;
        kind.about = way.about;
        kind.role = bench::OURS;
        kind.direct = way.play;
        list.push_back(kind);
    }
}

} // namespace design

/*
 * Owns the order of measurements. Called by the program for each workload.
 */
#include "mix_contest.h"

#include "progress.h"

#include <algorithm>
#include <chrono>

namespace bench {

static void run_once(mix_way &way, mix_result &r, bool timed)
{
    if (!r.wrong.empty())
        return;
    r.wrong = way.reset();
    if (!r.wrong.empty())
        return;
    const auto begin = std::chrono::steady_clock::now();
    r.wrong = way.run();
    const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    r.exhausted += way.exhausted();
    const std::string results = way.check();
    if (r.wrong.empty())
        r.wrong = results;
    if (timed)
        r.us.push_back(us);
}

std::vector<mix_result> contend(const mix_run &run, const std::vector<mix_way_kind> &kinds, int repetitions)
{
    std::vector<mix_result> results;
    std::vector<std::unique_ptr<mix_way>> ways;
    for (const mix_way_kind &k : kinds) {
        results.push_back({k.name, k.paper, "", {}});
        ways.push_back(k.make());
        run_once(*ways.back(), results.back(), false);
    }
    for (int repetition = 0; repetition < repetitions && (repetition == 0 || !bench_interrupted()); repetition++)
        for (size_t turn = 0; turn < ways.size(); turn++) { /* each repetition begins with another one */
            const size_t k = (turn + static_cast<size_t>(repetition)) % ways.size();
            run_once(*ways[k], results[k], true);
            const double done = repetition + static_cast<double>(turn + 1) / static_cast<double>(ways.size());
            bench_progress_part(done / repetitions, kinds[k].name.c_str());
        }
    for (size_t k = 0; k < ways.size(); k++) {
        results[k].peak = ways[k]->peak_bytes();
        results[k].copied = run.in + run.out + ways[k]->moved_bytes();
    }
    return results;
}

bool is_right(const std::vector<mix_result> &results)
{
    return std::all_of(results.begin(), results.end(),
                       [](const mix_result &r) { return r.wrong.empty() && r.exhausted == 0; });
}

} // namespace bench

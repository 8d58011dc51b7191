/*
 * acs-conco table: latency of one inference with versions for C % of the GPU on R % of it (ConCo, section 4.3, Tables 3, 4).
 */
#include <cstdio>

#include "median.h"
#include "session.h"

namespace variants {

namespace {

using clock_type = std::chrono::steady_clock;

const uint32_t LEVELS[] = {10, 30, 50, 70, 90, 100};
const size_t LEVEL_COUNT = sizeof LEVELS / sizeof *LEVELS;

double latency_us(issuer &by, const std::vector<operation> &ops, const plan &how)
{
    by.drain();
    const auto begin = clock_type::now();
    by.run(0, ops, 0, ops.size(), how, true);
    by.wait(0);
    return 1e6 * seconds_since(begin);
}

/* us[c][r]: times with versions for LEVELS[c] on LEVELS[r]. */
using cells = std::vector<double>[LEVEL_COUNT][LEVEL_COUNT];

void report(const network &n, const cells &us, bench::result_file &file)
{
    bench_progress_hide();
    printf("\n%s: ms of an inference; versions for C %% (rows), run on R %% (columns)\n  C\\R  ", n.label().c_str());
    for (uint32_t level : LEVELS)
        printf(" %6u%%", level);
    printf("\n");
    for (size_t c = 0; c < LEVEL_COUNT; c++) {
        std::vector<bench::entry> entries;
        printf("  %3u%% ", LEVELS[c]);
        for (size_t r = 0; r < LEVEL_COUNT; r++) {
            printf(" %7.3f", bench::median_of(us[c][r]) / 1000);
            entries.push_back({{{"name", "share-" + std::to_string(LEVELS[r])}, {"share", LEVELS[r]}},
                               {{"total_us", us[c][r]}}});
        }
        printf("\n");
        file.row({{"experiment", "table"}, {"network", n.label()}, {"fit", LEVELS[c]}}, entries);
    }
    fflush(stdout);
}

void tell_shares(acs_context *context)
{
    acs_share_info info = {};

    info.size = sizeof info;
    for (uint32_t level : LEVELS)
        if (acs_share_find(context, 0, level, &info) == ACS_OK)
            printf("  %3u %% of the GPU: %u of %u multiprocessors, %u places %s\n", level, info.sms, info.device_sms,
                   info.places, info.reason);
}

void play(session &s, const std::string &name, bench::result_file &file)
{
    network &n = s.find(name, name == "dlrm" ? 2048 : 1, 1);
    const std::unique_ptr<issuer> by = issue_by_acs(s.planned(), 1);
    const int reps = s.options().quick ? 3 : 5 * s.options().repetitions;
    std::vector<plan> plans;
    cells us;

    for (uint32_t fit : LEVELS)
        for (uint32_t share : LEVELS) {
            plans.push_back(s.plan_for(n, {false, {fit, share}}));
            bench_progress_step((name + ": versions").c_str());
        }
    for (int rep = -2; rep < reps && !bench_interrupted(); rep++) { /* two are not counted */
        for (size_t k = 0; k < plans.size(); k++) {
            const double got = latency_us(*by, n.at(0).ops, plans[k]);
            if (rep >= 0)
                us[k / LEVEL_COUNT][k % LEVEL_COUNT].push_back(got);
        }
        bench_progress_step(name.c_str());
    }
    report(n, us, file);
}

} // namespace

int run_table(const settings &options, const std::string &command)
{
    const std::vector<std::string> names = options.network == "all" ? network_names() :
                                           std::vector<std::string>{options.network};
    session s(options);
    bench::result_file file(options.json, "acs-conco", command, true);
    const int runs_of_one = LEVEL_COUNT * LEVEL_COUNT + 2 + (options.quick ? 3 : 5 * options.repetitions);
    bench_progress_begin("acs-conco", static_cast<double>(names.size()) * runs_of_one);

    tell_shares(s.planned());
    for (const std::string &name : names)
        if (!bench_interrupted())
            play(s, name, file);
    return 0;
}

} // namespace variants

/*
 * acs-conco changing: a program whose concurrency changes, which no fixed set of versions fits. Not in the paper.
 */
#include <algorithm>
#include <cstdio>
#include <random>

#include "median.h"
#include "session.h"

namespace variants {

namespace {

using clock_type = std::chrono::steady_clock;

const uint32_t FITS[] = {10, 30, 50, 70, 90, 100};
const unsigned MOST = 32;

/* So many instances work at once; instance k is a resnet-18 or a vgg-19, as k + turn is even or odd. */
struct phase {
    unsigned instances, turn;
};

struct scenario {
    std::string name;
    std::vector<phase> phases;
    bool waits; /* each phase ends before the next begins: concurrency is what the phase says, and no more */
};

/* Each number of instances twice, so that both networks are alone once. */
std::vector<scenario> scenarios(uint64_t seed)
{
    scenario changing = {"changing", {}, false};
    std::mt19937_64 random(seed);

    for (unsigned n = 1; n <= MOST; n *= 2)
        for (unsigned turn = 0; turn < 2; turn++)
            changing.phases.push_back({n, turn});
    for (size_t k = changing.phases.size() - 1; k > 0; k--)
        std::swap(changing.phases[k], changing.phases[random() % (k + 1)]);
    return {changing, {"always 1", {{1, 0}, {1, 1}}, true}, {"always 32", {{MOST, 0}, {MOST, 1}}, true}};
}

class stage {
public:
    explicit stage(session &s) : session_(s)
    {
        networks_[0] = &s.find("resnet-18", 1, MOST);
        networks_[1] = &s.find("vgg-19", 1, MOST);
        streams_ = issue_by_streams(2 * MOST);
        planned_ = issue_by_acs(s.planned(), 2 * MOST);
        online_ = issue_by_acs(s.online(), 2 * MOST);
    }

    issuer *streams() { return streams_.get(); }
    issuer *planned() { return planned_.get(); }
    issuer *online() { return online_.get(); }

    /* A phase has so many inferences, and each instance eight at least. */
    double play_us(issuer &by, const choice &c, const scenario &what, unsigned inferences)
    {
        const plan plans[2] = {session_.plan_for(*networks_[0], c), session_.plan_for(*networks_[1], c)};

        by.drain();
        const auto begin = clock_type::now();
        for (const phase &p : what.phases) {
            for (unsigned n = 0; n < std::max(inferences, 8 * p.instances); n += p.instances)
                round(by, p, plans);
            if (what.waits)
                by.drain();
        }
        by.drain();
        return 1e6 * seconds_since(begin);
    }

private:
    /* One inference of each instance, an operation of each in turn: as programs of their own would be queued. */
    void round(issuer &by, const phase &p, const plan (&plans)[2])
    {
        const size_t most = std::max(networks_[0]->at(0).ops.size(), networks_[1]->at(0).ops.size());
        for (size_t k = 0; k < most; k++)
            for (unsigned i = 0; i < p.instances; i++) {
                const unsigned which = (i + p.turn) % 2;
                const std::vector<operation> &ops = networks_[which]->at(i).ops;
                if (k < ops.size())
                    by.run(which * MOST + i, ops, k, 1, plans[which], false);
            }
    }

    session &session_;
    network *networks_[2];
    std::unique_ptr<issuer> streams_, planned_, online_;
};

struct way {
    std::string name;
    issuer *by;
    choice how;
    bool fixed; /* a version set by ACS, which online is compared with */
    std::vector<double> us;
};

/* All ways, or those that were asked for. */
std::vector<way> ways_of(stage &st, const std::vector<std::string> &only)
{
    std::vector<way> ways = {{"online", st.online(), ONLINE, false, {}},
                             {"streams", st.streams(), {false, {100, 100}}, false, {}}};
    for (uint32_t fit : FITS)
        ways.push_back({"fit-" + std::to_string(fit), st.planned(), {false, {fit, 100}}, true, {}});
    const auto unwanted = [&](const way &w) {
        return !only.empty() && std::find(only.begin(), only.end(), w.name) == only.end();
    };
    ways.erase(std::remove_if(ways.begin(), ways.end(), unwanted), ways.end());
    bench::require(!ways.empty(), "--only names no way");
    return ways;
}

void report(const scenario &what, const std::vector<way> &ways, bench::result_file &file)
{
    std::vector<bench::entry> entries;
    const auto at = std::find_if(ways.begin(), ways.end(), [](const way &w) { return w.name == "online"; });
    const double online = at == ways.end() ? 0 : bench::median_of(at->us);
    double best = 0;

    bench_progress_hide();
    printf("\n%s\n  %-10s %12s %16s\n", what.name.c_str(), "way", "ms", "online is faster");
    for (const way &w : ways) {
        const double us = bench::median_of(w.us);
        if (w.fixed && (best <= 0 || us < best))
            best = us;
        printf("  %-10s %12.2f %16.3f\n", w.name.c_str(), us / 1000, online > 0 ? us / online : 0);
        entries.push_back({{{"name", w.name}, {"over_online", online > 0 ? us / online : 0}}, {{"total_us", w.us}}});
    }
    if (online > 0 && best > 0)
        printf("  online takes %.3f times as long as the best fixed set\n", online / best);
    fflush(stdout);
    file.row({{"experiment", "changing"}, {"scenario", what.name}, {"online_over_best", best > 0 ? online / best : 0}},
             entries);
}

} // namespace

int run_changing(const settings &options, const std::string &command)
{
    session s(options);
    bench::result_file file(options.json, "acs-conco", command, true);
    stage st(s);
    const unsigned inferences = MOST;
    const int reps = options.quick ? 2 : options.repetitions;
    const std::vector<scenario> all = scenarios(options.seed);
    bench_progress_begin("acs-conco", static_cast<double>(all.size() * ways_of(st, options.only).size()) * (reps + 1));

    for (const scenario &what : all) {
        std::vector<way> ways = ways_of(st, options.only);
        for (int rep = -1; rep < reps && !bench_interrupted(); rep++) /* one is not counted */
            for (size_t turn = 0; turn < ways.size(); turn++) {
                way &w = ways[(turn + static_cast<size_t>(rep + 1)) % ways.size()];
                const double us = st.play_us(*w.by, w.how, what, inferences);
                if (rep >= 0)
                    w.us.push_back(us);
                bench_progress_step((what.name + ", " + w.name).c_str());
            }
        report(what, ways, file);
    }
    return 0;
}

} // namespace variants

/*
 * acs-conco models: the mixes of Table 5 with the A100's numbers of requests (ConCo, section 4.5, Figure 10).
 */
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "median.h"
#include "serve.h"

namespace variants {

namespace {

struct row {
    const char *first;
    const char *second; /* NULL: one model */
    unsigned most;      /* p of the A100 */
    int first_batch, second_batch;
};

const row rows[] = {
    {"bert-small", nullptr, 20, 1, 0},     {"bert-small", nullptr, 40, 1, 0},     {"dlrm", nullptr, 20, 512, 0},
    {"dlrm", nullptr, 40, 512, 0},         {"dlrm", nullptr, 20, 1024, 0},        {"dlrm", nullptr, 40, 1024, 0},
    {"dlrm", nullptr, 20, 2048, 0},        {"dlrm", nullptr, 40, 2048, 0},        {"resnet-18", nullptr, 20, 1, 0},
    {"resnet-18", nullptr, 40, 1, 0},      {"vgg-19", nullptr, 20, 1, 0},         {"vgg-19", nullptr, 30, 1, 0},
    {"bert-small", "dlrm", 20, 1, 512},    {"bert-small", "dlrm", 20, 1, 1024},   {"bert-small", "dlrm", 20, 1, 2048},
    {"resnet-18", "bert-small", 20, 1, 1}, {"resnet-18", "dlrm", 20, 1, 512},     {"resnet-18", "dlrm", 20, 1, 1024},
    {"resnet-18", "dlrm", 20, 1, 2048},    {"resnet-18", "vgg-19", 15, 1, 1},     {"vgg-19", "bert-small", 15, 1, 1},
    {"vgg-19", "dlrm", 15, 1, 512},        {"vgg-19", "dlrm", 15, 1, 1024},       {"vgg-19", "dlrm", 15, 1, 2048},
};

/* Seconds of a run that counts, and of one that a search looks at. */
const double RUN_S = 0.12, TRIED_S = 0.025;

struct way {
    std::string name;
    issuer *by;
    std::vector<choice> choices;
    std::string left_out;
    std::vector<double> per_second, latency_us;
};

double percentile(std::vector<double> values, double part)
{
    if (values.empty())
        return 0;
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

class mix_run {
public:
    mix_run(session &s, const row &r) : session_(s)
    {
        mix_.most = r.most;
        mix_.networks.push_back(&s.find(r.first, r.first_batch, r.most));
        if (r.second)
            mix_.networks.push_back(&s.find(r.second, r.second_batch, r.most));
        streams_ = issue_by_streams(mix_.slots());
        planned_ = issue_by_acs(s.planned(), mix_.slots());
        online_ = issue_by_acs(s.online(), mix_.slots());
    }

    size_t models() const { return mix_.networks.size(); }
    std::vector<choice> same(const choice &c) const { return std::vector<choice>(models(), c); }

    served play(issuer &by, const std::vector<choice> &choices, double seconds)
    {
        std::vector<plan> plans;
        const double wanted = seconds * rate_;
        const size_t least = seconds > TRIED_S ? 3 * mix_.most : (mix_.most + 1) / 2 * 2;

        for (size_t k = 0; k < models(); k++)
            plans.push_back(session_.plan_for(*mix_.networks[k], choices[k]));
        return serve(mix_, by, plans, std::max(least, static_cast<size_t>(wanted) / models() * models()));
    }

    /* How many requests a run has follows from the first baseline's speed. */
    void calibrate()
    {
        for (network *n : mix_.networks)
            for (unsigned number = 1; number <= n->operators(); number++)
                session_.measure(n->sample(number));
        const std::vector<choice> alone = same({false, {100, 100}});
        (void)play(*planned_, alone, 0);
        rate_ = play(*planned_, alone, 0).per_second;
    }

    std::vector<way> ways(const std::string &text)
    {
        const bool quick = session_.options().quick;
        const mix_function run = [&](const std::vector<choice> &choices) {
            return play(*planned_, choices, TRIED_S).per_second;
        };
        std::vector<std::string> names;
        std::string why;

        for (const network *n : mix_.networks)
            names.push_back(n->label() + ".of-" + text);
        const std::vector<choice> alone = same({false, {100, 100}});
        std::vector<way> all = {{"streams", streams_.get(), alone, "", {}, {}},
                                {"baseline-1", planned_.get(), alone, "", {}, {}}};

        if (wanted("baseline-2"))
            all.push_back({"baseline-2", planned_.get(), best_shares(models(), run, quick), "", {}, {}});
        if (wanted("conco")) {
            const std::vector<choice> conco = plan_mix(session_, names, run,
                                                        static_cast<uint32_t>((quick ? 12 : 24) * models()), why);
            all.push_back({"conco", planned_.get(), conco, why, {}, {}});
        }
        if (wanted("online"))
            all.push_back({"online", online_.get(), same(ONLINE), "", {}, {}});
        for (uint32_t fit = 10; fit < 100 && !session_.options().ways.empty(); fit += 10)
            if (wanted("fit-" + std::to_string(fit)))
                all.push_back({"fit-" + std::to_string(fit), planned_.get(), same({false, {fit, 100}}), "", {}, {}});
        return all;
    }

private:
    bool wanted(const std::string &name) const
    {
        const std::vector<std::string> &ways = session_.options().ways;
        return ways.empty() || std::find(ways.begin(), ways.end(), name) != ways.end();
    }

    session &session_;
    mix mix_;
    std::unique_ptr<issuer> streams_, planned_, online_;
    double rate_ = 0; /* requests per second */
};

std::string label(const row &r)
{
    const auto one = [](const char *name, int batch) {
        return std::string(name) + (batch > 1 ? "-" + std::to_string(batch) : "");
    };
    return one(r.first, r.first_batch) + (r.second ? " + " + one(r.second, r.second_batch) : "") + ", " +
           std::to_string(r.most) + " in flight";
}

double speed(const way &w)
{
    return bench::median_of(w.per_second);
}

double over(const std::vector<way> &ways, const way &w, const char *name)
{
    for (const way &other : ways)
        if (other.name == name && speed(other) > 0)
            return speed(w) / speed(other);
    return 0;
}

/* Ratios of all rows, by the way's place. */
struct summary {
    std::vector<std::string> names;
    std::vector<std::vector<double>> over_1, over_2;
};

void report(size_t number, const row &r, const std::vector<way> &ways, summary &all, bench::result_file &file)
{
    std::vector<bench::entry> entries;

    bench_progress_hide();
    printf("\n%zu: %s\n  %-11s %12s %10s %10s %8s %8s   %s\n", number, label(r).c_str(), "way", "requests/s", "median us",
           "p99 us", "over b1", "over b2", "fit/share in percent");
    all.names.resize(ways.size());
    all.over_1.resize(ways.size());
    all.over_2.resize(ways.size());
    for (size_t k = 0; k < ways.size(); k++) {
        const way &w = ways[k];
        const double one = over(ways, w, "baseline-1"), two = over(ways, w, "baseline-2");
        const double median = percentile(w.latency_us, 0.5), late = percentile(w.latency_us, 0.99);
        all.names[k] = w.name;
        if (w.per_second.empty()) {
            printf("  %-11s left out: %s\n", w.name.c_str(), w.left_out.c_str());
        } else {
            printf("  %-11s %12.1f %10.0f %10.0f %8.3f %8.3f   %s\n", w.name.c_str(), speed(w), median, late, one, two,
                   text_of(w.choices).c_str());
            all.over_1[k].push_back(one);
            all.over_2[k].push_back(two);
        }
        entries.push_back({{{"name", w.name}, {"setting", text_of(w.choices)}, {"left_out", w.left_out},
                            {"median_us", median}, {"p99_us", late}, {"over_1", one}, {"over_2", two}},
                           {{"requests_per_s", w.per_second}}});
    }
    fflush(stdout);
    file.row({{"experiment", "models"}, {"index", number}, {"mix", label(r)}, {"in_flight", r.most}}, entries);
}

void play(session &s, size_t number, const row &r, summary &all, bench::result_file &file)
{
    const bool quick = s.options().quick;
    const int reps = quick ? 1 : s.options().repetitions;
    mix_run run(s, r);

    run.calibrate();
    std::vector<way> ways = run.ways(std::to_string(number));
    bench_progress_step((label(r) + ": settings found").c_str());
    for (way &w : ways)
        if (!w.choices.empty())
            (void)run.play(*w.by, w.choices, quick ? TRIED_S : RUN_S); /* warm; online tries versions */
    for (int rep = 0; rep < reps && !bench_interrupted(); rep++)
        for (size_t turn = 0; turn < ways.size(); turn++) {
            way &w = ways[(turn + static_cast<size_t>(rep)) % ways.size()];
            if (w.choices.empty())
                continue;
            const served got = run.play(*w.by, w.choices, quick ? TRIED_S : RUN_S);
            w.per_second.push_back(got.per_second);
            w.latency_us.insert(w.latency_us.end(), got.latency_us.begin(), got.latency_us.end());
        }
    bench_progress_step(label(r).c_str());
    report(number, r, ways, all, file);
}

double mean_of(const std::vector<double> &ratios)
{
    double sum = 0;
    for (double r : ratios)
        sum += std::log(r);
    return ratios.empty() ? 0 : std::exp(sum / static_cast<double>(ratios.size()));
}

double best_of(const std::vector<double> &ratios)
{
    return ratios.empty() ? 0 : *std::max_element(ratios.begin(), ratios.end());
}

void print_summary(const summary &all, bench::result_file &file)
{
    std::vector<bench::entry> entries;

    printf("\nthroughput over baseline 1 and 2, geometric mean (best)\n");
    for (size_t k = 0; k < all.names.size(); k++) {
        printf("  %-11s %.3f (%.3f)  %.3f (%.3f)\n", all.names[k].c_str(), mean_of(all.over_1[k]), best_of(all.over_1[k]),
               mean_of(all.over_2[k]), best_of(all.over_2[k]));
        entries.push_back({{{"name", all.names[k]}, {"mean_over_1", mean_of(all.over_1[k])},
                            {"best_over_1", best_of(all.over_1[k])}, {"mean_over_2", mean_of(all.over_2[k])},
                            {"best_over_2", best_of(all.over_2[k])}},
                           {}});
    }
    printf("  the paper's ConCo, on an A100: up to 1.12 times baseline 2\n");
    file.row({{"experiment", "models, all"}}, entries);
}

} // namespace

int run_models(const settings &options, const std::string &command)
{
    std::vector<size_t> chosen;

    for (size_t k = 1; k <= sizeof rows / sizeof *rows; k++)
        if (options.only.empty() || std::count(options.only.begin(), options.only.end(), std::to_string(k)) > 0)
            chosen.push_back(k);
    bench::require(!chosen.empty(), "--only: rows are 1 to 24");
    session s(options);
    summary all;
    bench::result_file file(options.json, "acs-conco", command, true);
    bench_progress_begin("acs-conco", 2.0 * static_cast<double>(chosen.size()));
    for (size_t number : chosen)
        if (!bench_interrupted())
            play(s, number, rows[number - 1], all, file);
    print_summary(all, file);
    return 0;
}

} // namespace variants

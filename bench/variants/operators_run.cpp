/*
 * acs-conco operators: two operators, each run again and again by some instances at once (ConCo, section 4.4, Table 2).
 */
#include <algorithm>
#include <cstdio>

#include "median.h"
#include "session.h"

namespace variants {

namespace {

using clock_type = std::chrono::steady_clock;

struct side {
    const char *network;
    int batch;
    unsigned number, instances;
};

struct row {
    side sides[2];
    double reduce_1, reduce_2; /* the paper's, in percent; 0: not in the paper */
};

/* Table 2, A100 80 GB, in its order. */
const row rows[] = {
    {{{"resnet-18", 1, 22, 10}, {"bert-small", 1, 6, 10}}, 69.85, 11.91},
    {{{"vgg-19", 1, 9, 5}, {"bert-small", 1, 6, 5}}, 52.18, 11.38},
    {{{"vgg-19", 1, 15, 5}, {"bert-small", 1, 3, 5}}, 33.08, 8.79},
    {{{"dlrm", 1024, 5, 1}, {"bert-small", 1, 3, 5}}, 32.05, 14.68},
    {{{"vgg-19", 1, 15, 5}, {"bert-small", 1, 6, 5}}, 31.04, 22.44},
    {{{"dlrm", 1024, 2, 1}, {"bert-small", 1, 3, 5}}, 30.23, 9.36},
    {{{"dlrm", 1024, 5, 1}, {"bert-small", 1, 4, 5}}, 26.86, 3.64},
    {{{"resnet-18", 1, 14, 10}, {"bert-small", 1, 6, 10}}, 22.35, 6.44},
    {{{"dlrm", 1024, 2, 1}, {"bert-small", 1, 6, 5}}, 19.99, 19.61},
    {{{"resnet-18", 1, 22, 5}, {"bert-small", 1, 6, 5}}, 18.60, 8.12},
    {{{"resnet-18", 1, 22, 10}, {"vgg-19", 1, 9, 10}}, 17.11, 5.25},
};

/* One row at work. Slots of the first side come first. */
class pair_run {
public:
    pair_run(session &s, const row &r) : session_(s), row_(r)
    {
        for (int k = 0; k < 2; k++) {
            const side &at = r.sides[k];
            networks_[k] = &s.find(at.network, at.batch, at.instances);
            const std::vector<operation> &ops = networks_[k]->at(0).ops;
            while (place_[k] < ops.size() && ops[place_[k]].number != at.number)
                place_[k]++;
            bench::require(place_[k] < ops.size(), "a network has no operator with this number");
        }
        streams_ = issue_by_streams(slots());
        planned_ = issue_by_acs(s.planned(), slots());
        online_ = issue_by_acs(s.online(), slots());
    }

    unsigned slots() const { return row_.sides[0].instances + row_.sides[1].instances; }

    const operation &operation_of(int k) const { return networks_[k]->at(0).ops[place_[k]]; }

    /** Job completion time in us. */
    double jct(issuer &by, const std::vector<choice> &choices, unsigned times)
    {
        const plan plans[2] = {of(0, choices[0]), of(1, choices[1])};
        const unsigned most = std::max(row_.sides[0].instances, row_.sides[1].instances);

        by.drain();
        const auto begin = clock_type::now();
        for (unsigned n = 0; n < times; n++)
            for (unsigned i = 0; i < most; i++)
                for (int k = 0; k < 2; k++)
                    if (i < row_.sides[k].instances)
                        by.run(k * row_.sides[0].instances + i, networks_[k]->at(i).ops, place_[k], 1, plans[k], false);
        by.drain();
        return 1e6 * seconds_since(begin);
    }

    issuer &streams() { return *streams_; }
    issuer &planned() { return *planned_; }
    issuer &online() { return *online_; }

private:
    /* Only this operator's version is asked for. */
    plan of(int k, const choice &c)
    {
        const size_t count = networks_[k]->at(0).ops.size();
        plan one, p;

        session_.plan_one(operation_of(k), c, one);
        p.attributes.resize(count, one.attributes[0]);
        p.numbers.resize(count, one.numbers[0]);
        return p;
    }

    session &session_;
    const row &row_;
    network *networks_[2];
    size_t place_[2] = {0, 0};
    std::unique_ptr<issuer> streams_, planned_, online_;
};

struct way {
    const char *name;
    issuer *by;
    std::vector<choice> choices;
    std::string left_out;
    std::vector<double> us;
};

std::string label(const row &r)
{
    std::string text;
    for (const side &s : r.sides)
        text += (text.empty() ? "" : " + ") + std::to_string(s.instances) + " x " + s.network +
                (s.batch > 1 ? "-" + std::to_string(s.batch) : "") + ":" + std::to_string(s.number);
    return text;
}

std::vector<way> ways_of(session &s, pair_run &pair, const row &r, unsigned times)
{
    const choice alone = {false, {100, 100}};
    const mix_function run = [&](const std::vector<choice> &choices) {
        return 1e6 / pair.jct(pair.planned(), choices, times);
    };
    std::vector<std::string> names;
    std::string why;

    for (const side &at : r.sides)
        names.push_back(std::string(at.network) + "-" + std::to_string(at.batch) + "." + std::to_string(at.number) + "." +
                        std::to_string(at.instances));
    s.measure(pair.operation_of(0));
    s.measure(pair.operation_of(1));
    (void)pair.jct(pair.planned(), {alone, alone}, times);
    const std::vector<choice> shares = best_shares(2, run, s.options().quick);
    const std::vector<choice> conco = plan_mix(s, names, run, s.options().quick ? 20 : 0, why);
    return {{"streams", &pair.streams(), {alone, alone}, "", {}},
            {"baseline-1", &pair.planned(), {alone, alone}, "", {}},
            {"baseline-2", &pair.planned(), shares, "", {}},
            {"conco", &pair.planned(), conco, why, {}},
            {"online", &pair.online(), {ONLINE, ONLINE}, "", {}}};
}

const way *named(const std::vector<way> &ways, const char *name)
{
    for (const way &w : ways)
        if (std::string(name) == w.name && !w.us.empty())
            return &w;
    return nullptr;
}

/* By how many percent `w` takes less time than the way with this name. */
double reduce(const std::vector<way> &ways, const way &w, const char *name)
{
    const way *const other = named(ways, name);
    return other && !w.us.empty() ? 100 * (1 - bench::median_of(w.us) / bench::median_of(other->us)) : 0;
}

void report(const row &r, pair_run &pair, const std::vector<way> &ways, unsigned times, bench::result_file &file)
{
    std::vector<bench::entry> entries;

    bench_progress_hide();
    printf("\n%s, %u times each\n  %s; %s\n", label(r).c_str(), times, pair.operation_of(0).name.c_str(),
           pair.operation_of(1).name.c_str());
    printf("  %-11s %12s %9s %9s   %s\n", "way", "JCT us", "reduce 1", "reduce 2", "fit/share in percent");
    for (const way &w : ways) {
        const double one = reduce(ways, w, "baseline-1"), two = reduce(ways, w, "baseline-2");
        if (w.us.empty())
            printf("  %-11s left out: %s\n", w.name, w.left_out.c_str());
        else
            printf("  %-11s %12.0f %8.2f%% %8.2f%%   %s\n", w.name, bench::median_of(w.us), one, two,
                   text_of(w.choices).c_str());
        entries.push_back({{{"name", w.name}, {"setting", text_of(w.choices)}, {"left_out", w.left_out},
                            {"reduce_1", one}, {"reduce_2", two}},
                           {{"total_us", w.us}}});
    }
    if (r.reduce_1 > 0)
        printf("  the paper's ConCo, on an A100: %.2f%% %.2f%%\n", r.reduce_1, r.reduce_2);
    fflush(stdout);
    file.row({{"experiment", "operators"}, {"pair", label(r)}, {"first", pair.operation_of(0).name},
              {"second", pair.operation_of(1).name}, {"times", times}, {"paper_reduce_1", r.reduce_1},
              {"paper_reduce_2", r.reduce_2}},
             entries);
}

void play(session &s, const row &r, bench::result_file &file)
{
    const unsigned times = s.options().quick ? 100 : 500;
    pair_run pair(s, r);
    std::vector<way> ways = ways_of(s, pair, r, times / 5);
    const int reps = s.options().quick ? 2 : s.options().repetitions;

    bench_progress_step((label(r) + ": settings found").c_str());
    for (way &w : ways)
        if (!w.choices.empty())
            (void)pair.jct(*w.by, w.choices, times); /* warm; online tries versions */
    for (int rep = 0; rep < reps && !bench_interrupted(); rep++)
        for (size_t turn = 0; turn < ways.size(); turn++) {
            way &w = ways[(turn + static_cast<size_t>(rep)) % ways.size()];
            if (!w.choices.empty())
                w.us.push_back(pair.jct(*w.by, w.choices, times));
        }
    bench_progress_step(label(r).c_str());
    report(r, pair, ways, times, file);
}

/* "resnet-18:22,bert-small:6,10,10"; a network may have "@batch" behind its name. */
bool parse_pair(const std::string &text, std::string (&names)[2], row &r)
{
    const std::vector<std::string> parts = bench::split(text, ',');
    if (parts.size() != 4)
        return false;
    for (size_t k = 0; k < 2; k++) {
        const std::vector<std::string> words = bench::split(parts[k], ':'), name = bench::split(words[0], '@');
        if (words.size() != 2)
            return false;
        names[k] = name[0];
        r.sides[k] = {names[k].c_str(), name.size() > 1 ? atoi(name[1].c_str()) : 1,
                      static_cast<unsigned>(atoi(words[1].c_str())), static_cast<unsigned>(atoi(parts[k + 2].c_str()))};
        if (r.sides[k].batch < 1 || r.sides[k].number < 1 || r.sides[k].instances < 1)
            return false;
    }
    return true;
}

} // namespace

int run_operators(const settings &options, const std::string &command)
{
    std::vector<row> chosen;
    std::string names[2];
    row own = {};

    if (!options.pair.empty()) {
        bench::require(parse_pair(options.pair, names, own), "--pair: as in resnet-18:22,bert-small:6,10,10");
        chosen.push_back(own);
    }
    for (size_t k = 0; options.pair.empty() && k < sizeof rows / sizeof *rows; k++)
        if (options.only.empty() || std::count(options.only.begin(), options.only.end(), std::to_string(k + 1)) > 0)
            chosen.push_back(rows[k]);
    bench::require(!chosen.empty(), "--only: rows are 1 to 11");
    session s(options);
    bench::result_file file(options.json, "acs-conco", command, true);
    bench_progress_begin("acs-conco", 2.0 * static_cast<double>(chosen.size()));
    for (const row &r : chosen)
        if (!bench_interrupted())
            play(s, r, file);
    return 0;
}

} // namespace variants

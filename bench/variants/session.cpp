/*
 * Owns contexts, networks and the times of versions. Used by one thread.
 */
#include "session.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "acs_context.h"

namespace variants {

using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point begin)
{
    return std::chrono::duration<double>(clock_type::now() - begin).count();
}

session::session(const settings &s) : settings_(s), memory_(true), tensors_(&memory_, s.seed)
{
    declare_versions();
    allow_shared_memory();
}

session::~session()
{
    (void)acs_close(planned_);
    (void)acs_close(online_);
}

/*
 * Parts that recur are not looked for: with tens of instances that come in any order, replays of one shape wait for each
 * other, in all ways alike (bench/experiments, variants-2026-11-27).
 */
acs_options session::options_of_contexts() const
{
    acs_options o = bench::acs_options_for(settings_.where());
    o.repeats = settings_.repeats ? ACS_REPEATS_AUTO : ACS_REPEATS_NAMED;
    o.window = static_cast<int64_t>(settings_.window); /* as many ops as the requests in flight have */
    o.fifo = std::max(o.fifo, o.window);
    return o;
}

acs_context *session::planned()
{
    if (!planned_) {
        acs_options o = options_of_contexts();
        o.tune = ACS_TUNE_MIX;
        planned_ = bench::acs_open_for(settings_.where(), o);
    }
    return planned_;
}

acs_context *session::online()
{
    if (!online_) {
        acs_options o = options_of_contexts();
        online_ = bench::acs_open_for(settings_.where(), o);
    }
    return online_;
}

network &session::find(const std::string &name, int batch, size_t instances)
{
    const std::string key = name + "-" + std::to_string(batch);
    std::unique_ptr<network> &n = networks_[key];

    if (!n)
        n.reset(new network(name, batch, tensors_));
    n->need(instances);
    for (size_t &ran = ran_[key]; ran < instances; ran++)
        for (const operation &o : n->at(ran).ops)
            launch_plain(o, fitting(o)[0], nullptr);
    memory_.wait();
    return *n;
}

/* Times every version that fits on this part of the GPU. */
unsigned session::search(const operation &o, uint32_t percent)
{
    unsigned best = 0;
    double best_us = 0;

    for (unsigned number : fitting(o)) {
        launch_room room;
        const acs_launch_params launch = launch_of(o, ACS_VARIANT(number), room);
        acs_measure_params how = {};
        acs_measured measured = {};
        how.size = sizeof how;
        how.share = percent == 100 ? 0 : percent;
        measured.size = sizeof measured;
        bench::require(acs_measure(planned(), &launch, &how, &measured) == ACS_OK,
                       bench::acs_error_text("acs_measure").c_str());
        if (measured.share_ignored && !told_) {
            printf("the GPU cannot be divided: shares have no effect\n");
            told_ = true;
        }
        if (best_us <= 0 || measured.us < best_us) {
            best = number;
            best_us = measured.us;
        }
    }
    return best;
}

void session::measure(const operation &o)
{
    for (uint32_t percent = 10; percent <= 100 && !settings_.library_fit && !bench_interrupted(); percent += 10)
        (void)best(o, percent);
}

unsigned session::best(const operation &o, uint32_t wanted)
{
    const uint32_t percent = std::min(std::max((wanted + 5) / 10 * 10, 10u), 100u);
    const auto same = [&](const known &k) { return k.family == o.family && memcmp(&k.p, &o.p, sizeof o.p) == 0; };
    auto place = std::find_if(known_.begin(), known_.end(), same);

    if (place == known_.end())
        place = known_.insert(known_.end(), known{o.family, o.p, {}});
    const auto found = place->best.find(percent);
    return found != place->best.end() ? found->second : place->best[percent] = search(o, percent);
}

void session::plan_one(const operation &o, const choice &c, plan &to)
{
    const bool pinned = !c.online && c.setting.fit != 0;
    /* A share of 100 % is none: so bundles are as possible as they are without shares. */
    const bool shared = !c.online && c.setting.share > 0 && c.setting.share < 100;
    acs_attributes a = shared ? ACS_SHARE(c.setting.share) : acs_no_attributes();
    const unsigned number = pinned && !settings_.library_fit ? best(o, c.setting.fit) : 0;

    if (pinned && settings_.library_fit)
        a.fit = static_cast<uint8_t>(c.setting.fit);
    else if (pinned)
        a.variant = static_cast<uint8_t>(number + 1);
    to.attributes.push_back(a);
    to.numbers.push_back(number);
}

plan session::plan_for(network &n, const choice &c)
{
    plan p;

    for (const operation &o : n.at(0).ops)
        plan_one(o, c, p);
    return p;
}

std::string text_of(const std::vector<choice> &choices)
{
    std::string text;

    for (const choice &c : choices)
        text += (text.empty() ? "" : ", ") + (c.online ? std::string("online") :
                std::to_string(c.setting.fit) + "/" + std::to_string(c.setting.share));
    return text;
}

namespace {

struct mix_call {
    const mix_function *run;
    size_t models;
};

double run_mix(void *user, const acs_mix_setting *list)
{
    const mix_call &call = *static_cast<const mix_call *>(user);
    std::vector<choice> choices;

    for (size_t k = 0; k < call.models; k++)
        choices.push_back({false, list[k]});
    return bench_interrupted() ? 0 : (*call.run)(choices);
}

} // namespace

std::vector<choice> plan_mix(session &s, const std::vector<std::string> &names, const mix_function &run, uint32_t runs,
                             std::string &why)
{
    std::vector<acs_mix_model> models;
    std::vector<acs_mix_setting> best(names.size());
    mix_call call = {&run, names.size()};
    acs_mix_params how = {};
    std::vector<choice> choices;

    for (const std::string &name : names)
        models.push_back(acs_mix_model{name.c_str(), 1});
    how.size = sizeof how;
    how.runs = runs;
    how.seed = s.options().seed;
    if (acs_mix_plan(s.planned(), models.data(), models.size(), run_mix, &call, &how, best.data(), nullptr) != ACS_OK) {
        why = bench::acs_error_text("acs_mix_plan");
        return choices;
    }
    for (const acs_mix_setting &setting : best)
        choices.push_back({false, setting});
    return choices;
}

std::vector<choice> best_shares(size_t models, const mix_function &run, bool quick)
{
    std::vector<choice> best(models, choice{false, {100, 100}});
    double most = run(best);

    for (size_t turn = 0; turn < (models > 1 ? models + 1 : 1); turn++)
        for (uint32_t share = quick ? 20 : 10; share <= 100; share += quick ? 20 : 10) {
            std::vector<choice> tried = best;
            tried[turn % models].setting.share = share;
            const double got = share == best[turn % models].setting.share || bench_interrupted() ? 0 : run(tried);
            if (got > most) {
                most = got;
                best = tried;
            }
        }
    return best;
}

} // namespace variants

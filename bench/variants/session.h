/*
 * What the experiments of acs-conco share: options, networks, contexts, and which version is the best one on a
 * part of the GPU.
 */
#ifndef VARIANTS_SESSION_H
#define VARIANTS_SESSION_H

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "contest.h"
#include "issue.h"
#include "networks.h"
#include "progress.h"
#include "report.h"

namespace variants {

struct settings : bench::measuring {
    uint64_t seed = 1;
    bool quick = false;
    bool library_fit = false; /* versions for a share are picked by attributes.fit, not by the session's own times */
    uint64_t window = 2048;    /* of contexts */
    bool repeats = false;      /* contexts look for parts that recur (ACS_REPEATS=auto) */
    bool times = false;       /* check: times of versions, too */
    std::vector<std::string> only;
    std::vector<std::string> ways; /* models: these ways, and fit-10 to fit-90, without searches that they do not need */
    std::string network = "resnet-18", pair;
};

double seconds_since(std::chrono::steady_clock::time_point begin);

/** The setting of a model's launches, or the runtime's own choice. */
struct choice {
    bool online;             /* nothing is set: the runtime picks each version */
    acs_mix_setting setting; /* else */
};
const choice ONLINE = {true, {0, 100}};

class session {
public:
    explicit session(const settings &s);
    ~session();
    session(const session &) = delete;
    session &operator=(const session &) = delete;

    const settings &options() const { return settings_; }
    /** The network with so many instances; those that are new have been run once. */
    network &find(const std::string &name, int batch, size_t instances);
    /** For ways that set versions and shares; ACS_TUNE=mix lets it search for plans. */
    acs_context *planned();
    /** For the way that sets nothing. A context of its own, so that it learns from its own launches alone. */
    acs_context *online();

    /** What one operation gets, and what each operation of an inference gets. */
    void plan_one(const operation &o, const choice &c, plan &to);
    plan plan_for(network &n, const choice &c);
    /** The number of the operation's best version on this percentage of the GPU, in steps of ten, by acs_measure. */
    unsigned best(const operation &o, uint32_t percent);
    /** Finds those for all percentages, before a search asks for them: acs_measure waits for all ops. */
    void measure(const operation &o);

private:
    acs_options options_of_contexts() const;
    struct known {
        family_id family;
        problem p;
        std::map<uint32_t, unsigned> best; /* by percentage */
    };
    unsigned search(const operation &o, uint32_t percent);

    settings settings_;
    bench::memory memory_;
    tensors tensors_;
    std::map<std::string, std::unique_ptr<network>> networks_;
    std::map<std::string, size_t> ran_; /* instances that have been run once */
    std::vector<known> known_;
    acs_context *planned_ = nullptr, *online_ = nullptr;
    bool told_ = false;
};

/** "25 %, 60 %": fit and share of each model. */
std::string text_of(const std::vector<choice> &choices);

/** Runs a mix with settings for a while; see acs_mix_run. */
using mix_function = std::function<double(const std::vector<choice> &)>;

/** Settings by acs_mix_plan. @return empty: it failed, `why` says how. */
std::vector<choice> plan_mix(session &s, const std::vector<std::string> &names, const mix_function &run, uint32_t runs,
                             std::string &why);
/** Baseline 2 of the paper: version for 100 %, shares by a search that changes one model's at a time. */
std::vector<choice> best_shares(size_t models, const mix_function &run, bool quick);

int run_check(const settings &s);
/** An inference of each network, all versions open: a program for acs-tune. */
int run_once(const settings &s);
int run_operators(const settings &s, const std::string &command);
int run_table(const settings &s, const std::string &command);
int run_models(const settings &s, const std::string &command);
int run_changing(const settings &s, const std::string &command);

} // namespace variants

#endif

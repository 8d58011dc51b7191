/*
 * Serves requests from one thread, which launches, and looks at those in flight in turn.
 */
#include "serve.h"

namespace variants {

using clock_type = std::chrono::steady_clock;

/* After so long without an end the oldest request is waited for: a runtime may hold launches back until somebody waits. */
static const double PATIENCE_S = 0.001;
/* Time between two looks: a look takes locks of the runtime or the driver, which are needed to launch. */
static const double REST_S = 20e-6;

namespace {

struct request {
    unsigned slot;
    clock_type::time_point begin;
};

class server {
public:
    server(const mix &m, issuer &by, const std::vector<plan> &plans) : mix_(m), by_(by), plans_(plans)
    {
        for (unsigned model = 0; model < m.networks.size(); model++) {
            free_.emplace_back();
            for (unsigned k = m.most; k > 0; k--)
                free_[model].push_back(model * m.most + k - 1);
        }
    }

    void submit(unsigned model)
    {
        const unsigned slot = free_[model].back();
        const std::vector<operation> &ops = mix_.networks[model]->at(slot % mix_.most).ops;

        free_[model].pop_back();
        flying_.push_back({slot, clock_type::now()});
        by_.run(slot, ops, 0, ops.size(), plans_[model], true);
    }

    /* Takes all requests that have ended; there is at least one. */
    void collect()
    {
        const auto begin = clock_type::now();
        while (!look()) {
            if (seconds_since(begin) > PATIENCE_S)
                by_.wait(flying_[0].slot);
            const auto looked = clock_type::now();
            while (seconds_since(looked) < REST_S)
                continue;
        }
    }

    size_t flying() const { return flying_.size(); }
    served result;

private:
    bool look()
    {
        size_t kept = 0;
        for (const request &r : flying_)
            if (by_.done(r.slot)) {
                result.latency_us.push_back(1e6 * seconds_since(r.begin));
                free_[r.slot / mix_.most].push_back(r.slot);
            } else {
                flying_[kept++] = r;
            }
        const bool any = kept < flying_.size();
        flying_.resize(kept);
        return any;
    }

    const mix &mix_;
    issuer &by_;
    const std::vector<plan> &plans_;
    std::vector<std::vector<unsigned>> free_;
    std::vector<request> flying_; /* oldest first */
};

} // namespace

served serve(const mix &m, issuer &by, const std::vector<plan> &plans, size_t requests)
{
    server s(m, by, plans);

    s.result.latency_us.reserve(requests);
    by.drain();
    const auto begin = clock_type::now();
    for (size_t k = 0; k < requests; k++) {
        if (s.flying() == m.most)
            s.collect();
        s.submit(static_cast<unsigned>(k % m.networks.size()));
    }
    while (s.flying() > 0)
        s.collect();
    by.drain();
    s.result.per_second = static_cast<double>(requests) / seconds_since(begin);
    return s.result;
}

} // namespace variants

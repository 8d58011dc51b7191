/*
 * Ways to issue a program's tasks ("vehicles"). Each is a program of one or more host threads over the machine; what the
 * driver's calls take is in acs_sim_host_costs, what a runtime's own work takes in issue_costs.
 */
#ifndef ACS_SIM_VEHICLE_H
#define ACS_SIM_VEHICLE_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runner.h"
#include "run.h"

namespace design {

/*
 * Work of runtimes on the host, in ns per op. Our own: acs-micro on an H200's host (bench/results/h200-2026-11-21). The
 * published algorithm's dependency check: its paper, table II.
 */
struct issue_costs {
    uint32_t push = 98;     /* acs_launch, 4 arguments and 3 segments, beside a worker */
    uint32_t insert = 133;  /* into a window of 256 */
    uint32_t fifo = 15;     /* a trip through the FIFO */
    uint32_t record = 21;   /* a record from the pool and back: also what an entry's removal is taken to cost */
};
extern const issue_costs costs;

/** Table II: comparing an op of so many segments with a window; between its rows in proportion. */
uint64_t published_check_ns(uint32_t window, uint32_t segments);

class vehicle {
public:
    virtual ~vehicle() {}
    /** Time 0: make streams and threads, wake them. */
    virtual void begin(run &r) = 0;
    /** The host can see now that task k has ended. */
    virtual void seen(uint32_t k, uint64_t now)
    {
        (void)k;
        (void)now;
    }
    /** Task k has ended; only hardware knows at once. */
    virtual void ended(uint32_t k, uint64_t now)
    {
        (void)k;
        (void)now;
    }
    /** For reports, "8 streams, 2 threads". */
    virtual std::string setting() const { return ""; }
    virtual std::string note() const { return ""; }
    /** How long its busiest thread was busy. */
    virtual uint64_t host_busy() const = 0;
};

struct result;

/** How long the busiest of some threads was busy. */
template <class T> uint64_t busiest(const std::vector<std::unique_ptr<T>> &threads)
{
    uint64_t most = 0;
    for (const auto &t : threads)
        most = t->busy() > most ? t->busy() : most;
    return most;
}

struct vehicle_kind {
    const char *name, *about;
    bench::runner_role role;
    int variants;
    std::function<std::unique_ptr<vehicle>(const program &p, int variant)> make;
    /** Changes the machine for this way, where it needs hardware that the model lacks; or null. */
    void (*alter)(acs_sim_gpu &gpu) = nullptr;
    bool keeps = false; /* wants a program whose like it has seen before */
    bool many_devices = false; /* can issue to more than one */
    /** Plays by itself, without a run and its threads; or null. */
    result (*direct)(const acs_sim_gpu &gpu, const program &p) = nullptr;
};

/** All, in the order of reports; the first is the serial one. */
const std::vector<vehicle_kind> &vehicle_kinds();
const vehicle_kind *find_vehicle(const std::string &name);

void add_stream_vehicles(std::vector<vehicle_kind> &list);
void add_graph_vehicles(std::vector<vehicle_kind> &list);
void add_batch_vehicles(std::vector<vehicle_kind> &list);
void add_acs_sw(std::vector<vehicle_kind> &list);
void add_acs_hw(std::vector<vehicle_kind> &list);
void add_core(std::vector<vehicle_kind> &list);
void add_chained(std::vector<vehicle_kind> &list);

/** What one play, or the best of a way's variants, gave. */
struct result {
    std::string name, setting, note, left_out, wrong;
    double total_us = 0, submit_us = 0;
    double host_us = 0; /* of the busiest thread */
    double busy = 0;    /* share of multiprocessors' time with a block on them, of the whole */
    double waves = 0;   /* share of places for blocks that were taken, of the whole: occupancy */
};

result simulate(const acs_sim_gpu &gpu, const program &p, const vehicle_kind &kind);
/** One variant, played. The run is the caller's, to look at moments. */
result play_one(run &r, vehicle &v, const char *name);

} // namespace design

#endif

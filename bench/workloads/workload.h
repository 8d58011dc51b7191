/*
 * The list of workloads: the programs of the papers that ACS is compared with, and controls. Kernels and oracles are in
 * the .cu files beside this one, one family each.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "program.h"

namespace bench {

/** One size of a workload, with its value in each preset. */
struct parameter {
    const char *name, *about;
    uint64_t tiny;   /* the tests: a fraction of a second on one CPU, oracle included */
    uint64_t normal; /* the benchmark: kernels short enough that what issues them matters */
    uint64_t paper;  /* the paper's, where it fits one GPU of 80 GB and more */
};

/** Values by name; asking for a name that the workload did not declare ends the program. */
class sizes {
public:
    uint64_t operator[](const char *name) const;
    void set(const std::string &name, uint64_t value) { value_[name] = value; }
    bool has(const std::string &name) const { return value_.count(name) > 0; }
    const std::map<std::string, uint64_t> &all() const { return value_; }

private:
    std::map<std::string, uint64_t> value_;
};

/** A shape that a paper or workloads table gives, to be compared with the one computed; 0: not given. */
struct shape {
    uint32_t kernels, edges, width, depth;
};

struct workload {
    const char *name, *about;
    const char *source; /* whose workload it is: "HuntKTm", "GrCUDA", "ACS", "PolyBench", "control" */
    std::vector<parameter> parameters;
    shape (*expected)(const sizes &s); /* NULL: nothing to compare with */
    std::unique_ptr<program> (*make)(memory &m, const sizes &s);
    bool decides; /* the host reads results on the way and chooses what to launch: no graph of the whole exists */
    bool on_device = false; /* there is a version that leaves these choices to the device: program::decided */
};

/** Every size of a preset: tiny, normal or paper. */
sizes sizes_of_preset(const workload &w, const std::string &preset);

/** All of them, in the order of reports. */
const std::vector<workload> &workloads();

/* Each family adds its own. */
void add_huntktm(std::vector<workload> &list);
void add_polybench(std::vector<workload> &list);
void add_solvers(std::vector<workload> &list);
void add_dynamic_networks(std::vector<workload> &list);
void add_static_networks(std::vector<workload> &list);
void add_factorizations(std::vector<workload> &list);

} // namespace bench

#endif

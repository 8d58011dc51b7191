/*
 * What the program says about its runs: to a person, and as JSON.
 */
#ifndef PHYSICS_REPORT_H
#define PHYSICS_REPORT_H

#include <vector>

#include "simulation.h"

struct settings {
    int scenes, worlds, steps, repeat;
    order issue_order;
    bool use_acs, use_captured, use_stream, use_streams, check, audit;
    uint64_t seed;
    const char *render, *json;
    int decide; /* a decider; negative: KERNELS_DECIDE for acs, HOST_DECIDES for the others */
};

/** One way to run, with the times of its repetitions. */
struct measured {
    const char *name;
    std::vector<double> seconds;
    launch_counts counts;
    uint64_t not_run; /* of the kernels counted: those that a word on the device switched off */
    double median() const;
};

void report_print(const settings &s, const char *backend, const std::vector<measured> &runs);
/** @return false if the file cannot be written; the reason is on standard error. */
bool report_json(const settings &s, const char *backend, const std::vector<measured> &runs, uint64_t hash, bool passed);

#endif

/*
 * What the first passes of a program cost: each pass timed from its first call until all is complete, by runners that have
 * learnt nothing before, in turns.
 */
#ifndef BENCH_PASSES_H
#define BENCH_PASSES_H

#include <string>
#include <vector>

#include "program.h"
#include "runner.h"

namespace bench {

/** How a runner did. */
struct curve {
    const runner_kind *kind;
    std::string setting, left_out, wrong;   /* as in outcome */
    std::vector<double> open_us;            /* to make the runner, once for each repetition; a rival is made once */
    std::vector<std::vector<double>> total_us; /* by pass: one time for each repetition */
};

struct passes_settings {
    int passes = 12, repetitions = 5;
};

/**
 * Measures every runner of these names (make_contestants). ACS is opened anew for each repetition, and nobody wakes its
 * threads. Rivals keep the best of their settings, which is found beforehand, and are awake when a pass begins; those that
 * plan ahead may plan each pass before its clock starts.
 * @param[out] unknown  as of make_contestants.
 */
std::vector<curve> measure_passes(program &p, const machine &m, const std::vector<std::string> &names,
                                  const passes_settings &s, std::string *unknown);

} // namespace bench

#endif

/*
 * The measurement of all chosen ways to run, side by side, for one number of worlds.
 */
#ifndef PHYSICS_BENCH_MEASURE_H
#define PHYSICS_BENCH_MEASURE_H

#include <string>

#include "bound.h"

struct bench_settings {
    int scenes = 5, warm_up = 0, steps = 50, reps = 3, cpu = -1;
    std::vector<int> worlds = {256, 512, 1024, 2048, 4096, 8192};
    order issue_order = ORDER_INTERLEAVED;
    uint64_t seed = 1;
    std::vector<const variant *> variants;
    bool check = false, emulate = false;
    const char *forget = nullptr;
    const char *json = nullptr;
    const char *timeline = nullptr;
};

/** What came out for one way to run. Times in microseconds, one for each timed step. */
struct bench_row {
    const variant *v = nullptr;
    std::vector<double> step_us, submit_us;
    std::vector<double> back_us; /* per repetition: a step's time when steps follow each other without a wait */
    driver_counts counts;        /* of `counted` steps */
    uint64_t counted = 0;
    bool left_out = false, differs = false;
};

struct bench_table {
    int worlds = 0;
    const char *backend = "";
    bench_bound bound;
    std::vector<bench_row> rows;
    bool passed = true;
};

bench_table measure(const bench_settings &s, int worlds);

#endif

/*
 * The measuring loop: one program, several runners, interleaved within each repetition.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <string>
#include <vector>

#include "program.h"
#include "runner.h"

namespace bench {

/** One timed run. */
struct sample {
    double submit_us; /* until the program had handed over everything */
    double total_us;  /* until the device had done everything */
};

/** How a runner did. */
struct outcome {
    const runner_kind *kind;
    std::string setting, note;
    std::string left_out;        /* why it did not run; empty: it ran */
    std::string wrong;           /* the first thing that was not as it must be; empty: nothing */
    std::vector<sample> samples; /* one per repetition */
};

struct spread {
    double median, low, high;
};

spread spread_of(const std::vector<sample> &samples, double sample::*field);

struct measure_settings {
    int repetitions = 5;
    bool check = false; /* the program's check must hold after every run */
    bool bits = false;  /* the check must hold after the first run, and each other result must be the same bit for bit */
    std::vector<float> us; /* expected duration of each op, where the program does not say; may be empty */
};

/**
 * Warms up (each of a runner's variants some times, to keep the one with the fastest run), then times `repetitions` runs
 * of each runner in turn, beginning with another one each time.
 */
std::vector<outcome> measure(program &p, std::vector<contestant> &runners, const measure_settings &s);

/** The dependencies of a run; empty with so many ops that nobody plans by them. */
dag dag_to_plan_by(const trace &t);
/** Resets the program, runs it once and times that; `awake`: ready() comes before. @return empty, or what failed. */
std::string time_run(program &p, runner &r, bool awake, sample &s);

} // namespace bench

#endif

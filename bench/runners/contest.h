/*
 * What the benchmark programs have in common: the options that say where, who and how often, and the runners they name.
 */
#ifndef BENCH_CONTEST_H
#define BENCH_CONTEST_H

#include <string>
#include <vector>

#include "arguments.h"
#include "runner.h"

namespace bench {

/** Where and how often. */
struct measuring {
    std::string json;
    int repetitions = 5, first_cpu = -1;
    bool gpu = gpu_answers();

    /** Takes --backend, --reps, --cpu, --json and --go-on. @return false: the option is another one. */
    bool take(arguments &a);
    machine where() const { return {gpu, first_cpu}; }
};

struct contest : measuring {
    /** @param runners  the default of --runner */
    explicit contest(const std::vector<std::string> &runners_) : runners(runners_) {}

    std::vector<std::string> runners;

    /** Takes --runner, too. */
    bool take(arguments &a);
    /** Pins the calling thread and makes the runners; refuses names that are none. */
    std::vector<contestant> enter(const arguments &a) const;
    /** Lines about these options and about every runner, for --help. */
    static std::string help();
};

} // namespace bench

#endif

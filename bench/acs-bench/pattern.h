/*
 * Patterns: which task reads what. Those of Task Bench are exactly as published (Slaughter et al., "Task Bench",
 * section II); the others are chains, buffers and random accesses.
 */
#ifndef ACS_BENCH_PATTERN_H
#define ACS_BENCH_PATTERN_H

#include <cstdint>
#include <string>
#include <vector>

#include "program.h"
#include "dag.h"
#include "task.h"

namespace bench {

/** What a task touches: cells by number. */
struct task_access {
    uint32_t out;
    bool update;    /* the task also reads what it writes */
    bool undeclared; /* no footprint: nobody else touches its cell */
    std::vector<uint32_t> reads;
};

struct pattern_settings {
    std::string name; /* "stencil_1d", "chains:16", "random:64", ... */
    uint32_t width = 32, steps = 128;
    uint32_t radix = 5, period = 2; /* of nearest and spread */
    uint32_t fields = 0;            /* cells per point: task (t, p) writes cell (t mod fields, p); 0: one per step */
    uint64_t seed = 1;
};

/**
 * The tasks of a pattern in program order, step by step.
 * @param[out] cells  how many cells they touch.
 * @return empty if there is no such pattern.
 */
std::vector<task_access> pattern_tasks(const pattern_settings &s, uint32_t *cells);
/** One line per pattern, for --help. */
const char *pattern_help();
/** Does every repetition run another program? */
bool pattern_varies(const std::string &name);

/** A pattern as a program of kernels. */
class pattern_program : public program {
public:
    pattern_program(memory &m, const pattern_settings &s, double kernel_us, uint32_t ctas, int functions, bool check);

    void run(sink &s) override;
    /** Whether every task found what it must (with check) and left its mark last. */
    std::string check() override;
    void reset() override;
    bool vary(uint64_t repetition) override;
    trace describe() override;
    size_t tasks() const { return ops_.size(); }

private:
    void build(const std::vector<task_access> &tasks);
    void add_segments(const task_access &t);
    void fill_args(size_t k, uint32_t out, const task_read *reads, size_t count, const task_read *device_reads);

    pattern_settings settings_;
    double kernel_us_;
    uint32_t ctas_, stride_, cells_count_ = 0;
    int functions_;
    bool check_;
    uint64_t epoch_ = 0, *cells_, *epoch_word_;
    uint32_t *bad_;
    task_read *more_; /* reads of all tasks, on the device */
    std::vector<op> ops_;
    std::vector<task_args> args_;
    std::vector<acs_segment> segments_;
    std::vector<uint32_t> last_; /* per cell its last writer */
};

} // namespace bench

#endif

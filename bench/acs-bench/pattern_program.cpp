/*
 * Owns the ops of a pattern: made once, launched many times. Called by the measuring loop. The marks of a run carry its
 * number, so no cell is cleared between runs and a mark left by an earlier one is seen as wrong.
 */
#include <algorithm>

#include "pattern.h"

namespace bench {

pattern_program::pattern_program(memory &m, const pattern_settings &s, double kernel_us, uint32_t ctas, int functions,
                                 bool check)
    : program(m), settings_(s), kernel_us_(kernel_us), ctas_(ctas), stride_(std::max(ctas, 4u)),
      functions_(functions), check_(check)
{
    const std::vector<task_access> tasks = pattern_tasks(settings_, &cells_count_);
    size_t reads = 0;

    require(!tasks.empty(), "no such pattern");
    for (const task_access &t : tasks)
        reads += t.reads.size();
    const size_t cell_bytes = sizeof *cells_ * cells_count_ * stride_;
    cells_ = static_cast<uint64_t *>(m.allocate(cell_bytes));
    more_ = static_cast<task_read *>(m.allocate(reads * sizeof *more_));
    epoch_word_ = static_cast<uint64_t *>(m.allocate(sizeof *epoch_word_));
    bad_ = static_cast<uint32_t *>(m.allocate(sizeof *bad_));
    m.fill(cells_, 0, cell_bytes);
    build(tasks);
}

/* The footprint of a task, behind those of the tasks before it. */
void pattern_program::add_segments(const task_access &t)
{
    const size_t bytes = sizeof *cells_ * ctas_;

    for (uint32_t cell : t.reads)
        segments_.push_back(ACS_IN(cells_ + size_t(cell) * stride_, bytes));
    if (!t.undeclared)
        segments_.push_back(t.update ? ACS_INOUT(cells_ + size_t(t.out) * stride_, bytes)
                                     : ACS_OUT(cells_ + size_t(t.out) * stride_, bytes));
}

/* Makes ops, arguments and segments, in arrays that do not move from here on. */
void pattern_program::build(const std::vector<task_access> &tasks)
{
    std::vector<task_read> all;
    size_t reads = 0;

    for (const task_access &t : tasks)
        reads += t.reads.size();
    last_.assign(cells_count_, TASK_NOBODY);
    args_.assign(tasks.size(), task_args());
    ops_.assign(tasks.size(), op());
    segments_.clear();
    segments_.reserve(reads + tasks.size());
    all.reserve(reads);
    for (size_t k = 0; k < tasks.size(); k++) {
        const size_t first_read = all.size(), first_segment = segments_.size();
        for (uint32_t cell : tasks[k].reads)
            all.push_back({cell, last_[cell]});
        add_segments(tasks[k]);
        fill_args(k, tasks[k].out, all.data() + first_read, all.size() - first_read, more_ + first_read);
        op &o = ops_[k];
        o.kind = OP_KERNEL;
        o.kernel = &task_kernel(static_cast<int>(random_unit(77, k) * functions_));
        o.grid = ctas_;
        o.block = TASK_BLOCK;
        o.args = &args_[k];
        o.arg_bytes = sizeof args_[k];
        o.segments = segments_.data() + first_segment;
        o.segment_count = static_cast<uint32_t>(segments_.size() - first_segment);
        o.us = static_cast<float>(kernel_us_);
        last_[tasks[k].out] = static_cast<uint32_t>(k);
    }
    mem().upload(more_, all.data(), all.size() * sizeof *more_);
}

void pattern_program::fill_args(size_t k, uint32_t out, const task_read *reads, size_t count, const task_read *device_reads)
{
    task_args &a = args_[k];

    a.cells = cells_;
    a.epoch = epoch_word_;
    a.bad = bad_;
    a.more = device_reads;
    a.cycles = static_cast<int64_t>(kernel_us_ * task_cycles_per_us(mem().gpu()));
    a.tasks = static_cast<uint32_t>(args_.size());
    a.me = static_cast<uint32_t>(k);
    a.out = out;
    a.before = last_[out];
    a.stride = stride_;
    a.reads = static_cast<uint32_t>(count);
    a.check = check_;
    std::copy_n(reads, std::min<size_t>(count, TASK_READS), a.read);
}

void pattern_program::run(sink &s)
{
    for (const op &o : ops_)
        s.launch(o);
}

trace pattern_program::describe()
{
    trace t;
    t.ops = ops_;
    t.reads = std::make_shared<std::deque<acs_segment>>();
    t.identity = settings_.seed;
    return t;
}

bool pattern_program::vary(uint64_t repetition)
{
    if (!pattern_varies(settings_.name))
        return false;
    settings_.seed = 1000003 * (repetition + 1);
    build(pattern_tasks(settings_, &cells_count_));
    return true;
}

void pattern_program::reset()
{
    epoch_++;
    mem().upload(epoch_word_, &epoch_, sizeof epoch_);
    mem().fill(bad_, 0, sizeof *bad_);
    mem().wait();
}

std::string pattern_program::check()
{
    std::vector<uint64_t> cells(size_t(cells_count_) * stride_);
    uint32_t bad = 0, unmarked = 0;

    mem().download(&bad, bad_, sizeof bad);
    mem().download(cells.data(), cells_, cells.size() * sizeof cells[0]);
    for (size_t c = 0; c < cells_count_; c++)
        for (uint32_t k = 0; last_[c] != TASK_NOBODY && k < ctas_; k++)
            unmarked += cells[c * stride_ + k] != epoch_ * ops_.size() + last_[c] + 1;
    if (bad == 0 && unmarked == 0)
        return "";
    return std::to_string(bad) + " reads and " + std::to_string(unmarked) + " final marks are not the ones of program order";
}

} // namespace bench

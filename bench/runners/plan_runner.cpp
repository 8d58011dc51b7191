/*
 * Owns the ops of a run between their launch and their issue, for runners that plan. Called by the program's thread.
 * Issues nothing itself.
 */
#include "plan_runner.h"

#include <cstring>

namespace bench {

static const char *const NOT_PREPARED = "was not prepared";

planned_runner::planned_runner(const machine &m) : machine_(m), refused_(NOT_PREPARED)
{
}

std::string planned_runner::prepare(const trace &t, const dag &d)
{
    trace_ = t;
    dag_ = d;
    if (dag_.up.size() != trace_.ops.size()) {
        refused_ = "has too many ops to plan: " + std::to_string(trace_.ops.size());
        return refused_;
    }
    ends_ = stretches(trace_.ops);
    held_.assign(trace_.ops.size(), nullptr);
    reads_.assign(ends_.size(), op());
    refused_ = why_not(trace_, machine_.gpu);
    if (refused_.empty())
        refused_ = plan_run();
    return refused_;
}

void planned_runner::choose(int variant)
{
    variant_ = variant;
    refused_ = NOT_PREPARED;
}

void planned_runner::start()
{
    running_ = true;
    if (!refused_.empty())
        failure_.note(refused_);
    lost_ = !refused_.empty();
    if (!lost_)
        begin();
}

/* Cheap on purpose: it is part of what is timed. */
bool planned_runner::expected(const op &o)
{
    if (!running_)
        start();
    if (lost_)
        return false;
    if (next_ >= trace_.ops.size()) {
        failure_.note("the program launches more than the " + std::to_string(next_) + " ops that were planned");
        lost_ = true;
        return false;
    }
    const op &p = trace_.ops[next_];
    if (o.kind == p.kind && o.kernel == p.kernel && o.grid == p.grid && o.segment_count == p.segment_count)
        return true;
    failure_.note("op " + std::to_string(next_) + " is " + op_name(o) + " and not " +
                  (p.kind == OP_CALL ? "a library call" : op_name(p)) + " as planned");
    lost_ = true;
    return false;
}

void planned_runner::issue_stretch()
{
    issue(stretch_);
    stretch_++;
}

void planned_runner::launch(const op &o)
{
    if (expected(o))
        held_[next_++] = &o;
}

void planned_runner::read(void *to, const void *from, size_t bytes)
{
    op o = {};
    o.kind = OP_READ;
    o.to = to;
    o.from = from;
    o.bytes = bytes;
    o.segment_count = 1;
    if (!expected(o)) {
        memset(to, 0, bytes); /* finish() says that the run is worth nothing; the program must end all the same */
        return;
    }
    reads_[stretch_] = o;
    held_[next_++] = &reads_[stretch_];
    issue_stretch();
}

void planned_runner::flush()
{
    if (!running_ && trace_.ops.empty())
        return;
    if (!lost_ && next_ < trace_.ops.size()) {
        failure_.note("the program launched " + std::to_string(next_) + " ops of " + std::to_string(trace_.ops.size()) +
                      " planned ones");
        lost_ = true;
    }
    if (!lost_)
        issue_stretch();
    if (running_)
        end();
}

std::string planned_runner::finish()
{
    wait_for_device(machine_.gpu, failure_);
    next_ = stretch_ = 0;
    running_ = lost_ = false;
    return failure_.take();
}

} // namespace bench

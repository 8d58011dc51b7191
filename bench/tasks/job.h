/*
 * A job: one run of a task beside others, also of the same task, on threads of their own. It shares what goes in, which
 * nobody writes, and brings buffers for what comes out.
 */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include "task.h"

namespace bench {

class job {
public:
    /** Of a task that stays, made without outputs. */
    explicit job(const task &t);
    ~job();
    job(const job &) = delete;
    job &operator=(const job &) = delete;

    const task &of() const { return task_; }
    /** Where block `b` goes in the end, pinned; null: it is not wanted. */
    char *out(size_t b) const { return outs_[b]; }
    /** As task::kernel; one thread at a time. */
    const op &kernel(size_t k, const std::vector<void *> &places) { return task_.kernel(k, places, room_); }
    /** Bytes that are copied in, and out. */
    uint64_t bytes_in() const;
    uint64_t bytes_out() const;
    /** Overwrites what came out; says whether it is right, bit for bit. */
    void reset();
    bool is_right() const;

private:
    const task &task_;
    std::vector<char *> outs_;
    moved_op room_;
};

} // namespace bench

#endif

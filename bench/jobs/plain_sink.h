/*
 * Ops issued to a CUDA stream, or run at once by the calling thread on the CPU.
 */
#ifndef BENCH_PLAIN_SINK_H
#define BENCH_PLAIN_SINK_H

#include "streams_slot.h"
#include "work.h"

namespace bench {

class plain_sink : public job_sink {
public:
    /** @param stream  a cudaStream_t; null on the CPU */
    plain_sink(void *stream, bool gpu, failure &f) : stream_(stream), gpu_(gpu), failure_(f) {}
    void copy(void *to, const void *from, size_t bytes) override;
    void launch(const job_launch &l) override;

private:
    void *const stream_;
    const bool gpu_;
    failure &failure_;
};

/* The most parameters that a kernel of a work has. */
enum { PLAIN_ARGS_MAX = 16 };
/** The arguments as CUDA and host bodies take them. */
struct plain_args {
    explicit plain_args(const job_launch &l);
    void *list[PLAIN_ARGS_MAX];
};

} // namespace bench

#endif

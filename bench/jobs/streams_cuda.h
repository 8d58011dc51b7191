/*
 * Streams with device buffers of their own: what the runners that spread jobs over streams have in common.
 */
#ifndef BENCH_STREAMS_CUDA_H
#define BENCH_STREAMS_CUDA_H

#include "job_runner.h"
#include "plain_sink.h"

namespace bench {

/** Job j goes to stream j modulo their number, and into the buffers of that number: only jobs of one stream share some. */
class stream_sets : public job_runner {
public:
    explicit stream_sets(const machine &m) : machine_(m) {}

    std::string prepare(const job_list &jobs, size_t sets) override;
    std::string finish() override;
    uint64_t device_bytes() override { return ring_.bytes(); }

protected:
    size_t streams() const { return ring_.sets(); }
    void *stream(size_t number) const { return slots_[number]->stream(); }
    void issue(size_t job, size_t number)
    {
        plain_sink sink(stream(number), true, failure_);
        jobs_->issue(sink, job, ring_.of(number));
    }
    void wait(size_t number) { slots_[number]->wait(failure_); }

    const machine machine_;
    const job_list *jobs_ = nullptr;
    failure failure_;

private:
    buffer_ring ring_;
    std::vector<std::unique_ptr<slot>> slots_; /* at least as many as there are sets */
};

} // namespace bench

#endif

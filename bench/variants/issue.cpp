/*
 * Owns streams, events and the last ops of slots. Used by one thread.
 */
#include "issue.h"

#include "acs_context.h"
#include "memory.h"

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace variants {

namespace {

class acs_issuer : public issuer {
public:
    acs_issuer(acs_context *context, unsigned slots) : context_(context), last_(slots, 0) {}

    void run(unsigned slot, const std::vector<operation> &ops, size_t first, size_t count, const plan &how, bool) override
    {
        for (size_t k = first; k < first + count; k++)
            last_[slot] = queue(context_, ops[k], how.attributes[k]);
    }

    bool done(unsigned slot) override { return settled(acs_query(context_, last_[slot])); }
    void wait(unsigned slot) override { (void)settled(acs_wait(context_, last_[slot])); }
    void drain() override { (void)settled(acs_sync(context_)); }

private:
    static bool settled(acs_status status)
    {
        if (status != ACS_OK && status != ACS_NOT_READY)
            bench::require(false, bench::acs_error_text("an operation failed").c_str());
        return status == ACS_OK;
    }

    acs_context *context_;
    std::vector<acs_op> last_;
};

#if BENCH_CUDA

class stream_issuer : public issuer {
public:
    explicit stream_issuer(unsigned slots) : streams_(slots), events_(slots)
    {
        for (unsigned k = 0; k < slots; k++) {
            bench::require_cuda(cudaStreamCreateWithFlags(&streams_[k], cudaStreamNonBlocking), "a stream");
            bench::require_cuda(cudaEventCreateWithFlags(&events_[k], cudaEventDisableTiming), "an event");
        }
    }

    ~stream_issuer() override
    {
        for (cudaStream_t s : streams_)
            (void)cudaStreamDestroy(s);
        for (cudaEvent_t e : events_)
            (void)cudaEventDestroy(e);
    }

    void run(unsigned slot, const std::vector<operation> &ops, size_t first, size_t count, const plan &how,
             bool marked) override
    {
        for (size_t k = first; k < first + count; k++)
            launch_plain(ops[k], how.numbers[k], streams_[slot]);
        if (marked)
            bench::require_cuda(cudaEventRecord(events_[slot], streams_[slot]), "an event");
    }

    bool done(unsigned slot) override
    {
        const cudaError_t code = cudaEventQuery(events_[slot]);
        if (code != cudaErrorNotReady)
            bench::require_cuda(code, "an operation failed");
        return code == cudaSuccess;
    }

    void wait(unsigned slot) override { bench::require_cuda(cudaEventSynchronize(events_[slot]), "an operation failed"); }
    void drain() override { bench::require_cuda(cudaDeviceSynchronize(), "an operation failed"); }

private:
    std::vector<cudaStream_t> streams_;
    std::vector<cudaEvent_t> events_;
};

#endif

} // namespace

std::unique_ptr<issuer> issue_by_acs(acs_context *context, unsigned slots)
{
    return std::unique_ptr<issuer>(new acs_issuer(context, slots));
}

std::unique_ptr<issuer> issue_by_streams(unsigned slots)
{
#if BENCH_CUDA
    return std::unique_ptr<issuer>(new stream_issuer(slots));
#else
    (void)slots;
    return nullptr;
#endif
}

} // namespace variants

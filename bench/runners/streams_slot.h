/*
 * A place where ops run one after another: a CUDA stream, or the calling thread on the CPU, with what library calls keep
 * there (scratch memory, handles). Used by one thread at a time. Failures are noted and returned by a runner's finish().
 */
#ifndef BENCH_STREAMS_SLOT_H
#define BENCH_STREAMS_SLOT_H

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "dag.h"
#include "op.h"

namespace bench {

/* The first failure of a run; any thread may note one. */
class failure {
public:
    void note(const std::string &text);
    /** Notes `what` with CUDA's text unless `code` (a cudaError_t) is 0. @return whether it is 0. */
    bool cuda(int code, const char *what) { return code == 0 || refuse(code, what); }
    bool any() const { return any_.load(std::memory_order_relaxed); /* a hint: finish() is behind all threads */ }
    /** The text, empty if all went well; forgets it. */
    std::string take();

private:
    bool refuse(int code, const char *what);

    std::atomic<bool> any_{false};
    std::mutex lock_;
    std::string text_;
};

class slot {
public:
    slot(bool gpu, int index);
    ~slot();
    slot(const slot &) = delete;
    slot &operator=(const slot &) = delete;

    /** A cudaStream_t; null on the CPU. */
    void *stream() const { return stream_; }
    /** Makes room for what ops of this run want; not timed. */
    void reserve(const op &o);
    /** Issues an op behind those before it; on the CPU, runs it. A read needs fetch() once it is complete. */
    void issue(const op &o, failure &f);
    /** Makes a library call with this slot's stream, scratch memory and place. */
    void call(const op &o, failure &f);
    /** Hands what a complete read has copied to the program. */
    void fetch(const op &read);
    /** Waits for the stream. */
    void wait(failure &f);

private:
    struct place {
        void *value = nullptr;
        void (*destroy)(void *) = nullptr;
    };
    void issue_on_gpu(const op &o, failure &f);
    void issue_on_host(const op &o);
    void free_scratch();

    const bool gpu_;
    const int index_;
    void *stream_ = nullptr;
    void *staging_ = nullptr; /* READ_BYTES, pinned; on the GPU only, once there is a read */
    void *scratch_ = nullptr;
    size_t scratch_bytes_ = 0;
    std::map<const void *, place> places_; /* by place key */
};

/** Why an op cannot run on the GPU, or on the CPU; empty if it can. */
std::string why_not(const op &o, bool gpu);
/** The same for a whole run, with the op's number. */
std::string why_not(const trace &t, bool gpu);
/** Waits for everything on the GPU; nothing on the CPU. */
void wait_for_device(bool gpu, failure &f);

} // namespace bench

#endif

/*
 * A stream of independent jobs: each copies its input in, runs some kernels through device buffers, and copies its result
 * out. The jobs of a work differ in their input only, so one CUDA graph serves all of them.
 *
 * The first op that touches a device buffer in a job writes all of it, and says so in one segment: nothing passes from job
 * to job through buffers, which is what lets jobs have buffers of their own, given by hand or by renaming.
 */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "memory.h"
#include "plain_kernel.hpp"

namespace bench {

/** A kernel as it is launched. What it points to lives until the call that gets it returns. */
struct job_launch {
    const acs_dual_kernel *kernel;
    unsigned grid, block;
    const acs_arg *args;
    size_t arg_count;
    const acs_segment *segments;
    size_t segment_count;
};

/** Keeps a parameter out of the deduction of types: arguments are converted to what the kernel takes. */
template <class T> struct exactly {
    typedef T type;
};

/** Takes the ops of a job in program order. */
class job_sink {
public:
    virtual ~job_sink() = default;
    virtual void copy(void *to, const void *from, size_t bytes) = 0;
    virtual void launch(const job_launch &l) = 0;

    /** Launches `threads` threads, rounded up to whole CTAs. */
    template <class... P>
    void run(const plain_kernel<P...> &k, size_t threads, std::initializer_list<acs_segment> uses,
             typename exactly<P>::type... args)
    {
        const acs_arg list[] = {{&args, sizeof args, std::is_pointer<P>::value ? ACS_ARG_POINTER : ACS_ARG_VALUE}...};
        const unsigned grid = static_cast<unsigned>((threads + k.block - 1) / k.block);
        launch({&k.dual, grid, k.block, list, sizeof...(P), uses.begin(), uses.size()});
    }
};

/** The device buffers of one job, by number. */
typedef std::vector<void *> buffer_set;

class work {
public:
    virtual ~work() = default;

    /** Bytes of a job's device buffers, in the order in which issue() gets them. */
    virtual std::vector<size_t> buffers() const = 0;
    /** Bytes of a job's host buffers. */
    virtual size_t in_bytes() const = 0;
    virtual size_t out_bytes() const = 0;
    /** Ops of a job. */
    virtual unsigned ops() const = 0;
    /** Makes a job's input. */
    virtual void fill(uint64_t job, void *in) const = 0;
    virtual void issue(job_sink &s, const buffer_set &device, const void *in, void *out) const = 0;
    /** Compares a job's result with an oracle on the CPU. @return empty if right, else what differs, in one line. */
    virtual std::string check(const void *in, const void *out) const = 0;
};

struct work_kind {
    const char *name, *about;
    /** `m`: for what all jobs read. The work must end before it. */
    std::function<std::unique_ptr<work>(memory &m, const std::string &size)> make;
};

/** Every work, in the order of the paper's table. */
const std::vector<work_kind> &work_kinds();

/** Sizes to choose from: tests, a part of a GPU, more than a GPU. */
struct preset {
    unsigned tiny, normal, large;
    unsigned of(const std::string &size) const { return size == "tiny" ? tiny : (size == "large" ? large : normal); }
};

std::unique_ptr<work> make_sobel(const std::string &size);
std::unique_ptr<work> make_gemm(const std::string &size);
std::unique_ptr<work> make_bp(const std::string &size);
std::unique_ptr<work> make_knn(memory &m, const std::string &size);
std::unique_ptr<work> make_hotspot(const std::string &size);

/* For works: typed views, and numbers for inputs. */
template <class T> T *as(void *p) { return static_cast<T *>(p); }
template <class T> const T *as(const void *p) { return static_cast<const T *>(p); }
void fill_random(float *to, size_t count, uint64_t seed, float low, float high);
/** The first element that is further from the expected one than `tolerance`, of the larger of it and 1; empty: none. */
std::string first_off(const float *got, const std::vector<double> &expected, double tolerance);

} // namespace bench

#endif

/*
 * A way to run a stream of jobs: by hand in several forms, or through ACS. One object runs one work at a time.
 *
 * The measuring loop calls prepare() for each work, and for each number of buffer sets to be tried, then times
 *     runner.run(); | submitted |  runner.finish(); | complete |
 */
#ifndef BENCH_JOB_RUNNER_H
#define BENCH_JOB_RUNNER_H

#include "buffer_ring.h"
#include "runner.h"
#include "work.h"

namespace bench {

/** A work and the host buffers of its jobs: pinned, each job has its own. */
class job_list {
public:
    /** Makes the inputs of `count` jobs. Ends the program if there is no memory. */
    job_list(const work &w, size_t count, bool gpu);
    ~job_list();
    job_list(const job_list &) = delete;
    job_list &operator=(const job_list &) = delete;

    const work &what() const { return work_; }
    size_t count() const { return count_; }
    const void *in(size_t job) const { return in_ + job * in_stride_; }
    void *out(size_t job) const { return out_ + job * out_stride_; }
    /** Issues a job's ops. */
    void issue(job_sink &s, size_t job, const buffer_set &device) const { work_.issue(s, device, in(job), out(job)); }
    /** Overwrites all results. */
    void reset() const;
    std::vector<char> results() const;
    /** Are the results those, bit for bit? */
    bool results_are(const std::vector<char> &right) const;

private:
    const work &work_;
    const size_t count_, in_stride_, out_stride_;
    const bool gpu_;
    char *in_, *out_;
};

/** Fills a ring with sets of device buffers for a work, outside of ACS. @return empty, or that there is no room. */
std::string fill_ring(buffer_ring &ring, const work &w, size_t sets, bool gpu);

class job_runner {
public:
    virtual ~job_runner() = default;
    /** Takes jobs, and the memory that they need: `sets` sets of buffers, where that is this runner's to choose.
     *  @return empty, or why it cannot run them. */
    virtual std::string prepare(const job_list &jobs, size_t sets) = 0;
    /** Called right before the clock starts, for each run: wakes the threads that a working program has awake. */
    virtual void ready() {}
    virtual void run() = 0;
    /** Waits until everything is complete. @return empty, or what failed. */
    virtual std::string finish() = 0;
    /** The most device memory that the jobs' buffers took at once since prepare(). */
    virtual uint64_t device_bytes() = 0;
    /** Facts for reports; may be empty. */
    virtual std::string note() { return ""; }
};

struct job_runner_kind {
    const char *name, *about;
    bool gpu, host;   /* where it runs */
    const char *sets; /* what it has several of, each with buffers of its own: "streams"; empty: one set, or its own way */
    std::function<std::unique_ptr<job_runner>(const machine &)> make;
    runner_role role = RIVAL;
};

/** Every runner built in, in the order of reports; the first one is the serial program. */
const std::vector<job_runner_kind> &job_runner_kinds();

std::unique_ptr<job_runner> make_serial(const machine &m);     /* serial.cpp */
std::unique_ptr<job_runner> make_job_graph(const machine &m);  /* graph_cuda.cpp */
std::unique_ptr<job_runner> make_job_batch(const machine &m);  /* streams_cuda.cpp */
std::unique_ptr<job_runner> make_job_buffers(const machine &m);
std::unique_ptr<job_runner> make_job_queue(const machine &m);  /* queue_cuda.cpp */
void add_acs_jobs(std::vector<job_runner_kind> &list);         /* acs_jobs.cpp */

} // namespace bench

#endif

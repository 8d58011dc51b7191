/*
 * Owns the queue of jobs that threads share: a thread has a stream and buffers of its own, takes the next job, launches it
 * and waits for its stream. Called by the measuring loop; the threads sleep between runs.
 */
#include <atomic>
#include <mutex>

#include "streams_crew.h"
#include "streams_cuda.h"

namespace bench {

namespace {

class queue : public stream_sets {
public:
    explicit queue(const machine &m) : stream_sets(m), crew_(m) {}
    ~queue() override { end_round(); }

    std::string prepare(const job_list &jobs, size_t sets) override
    {
        if (!has_cpus_for(machine_, static_cast<int>(sets)))
            return "there are not CPUs enough to pin " + std::to_string(sets) + " threads";
        end_round();
        crew_.grow(static_cast<int>(sets));
        return stream_sets::prepare(jobs, sets);
    }

    void ready() override
    {
        next_ = 0;
        go_.store(false, std::memory_order_relaxed); /* the crew's lock hands it over */
        started_ = true;
        crew_.start(static_cast<int>(streams()), [this](int number) { serve(static_cast<size_t>(number - 1)); });
        crew_.until_awake();
    }

    void run() override { go_.store(true, std::memory_order_release); /* A: the jobs */ }

    std::string finish() override
    {
        end_round();
        return stream_sets::finish();
    }

private:
    void serve(size_t stream)
    {
        size_t job;
        backoff b;
        while (!go_.load(std::memory_order_acquire)) /* A */
            b.pause();
        while (take(&job)) {
            issue(job, stream);
            wait(stream);
        }
    }

    bool take(size_t *job)
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (next_ == jobs_->count())
            return false;
        *job = next_++;
        return true;
    }

    /* Threads that were woken and never sent off would wait for ever. */
    void end_round()
    {
        if (!started_)
            return;
        go_.store(true, std::memory_order_release); /* A */
        crew_.wait();
        started_ = false;
    }

    std::mutex lock_;
    size_t next_ = 0; /* guarded by lock_; the first job that nobody has */
    std::atomic<bool> go_{false};
    bool started_ = false;
    crew crew_;
};

} // namespace

std::unique_ptr<job_runner> make_job_queue(const machine &m)
{
    return std::unique_ptr<job_runner>(new queue(m));
}

} // namespace bench

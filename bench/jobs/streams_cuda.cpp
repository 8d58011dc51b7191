/*
 * Owns static batching, and the best that can be written by hand: streams with buffers of their own. Called by the measuring
 * loop, on one thread.
 */
#include "streams_cuda.h"

#include <algorithm>

namespace bench {

std::string stream_sets::prepare(const job_list &jobs, size_t sets)
{
    jobs_ = &jobs;
    while (slots_.size() < sets)
        slots_.emplace_back(new slot(true, static_cast<int>(slots_.size())));
    return fill_ring(ring_, jobs.what(), sets, true);
}

std::string stream_sets::finish()
{
    for (size_t k = 0; k < streams(); k++)
        wait(k);
    return failure_.take();
}

namespace {

/* As many jobs as there are streams, then a wait for all of them. */
class batch : public stream_sets {
public:
    using stream_sets::stream_sets;

    void run() override
    {
        for (size_t first = 0; first < jobs_->count(); first += streams()) {
            const size_t size = std::min(streams(), jobs_->count() - first);
            for (size_t k = 0; k < size; k++)
                issue(first + k, k);
            for (size_t k = 0; k < size; k++)
                wait(k);
        }
    }
};

/*
 * No wait but the last. A set of buffers and a stream belong together, so the stream's own order keeps a job behind the one
 * that had its buffers before, for less than an event would.
 */
class buffers : public stream_sets {
public:
    using stream_sets::stream_sets;

    void run() override
    {
        for (size_t job = 0; job < jobs_->count(); job++)
            issue(job, job % streams());
    }
};

} // namespace

std::unique_ptr<job_runner> make_job_batch(const machine &m)
{
    return std::unique_ptr<job_runner>(new batch(m));
}

std::unique_ptr<job_runner> make_job_buffers(const machine &m)
{
    return std::unique_ptr<job_runner>(new buffers(m));
}

} // namespace bench

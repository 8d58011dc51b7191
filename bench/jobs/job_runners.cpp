/*
 * Owns the list of runners. Called by the program and the measuring loop; runs nothing itself.
 */
#include "job_runner.h"

namespace bench {

const std::vector<job_runner_kind> &job_runner_kinds()
{
    static const std::vector<job_runner_kind> list = [] {
        std::vector<job_runner_kind> all = {
            {"stream", "the serial program: one stream (on the CPU a loop), the same device buffers for each job", true,
             true, "", make_serial},
#if BENCH_CUDA
            {"graph", "a job as a CUDA graph, its host buffers set before each launch; one stream", true, false, "",
             make_job_graph},
            {"batch", "static batching: N jobs on N streams with buffers of their own, then a wait for all", true, false,
             "streams", make_job_batch},
            {"queue", "N threads, each with a stream and buffers, take the next job, launch it, wait for it", true, false,
             "threads", make_job_queue},
            {"buffers", "written by hand: N streams with buffers of their own, no wait but the last", true, false, "streams",
             make_job_buffers},
#endif
        };
#if !BENCH_CUDA
        for (const char *name : {"graph", "batch", "queue", "buffers"})
            all.push_back({name, "(not built in: no CUDA)", false, false, "", nullptr});
#endif
        add_acs_jobs(all);
        return all;
    }();
    return list;
}

} // namespace bench

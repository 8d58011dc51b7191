/*
 * Owns the runners that give their jobs to ACS, each with its way to have device buffers. Called by the measuring loop.
 * Uses the public interface only; options come from the environment, then from the way.
 */
#include <cstdio>

#include "acs_context.h"
#include "job_runner.h"

namespace bench {

namespace {

struct acs_way {
    const char *name, *about;
    const char *sets; /* as of job_runner_kind */
    bool per_job;     /* each job allocates and frees */
    int kind;         /* of acs_malloc */
    void (*set)(acs_options &);
};

void set_nothing(acs_options &)
{
}

const acs_way ways[] = {
    {"acs", "ACS, the serial program: the same device buffers for each job", "", false, ACS_MEMORY_DEVICE, set_nothing},
    {"acs-buffers", "ACS, N sets of buffers in turn", "sets", false, ACS_MEMORY_DEVICE, set_nothing},
    {"acs-malloc", "ACS, each job allocates its buffers and frees them", "", true, ACS_MEMORY_DEVICE, set_nothing},
#ifdef ACS_RELOCATABLE
    {"acs-rename", "ACS, the serial program, its buffers allocated ACS_RELOCATABLE, with renaming", "", false,
     ACS_MEMORY_DEVICE | ACS_RELOCATABLE, [](acs_options &o) { o.rename = -1; }},
#endif
};

/* A context that closes with the object, and the first failure. */
class acs_sink : public job_sink {
public:
    acs_sink(const machine &m, const acs_way &how)
    {
        acs_options o = acs_options_for(m);
        how.set(o);
        context_ = acs_open_for(m, o);
        require(acs_malloc(context_, WAKING_BYTES, ACS_MEMORY_HOST, &waking_) == ACS_OK,
                acs_error_text("acs_malloc").c_str());
    }
    ~acs_sink() override
    {
        acs_free(context_, waking_);
        (void)acs_close(context_);
    }
    acs_sink(const acs_sink &) = delete;
    acs_sink &operator=(const acs_sink &) = delete;

    void copy(void *to, const void *from, size_t bytes) override
    {
        note(acs_memcpy(context_, to, from, bytes) != 0, "acs_memcpy");
    }

    /* What ACS_LAUNCH does, for a kernel that is not named here. */
    void launch(const job_launch &l) override
    {
        acs_launch_params p = {};
        p.size = sizeof p;
        p.kernel = &l.kernel->code;
        p.grid = {l.grid, 1, 1};
        p.block = {l.block, 1, 1};
        p.args = {l.args, l.arg_count};
        p.uses = {l.segments, l.segment_count, nullptr, nullptr, 0};
        p.site = &l.kernel->site;
        note(acs_launch(context_, &p) != 0, l.kernel->site.name);
    }

    void *allocate(size_t bytes, int kind)
    {
        void *p = nullptr;
        note(acs_malloc(context_, bytes, kind, &p) == ACS_OK, "acs_malloc");
        return p;
    }
    void free(void *p) { note(acs_free(context_, p) != 0, "acs_free"); }

    /* The worker looks for work for a while before it sleeps (ACS_SPIN_US). */
    void wake() { (void)acs_wait(context_, acs_memset(context_, waking_, 0, WAKING_BYTES)); }

    std::string finish()
    {
        note(acs_sync(context_) == ACS_OK, "acs_sync");
        std::string what;
        what.swap(failure_);
        return what;
    }
    bool failed() const { return !failure_.empty(); }

    acs_statistics statistics()
    {
        acs_statistics s = {};
        s.size = sizeof s;
        (void)acs_stats(context_, &s);
        return s;
    }

private:
    static const size_t WAKING_BYTES = 4;

    void note(bool ok, const char *what)
    {
        if (!ok && failure_.empty())
            failure_ = acs_error_text(what);
    }

    acs_context *context_ = nullptr;
    void *waking_ = nullptr;
    std::string failure_;
};

class acs_jobs : public job_runner {
public:
    acs_jobs(const machine &m, const acs_way &how) : machine_(m), how_(how) {}

    /* In a new context, whose figures are of these jobs alone. */
    std::string prepare(const job_list &jobs, size_t sets) override
    {
        jobs_ = &jobs;
        ring_.clear();
        sink_.reset();
        sink_.reset(new acs_sink(machine_, how_));
        if (!how_.per_job)
            ring_.fill(jobs.what().buffers(), sets, [this](size_t bytes) { return sink_->allocate(bytes, how_.kind); },
                       [this](void *p) { sink_->free(p); });
        return sink_->failed() ? sink_->finish() : "";
    }

    void ready() override
    {
        sink_->wake();
        before_ = sink_->statistics();
    }

    void run() override
    {
        for (size_t job = 0; job < jobs_->count() && !sink_->failed(); job++)
            if (how_.per_job)
                run_alone(job);
            else
                jobs_->issue(*sink_, job, ring_.of(job));
    }

    std::string finish() override { return sink_->finish(); }
    uint64_t device_bytes() override { return sink_->statistics().memory_peak; }

    /* Of the last run. */
    std::string note() override
    {
        const acs_statistics s = sink_->statistics();
        char text[160];
        const auto per_job = [&](uint64_t acs_statistics::*count) {
            return static_cast<double>(s.*count - before_.*count) / static_cast<double>(jobs_->count());
        };
        snprintf(text, sizeof text, "per job %.1f edges, %.1f waits, %.1f submissions, %.1f copies as kernels",
                 per_job(&acs_statistics::edges), per_job(&acs_statistics::waits_sent),
                 per_job(&acs_statistics::submissions), per_job(&acs_statistics::copies_as_kernels));
        return text;
    }

private:
    void run_alone(size_t job)
    {
        buffer_set mine;
        for (size_t bytes : jobs_->what().buffers())
            mine.push_back(sink_->allocate(bytes, how_.kind));
        if (!sink_->failed())
            jobs_->issue(*sink_, job, mine);
        for (void *p : mine)
            sink_->free(p);
    }

    const machine machine_;
    const acs_way &how_;
    const job_list *jobs_ = nullptr;
    acs_statistics before_ = {};
    std::unique_ptr<acs_sink> sink_;
    buffer_ring ring_; /* behind the sink, so that it is empty before that ends */
};

} // namespace

void add_acs_jobs(std::vector<job_runner_kind> &list)
{
    for (const acs_way &how : ways)
        list.push_back({how.name, how.about, true, true, how.sets,
                        [&how](const machine &m) { return std::unique_ptr<job_runner>(new acs_jobs(m, how)); }, OURS});
}

} // namespace bench

/*
 * Makes a job a group of ACS. Called by the ways through ACS, and by the processes that are jobs. Uses the public
 * interface only.
 */
#include "group.h"

#include "acs_context.h"

namespace bench {

namespace {

/* A job's calls, in program order; the first that is refused is remembered. */
class group_program {
public:
    group_program(acs_context *context, job &j)
        : context_(context), job_(j), places_(j.of().blocks().size(), nullptr)
    {
    }

    void queue(bool hold)
    {
        const std::vector<task_block> &blocks = job_.of().blocks();
        const int kind = ACS_MEMORY_DEVICE | ACS_LAZY;
        for (size_t b = 0; b < blocks.size(); b++)
            need(acs_malloc(context_, blocks[b].bytes, kind, &places_[b]) == ACS_OK, "acs_malloc");
        if (hold && why_.empty())
            need(launch_hold(context_, places_, false), "acs_launch");
        for (size_t b = 0; b < blocks.size() && why_.empty(); b++)
            begin(blocks[b], places_[b]);
        for (size_t k = 0; k < job_.of().kernels() && why_.empty(); k++)
            launch(job_.kernel(k, places_), job_.of().argument_type(k));
        for (size_t b = 0; b < blocks.size() && why_.empty(); b++)
            if (job_.out(b))
                need(acs_memcpy(context_, job_.out(b), places_[b], blocks[b].bytes) != 0, "acs_memcpy");
        if (hold && why_.empty())
            need(launch_hold(context_, places_, true), "acs_launch");
        for (void *place : places_)
            need(acs_free(context_, place) != 0, "acs_free");
    }

    std::string &why() { return why_; }

private:
    void need(bool ok, const char *what)
    {
        if (!ok && why_.empty())
            why_ = acs_error_text(what);
    }

    void begin(const task_block &b, void *place)
    {
        if (b.in)
            need(acs_memcpy(context_, place, b.in, b.bytes) != 0, "acs_memcpy");
        else if (b.zero)
            need(acs_memset(context_, place, 0, b.bytes) != 0, "acs_memset");
    }

    void launch(const op &o, uint32_t argument_type) { need(acs_queue(context_, o, argument_type) != 0, op_name(o)); }

    acs_context *const context_;
    job &job_;
    std::vector<void *> places_;
    std::string why_;
};

} // namespace

group_end submit_group(acs_context *context, job &j, const group_plan &plan, std::string &why)
{
    acs_group_params params = {};
    if (acs_group_begin(context, 0) != ACS_OK) {
        why = acs_error_text("acs_group_begin");
        return GROUP_FAILED;
    }
    group_program program(context, j);
    program.queue(plan.hold);
    why = program.why();
    params.size = sizeof params;
    params.slots = plan.slots;
    acs_status status = ACS_OK;
    acs_group_report report = {};
    report.size = sizeof report;
    if (why.empty() && (status = acs_group_submit(context, &params, &report)) == ACS_OK) {
        if (!plan.hold || report.memory_peak >= report.memory_sum)
            return GROUP_QUEUED;
        why = "blocks that are in use from begin to end share memory";
        return GROUP_FAILED;
    }
    if (why.empty())
        why = acs_error_text("acs_group_submit");
    (void)acs_group_cancel(context); /* after some failures it is gone already */
    return status == ACS_ERR_MEMORY ? GROUP_EXHAUSTED : GROUP_FAILED;
}

acs_statistics statistics_of(acs_context *context)
{
    acs_statistics s = {};
    s.size = sizeof s;
    require(acs_stats(context, &s) == ACS_OK, acs_error_text("acs_stats").c_str());
    return s;
}

uint64_t own_copies(acs_context *context)
{
    const acs_statistics s = statistics_of(context);
    return s.memory_spilled + s.memory_returned + s.transfer_bytes;
}

} // namespace bench

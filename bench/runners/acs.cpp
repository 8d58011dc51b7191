/*
 * Owns ACS as a runner, in each of its modes. Called by the measuring loop. Uses the public interface only, as any
 * program does; options come from the environment, then from the mode.
 */
#include <cstring>

#include "acs_context.h"
#include "runners.h"

namespace bench {

namespace {

struct mode {
    const char *name, *about;
    void (*set)(acs_options &);
    bool gpu = true;
    bool first = false;  /* a context of its own for each run, opened before the clock starts */
    bool repeat = false; /* each run is a pass of a repeat */
    bool bodies = false; /* the context knows the program's executors */
    bool decides = false; /* decisions stay on the device, where the program has a version for that */
    bool scanned = false; /* footprints of kernels are those of acs-scan */
};

/* One issue method for what it fits: no replays of what recurs, which go by cached graphs. */
void only(acs_options &o, int method)
{
    o.issue = method;
    o.repeats = ACS_REPEATS_NAMED;
}

const mode modes[] = {
    {"acs", "ACS with its default options", [](acs_options &) {}},
    {"acs-s4", "ACS, 4 streams", [](acs_options &o) { o.streams = 4; }},
    {"acs-launch", "ACS, a launch for each kernel (ACS_ISSUE=launch)",
     [](acs_options &o) { o.issue = ACS_ISSUE_LAUNCH; }},
    {"acs-replay", "ACS, kept graphs of what was seen before (ACS_ISSUE=replay)",
     [](acs_options &o) { only(o, ACS_ISSUE_REPLAY); }},
    {"acs-resident", "ACS, one kernel runs the blocks of others, up to 256 at once (ACS_ISSUE=resident, ACS_WINDOW=512)",
     [](acs_options &o) {
         only(o, ACS_ISSUE_RESIDENT);
         o.window = 512;
     },
     true, false, false, true},
    {"acs-resident-inline", "the same without threads of its own",
     [](acs_options &o) {
         only(o, ACS_ISSUE_RESIDENT);
         o.window = 512;
         o.workers = 0;
     },
     true, false, false, true},
    {"acs-bodies", "ACS with its default options, which knows bodies of the kernels", [](acs_options &) {}, true, false,
     false, true},
    {"acs-inline", "ACS without threads of its own: the program's thread issues while it waits",
     [](acs_options &o) { o.workers = 0; }},
    {"acs-host", "ACS, an op is issued when its upstream ops have retired (ACS_WAIT=host)",
     [](acs_options &o) { o.wait = ACS_WAIT_HOST; }},
    {"acs-e4", "ACS, 4 threads that run kernels", [](acs_options &o) { o.executors = 4; }, false},
    {"acs-first", "ACS in a context that was opened for this run and has learnt nothing", [](acs_options &) {}, true, true},
    {"acs-repeat", "ACS, and each run is a pass of a repeat (acs_repeat_begin)", [](acs_options &) {}, true, false, true},
    {"acs-decided", "ACS, and what the program decides by reads stays on the device: sections, loops",
     [](acs_options &) {}, true, false, false, false, true},
    {"acs-scanned", "ACS, with the footprints that acs-scan has found in the kernels", [](acs_options &) {}, true, false,
     false, false, false, true},
    {"acs-named", "ACS, which replays only what the program names, here nothing (ACS_REPEATS=named)",
     [](acs_options &o) { o.repeats = ACS_REPEATS_NAMED; }},
    {"acs-off", "ACS switched off (ACS_DISABLE=1): one stream, program order", [](acs_options &o) { o.disable = 1; }},
};

class acs_runner : public runner {
public:
    acs_runner(const machine &m, const mode &how) : machine_(m), how_(how) { open(); }

    ~acs_runner() override { close(); }
    acs_runner(const acs_runner &) = delete;
    acs_runner &operator=(const acs_runner &) = delete;

    /* A program is about to come. It has a context of its own: the library knows nothing of those before it. */
    void choose(int) override { reopen(); }

    /* The worker looks for work for a while before it sleeps (ACS_SPIN_US). */
    void ready() override
    {
        if (how_.first)
            reopen();
        (void)acs_wait(context_, acs_memset(context_, landing_, 0, 4));
    }

    void launch(const op &o) override
    {
        acs_op queued = 0;
        if (how_.repeat && !in_pass_)
            in_pass_ = keep(acs_repeat_begin(context_, 1), "acs_repeat_begin");
        switch (o.kind) {
        case OP_KERNEL:
            queued = how_.scanned ? acs_launch_declared(context_, o) : acs_launch_kernel(context_, o);
            break;
        case OP_COPY: queued = acs_memcpy(context_, o.to, o.from, o.bytes); break;
        case OP_FILL: queued = acs_memset(context_, o.to, o.value, o.bytes); break;
        case OP_CALL: queued = launch_call(o); break;
        case OP_READ: break;
        }
        if (queued == 0 && failure_.empty())
            failure_ = acs_error_text(op_name(o));
    }

    void read(void *to, const void *from, size_t bytes) override
    {
        const acs_op queued = acs_memcpy(context_, landing_, from, bytes);
        if ((queued == 0 || acs_wait(context_, queued) != ACS_OK) && failure_.empty())
            failure_ = acs_error_text("reading back");
        memcpy(to, landing_, bytes);
    }

    bool decides() const override { return how_.decides; }

    void begin_if(const uint32_t *word, bool unless) override
    {
        (void)(unless ? keep(acs_unless(context_, word), "acs_unless") : keep(acs_if(context_, word), "acs_if"));
    }

    void end_if() override { (void)keep(acs_end_if(context_), "acs_end_if"); }

    void loop(const uint32_t *stop, uint32_t most, const std::function<void()> &body) override
    {
        if (!how_.decides) {
            runner::loop(stop, most, body);
            return;
        }
        acs_loop_params p = {};
        p.size = sizeof p;
        p.stop = stop;
        p.most = most;
        p.user = const_cast<std::function<void()> *>(&body);
        p.body = [](acs_context *, uint32_t, void *user) {
            (*static_cast<const std::function<void()> *>(user))();
            return 0;
        };
        (void)keep(acs_loop(context_, &p), "acs_loop");
    }

    void flush() override
    {
        if (in_pass_)
            (void)keep(acs_repeat_end(context_), "acs_repeat_end");
        in_pass_ = false;
    }

    std::string prepare(const trace &t, const dag &) override
    {
        if (how_.decides && !t.decided)
            return "the program has no decisions that can stay on the device";
        if (how_.scanned) {
            const std::string why = acs_declare_scanned(t.ops);
            if (!why.empty())
                return why;
        }
        before_.size = sizeof before_;
        (void)acs_stats(context_, &before_);
        return "";
    }

    /* Of the runs since prepare(). */
    std::string note() const override
    {
        acs_statistics s = {};
        char text[200];
        s.size = sizeof s;
        if (acs_stats(context_, &s) != ACS_OK || s.queued == before_.queued)
            return "";
        const auto per_op = [&](uint64_t acs_statistics::*count) {
            return static_cast<double>(s.*count - before_.*count) / static_cast<double>(s.queued - before_.queued);
        };
        snprintf(text, sizeof text, "per op %.2f edges, %.2f waits, %.2f marks, %.2f submissions",
                 per_op(&acs_statistics::edges), per_op(&acs_statistics::waits_sent), per_op(&acs_statistics::marks),
                 per_op(&acs_statistics::submissions));
        return text + methods(s);
    }

    std::string finish() override
    {
        (void)keep(acs_sync(context_), "acs_sync");
        std::string what;
        what.swap(failure_);
        return what;
    }

private:
    /* Keep the first failure. @return whether the call succeeded. */
    bool keep(acs_status status, const char *call)
    {
        if (status != ACS_OK && failure_.empty())
            failure_ = acs_error_text(call);
        return status == ACS_OK;
    }

    void reopen()
    {
        close();
        open();
        before_ = {};
    }

    void open()
    {
        acs_options o = acs_options_for(machine_);
        how_.set(o);
        context_ = acs_open_for(machine_, o);
        if (how_.bodies)
            acs_add_executors(context_);
        if (how_.scanned)
            acs_register_memory(context_);
        require(acs_malloc(context_, READ_BYTES, ACS_MEMORY_HOST, &landing_) == ACS_OK,
                acs_error_text("acs_malloc").c_str());
    }

    void close()
    {
        acs_free(context_, landing_);
        (void)acs_close(context_);
    }

    /* How the kernels were issued, in percent. */
    std::string methods(const acs_statistics &s) const
    {
        static const char *const names[ACS_ISSUE_COUNT] = {"auto", "launch", "replay", "resident"};
        std::string text;
        const uint64_t kernels = s.kernels - before_.kernels + s.calls_as_kernels - before_.calls_as_kernels;
        for (int i = 0; kernels && i < ACS_ISSUE_COUNT; i++) {
            const uint64_t issued = s.issued_by[i] - before_.issued_by[i];
            if (issued && issued != kernels)
                text += ", " + std::to_string(100 * issued / kernels) + " % by " + names[i];
        }
        if (kernels && s.replayed != before_.replayed)
            text += ", " + std::to_string(100 * (s.replayed - before_.replayed) / kernels) + " % in replays";
        if (s.not_run != before_.not_run)
            text += ", " + std::to_string(100 * (s.not_run - before_.not_run) / (s.queued - before_.queued)) +
                    " % not run";
        if (s.bundles_refused != before_.bundles_refused)
            text += ", " + std::to_string(s.bundles_refused - before_.bundles_refused) + " bundles refused";
        return text;
    }

    acs_op launch_call(const op &o)
    {
        acs_call_params p = *o.call;
        p.uses = {o.segments, o.segment_count, nullptr, nullptr, 0};
        return acs_call(context_, &p);
    }

    const machine machine_;
    const mode &how_;
    acs_context *context_ = nullptr;
    acs_statistics before_ = {};
    void *landing_ = nullptr;
    bool in_pass_ = false;
    std::string failure_;
};

} // namespace

void add_acs(std::vector<runner_kind> &list)
{
    for (const mode &how : modes)
        list.push_back({how.name, how.about, how.gpu, true,
                        [&how](const machine &m) { return std::unique_ptr<runner>(new acs_runner(m, how)); }, OURS});
}

} // namespace bench

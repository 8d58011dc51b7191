/*
 * Owns hand-written streams and events: a whole run planned beforehand, issued by one to four threads. Called by the
 * program's thread, which issues its own share; helpers issue theirs. An event is recorded only where somebody waits, and
 * a wait that crosses threads is sent only after the record was.
 */
#include "streams.h"

#include <algorithm>

#include "memory.h"
#include "runners.h"

#include <cuda_runtime_api.h>

namespace bench {

streams_runner::streams_runner(const machine &m, const std::vector<streams_setting> &settings, const plan_costs &costs)
    : planned_runner(m), settings_(settings), costs_(costs), crew_(m)
{
}

streams_runner::~streams_runner()
{
    for (void *e : pool_)
        (void)cudaEventDestroy(static_cast<cudaEvent_t>(e));
}

std::string streams_runner::setting() const
{
    const streams_setting &s = settings_[static_cast<size_t>(variant_)];
    std::string text = std::to_string(s.streams) + " streams";
    if (s.threads > 1)
        text += ", " + std::to_string(s.threads) + " threads";
    return text;
}

std::string streams_runner::note() const
{
    size_t events = 0;
    for (const plan_step &s : plan_.steps)
        events += s.record;
    return "events " + std::to_string(events) + ", waits " + std::to_string(plan_.waits.size());
}

/* Several threads that launch at once slow each other: what a call costs one of them, on an H200's host. */
static double launch_us(const plan_costs &costs, int threads)
{
    return costs.launch_us * (threads == 1 ? 1.0 : threads == 2 ? 1.4 : threads == 3 ? 2.0 : 2.5);
}

std::string streams_runner::plan_run()
{
    const streams_setting &s = settings_[static_cast<size_t>(variant_)];
    plan_costs costs = costs_;

    costs.launch_us = launch_us(costs, s.threads);
    plan_ = make_plan(trace_.ops, dag_, s.streams, s.threads, costs);
    while (slots_.size() <= static_cast<size_t>(s.streams))
        slots_.emplace_back(new slot(machine_.gpu, static_cast<int>(slots_.size())));
    for (const plan_step &step : plan_.steps)
        slots_[step.stream]->reserve(trace_.ops[step.op]);
    crew_.grow(s.threads - 1);
    make_lanes();
    make_events();
    return "";
}

void streams_runner::make_lanes()
{
    size_t step = 0;

    lanes_.assign(static_cast<size_t>(plan_.threads), lane());
    thread_.assign(trace_.ops.size(), 0);
    stream_.assign(trace_.ops.size(), 0);
    for (size_t end : plan_.stretch_end) {
        for (; step < end; step++) {
            const int thread = plan_.thread_of(plan_.steps[step].stream);
            thread_[plan_.steps[step].op] = thread;
            stream_[plan_.steps[step].op] = plan_.steps[step].stream;
            lanes_[static_cast<size_t>(thread)].steps.push_back(static_cast<uint32_t>(step));
        }
        for (lane &l : lanes_)
            l.stretch_end.push_back(l.steps.size());
    }
}

void streams_runner::make_events()
{
    size_t used = 0;

    events_.assign(trace_.ops.size(), nullptr);
    recorded_.reset(new std::atomic<uint32_t>[trace_.ops.size()]());
    run_ = 0;
    for (const plan_step &step : plan_.steps) {
        if (!step.record)
            continue;
        if (used == pool_.size()) {
            cudaEvent_t e;
            require_cuda(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreateWithFlags");
            pool_.push_back(e);
        }
        events_[step.op] = pool_[used++];
    }
}

void streams_runner::begin()
{
    run_++;
    open_.store(0, std::memory_order_relaxed);      /* helpers sleep: starting them hands both over */
    closed_.store(false, std::memory_order_relaxed);
    crew_.start(plan_.threads - 1, [this](int thread) { help(thread); });
    crew_.until_awake();
}

void streams_runner::help(int thread)
{
    const size_t all = plan_.stretch_end.size();
    for (size_t stretch = 0; stretch < all; stretch++) {
        backoff b;
        while (open_.load(std::memory_order_acquire) <= stretch) { /* A: the ops held for it */
            /* Closed is read first: what was opened before the run was closed is still issued. */
            if (closed_.load(std::memory_order_acquire) && open_.load(std::memory_order_acquire) <= stretch)
                return;
            b.pause();
        }
        issue_lane(thread, stretch);
    }
}

void streams_runner::issue(size_t stretch)
{
    open_.store(stretch + 1, std::memory_order_release); /* A */
    issue_lane(0, stretch);
    if (stretch_end(stretch) > stretch_begin(stretch) && held_[stretch_end(stretch) - 1]->kind == OP_READ)
        await_read(stretch);
}

void streams_runner::end()
{
    closed_.store(true, std::memory_order_release);
    crew_.wait();
}

void streams_runner::issue_lane(int thread, size_t stretch)
{
    const lane &l = lanes_[static_cast<size_t>(thread)];
    for (size_t k = stretch == 0 ? 0 : l.stretch_end[stretch - 1]; k < l.stretch_end[stretch]; k++)
        issue_step(thread, l.steps[k]);
}

void streams_runner::issue_step(int thread, size_t step)
{
    const plan_step &s = plan_.steps[step];

    for (uint32_t w = 0; w < s.wait_count; w++)
        wait_for_event(thread, s, plan_.waits[s.first_wait + w]);
    send(step, *held_[s.op], *slots_[s.stream]);
    if (s.record)
        record_event(s);
}

/* Nothing may keep an op from being marked as recorded, or another thread would wait for ever: failures are noted only. */
void streams_runner::record_event(const plan_step &step)
{
    const cudaStream_t stream = static_cast<cudaStream_t>(slots_[step.stream]->stream());
    failure_.cuda(cudaEventRecord(static_cast<cudaEvent_t>(events_[step.op]), stream), "cudaEventRecord");
    recorded_[step.op].store(run_, std::memory_order_release); /* B */
}

void streams_runner::wait_for_event(int thread, const plan_step &step, uint32_t up)
{
    if (thread_[up] != thread) {
        backoff b;
        while (recorded_[up].load(std::memory_order_acquire) != run_) /* B: CUDA has taken the record */
            b.pause();
    }
    const cudaStream_t stream = static_cast<cudaStream_t>(slots_[step.stream]->stream());
    failure_.cuda(cudaStreamWaitEvent(stream, static_cast<cudaEvent_t>(events_[up]), 0), "cudaStreamWaitEvent");
}

void streams_runner::await_read(size_t stretch)
{
    const size_t k = stretch_end(stretch) - 1;

    failure_.cuda(cudaEventSynchronize(static_cast<cudaEvent_t>(events_[k])), "cudaEventSynchronize");
    slots_[stream_[k]]->fetch(*held_[k]);
}

void streams_runner::send(size_t step, const op &o, slot &s)
{
    (void)step;
    s.issue(o, failure_);
}

static std::vector<streams_setting> all_settings(const machine &m)
{
    std::vector<streams_setting> list;
    for (int threads : {1, 2, 3, 4})
        for (int streams : {4, 8, 16, 32})
            if (threads == 1 || has_cpus_for(m, threads - 1))
                list.push_back({streams, threads});
    return list;
}

void add_graph1(std::vector<runner_kind> &list);

void add_streams(std::vector<runner_kind> &list)
{
    list.push_back({"streams", "hand-written streams and events, planned with knowledge of the whole run", true, false,
                    [](const machine &m) {
                        return std::unique_ptr<runner>(new streams_runner(m, all_settings(m), plan_costs()));
                    }});
    add_graph1(list);
}

} // namespace bench

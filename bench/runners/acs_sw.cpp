/*
 * Owns the rival ACS-SW, as the paper describes it: the program's thread fills a FIFO, a thread of its own moves ops from
 * there into the window, and each of four or eight threads launches one ready op at a time into its stream, waits for the
 * stream, and removes the op. On the CPU the same threads run host bodies. Shares no code with the library.
 */
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

#include "acs_sw_window.h"
#include "runners.h"
#include "streams_crew.h"
#include "streams_slot.h"

namespace bench {

namespace {

class acs_sw_runner : public runner {
public:
    acs_sw_runner(const machine &m, int workers) : machine_(m), workers_(workers), crew_(m)
    {
        for (int k = 0; k < workers; k++)
            slots_.emplace_back(new slot(m.gpu, k));
    }

    std::string setting() const override { return std::to_string(workers_) + " worker threads"; }

    std::string prepare(const trace &t, const dag &) override
    {
        if (!has_cpus_for(machine_, workers_ + 1))
            return "needs " + std::to_string(workers_ + 2) + " CPUs to pin its threads to";
        crew_.grow(workers_ + 1);
        for (auto &s : slots_)
            for (const op &o : t.ops)
                s->reserve(o);
        return why_not(t, machine_.gpu);
    }

    void ready() override
    {
        wake();
        crew_.until_awake();
    }

    void launch(const op &o) override
    {
        wake();
        std::lock_guard<std::mutex> guard(fifo_lock_);
        fifo_.push_back(&o);
    }

    /* Goes through the window like any op, so it waits for those that write the range and no others. */
    void read(void *to, const void *from, size_t bytes) override
    {
        const acs_segment segment = ACS_IN(from, bytes);
        op o = {};
        o.kind = OP_READ;
        o.to = to;
        o.from = from;
        o.bytes = bytes;
        o.segments = &segment;
        o.segment_count = 1;
        read_done_.store(false, std::memory_order_relaxed); /* the FIFO's lock hands it over */
        launch(o);
        backoff b;
        while (!read_done_.load(std::memory_order_acquire)) /* A: what was read */
            b.pause();
    }

    std::string finish() override
    {
        if (awake_) {
            ending_.store(true, std::memory_order_release); /* B: all ops of the run are in the FIFO */
            crew_.wait();
            awake_ = false;
        }
        wait_for_device(machine_.gpu, failure_);
        return failure_.take();
    }

private:
    void wake()
    {
        if (awake_)
            return;
        awake_ = true;
        ending_.store(false, std::memory_order_relaxed); /* all threads sleep: starting them hands it over */
        drained_.store(false, std::memory_order_relaxed);
        crew_.start(workers_ + 1, [this](int thread) {
            if (thread == 1)
                fill_window();
            else
                work(*slots_[static_cast<size_t>(thread - 2)]);
        });
    }

    /* The window module: whenever there is a vacancy and an op in the FIFO, moves it. */
    void fill_window()
    {
        backoff b;
        for (;;) {
            const bool ending = ending_.load(std::memory_order_acquire); /* B */
            const op *const o = room() ? pop() : nullptr;
            if (o) {
                std::lock_guard<std::mutex> guard(window_lock_);
                window_.insert(o);
                b = backoff();
            } else if (ending && nothing_left()) {
                drained_.store(true, std::memory_order_release); /* C: nothing will be ready again */
                return;
            } else {
                b.pause();
            }
        }
    }

    const op *pop()
    {
        std::lock_guard<std::mutex> guard(fifo_lock_);
        if (fifo_.empty())
            return nullptr;
        const op *const o = fifo_.front();
        fifo_.pop_front();
        return o;
    }

    /* Only this thread inserts, so the room stays. */
    bool room()
    {
        std::lock_guard<std::mutex> guard(window_lock_);
        return !window_.full();
    }

    bool nothing_left()
    {
        std::lock_guard<std::mutex> fifo_guard(fifo_lock_);
        std::lock_guard<std::mutex> window_guard(window_lock_);
        return fifo_.empty() && window_.empty();
    }

    /* The scheduler module: one ready op after another, each waited for. */
    void work(slot &s)
    {
        backoff b;
        while (!drained_.load(std::memory_order_acquire)) { /* C */
            const op *o = nullptr;
            const int entry = take(&o);
            if (entry < 0) {
                b.pause();
                continue;
            }
            s.issue(*o, failure_);
            s.wait(failure_);
            const bool read = o->kind == OP_READ;
            if (read)
                s.fetch(*o);
            remove(entry);
            if (read)
                read_done_.store(true, std::memory_order_release); /* A: the op lies on the reader's stack until then */
            b = backoff();
        }
    }

    int take(const op **o)
    {
        std::lock_guard<std::mutex> guard(window_lock_);
        const int entry = window_.take();
        if (entry >= 0)
            *o = window_.at(entry);
        return entry;
    }

    void remove(int entry)
    {
        std::lock_guard<std::mutex> guard(window_lock_);
        window_.remove(entry);
    }

    const machine machine_;
    const int workers_;
    std::vector<std::unique_ptr<slot>> slots_;
    failure failure_;
    std::mutex fifo_lock_; /* taken before window_lock_ where both are */
    std::deque<const op *> fifo_;
    std::mutex window_lock_;
    sw_window window_;
    bool awake_ = false; /* the program's thread's own */
    std::atomic<bool> ending_{false}, drained_{false}, read_done_{false};
    crew crew_; /* last: its threads end before what they use */
};

} // namespace

void add_acs_sw(std::vector<runner_kind> &list)
{
    const auto add = [&list](const char *name, const char *about, int workers) {
        list.push_back({name, about, BENCH_CUDA != 0, true, [workers](const machine &m) {
                            return std::unique_ptr<runner>(new acs_sw_runner(m, workers));
                        }});
    };
    add("acs-sw-4", "ACS-SW as published: a window of 32, 4 threads that wait for their stream after each op", 4);
    add("acs-sw-8", "ACS-SW as published: a window of 32, 8 threads that wait for their stream after each op", 8);
}

} // namespace bench

/*
 * Owns the helper threads of runners: creation, pinning, sleep and wake-up. Called by the program's thread alone. Knows
 * neither ops nor CUDA.
 */
#include "streams_crew.h"

#include <sched.h>
#include <unistd.h>

namespace bench {

void backoff::pause()
{
    const unsigned POLLS = 256; /* then the CPU may be wanted by the thread that is waited for */
    if (++count_ >= POLLS) {
        count_ = 0;
        sched_yield();
        return;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

bool has_cpus_for(const machine &m, int others)
{
    return m.first_cpu < 0 || m.first_cpu + others < sysconf(_SC_NPROCESSORS_ONLN);
}

crew::~crew()
{
    {
        std::lock_guard<std::mutex> guard(lock_);
        ending_ = true;
    }
    wake_.notify_all();
    for (std::thread &t : threads_)
        t.join();
}

void crew::grow(int count)
{
    while (static_cast<int>(threads_.size()) < count) {
        const int number = static_cast<int>(threads_.size()) + 1;
        threads_.emplace_back([this, number] { work(number); });
    }
}

void crew::start(int count, const std::function<void(int)> &job)
{
    if (count == 0)
        return;
    busy_.store(count, std::memory_order_relaxed); /* the lock below hands both over */
    asleep_.store(count, std::memory_order_relaxed);
    {
        std::lock_guard<std::mutex> guard(lock_);
        job_ = job;
        wanted_ = count;
        round_++;
    }
    wake_.notify_all();
}

void crew::until_awake()
{
    backoff b;
    while (asleep_.load(std::memory_order_relaxed) > 0) /* nothing is handed over: only when they run is of interest */
        b.pause();
}

void crew::wait()
{
    backoff b;
    while (busy_.load(std::memory_order_acquire) > 0) /* A: all that the jobs did */
        b.pause();
}

void crew::work(int number)
{
    unsigned seen = 0;

    pin_thread(machine_, number);
    for (;;) {
        std::function<void(int)> job;
        {
            std::unique_lock<std::mutex> guard(lock_);
            wake_.wait(guard, [&] { return ending_ || (round_ != seen && number <= wanted_); });
            if (ending_)
                return;
            seen = round_;
            job = job_;
        }
        asleep_.fetch_sub(1, std::memory_order_relaxed); /* see until_awake */
        job(number);
        busy_.fetch_sub(1, std::memory_order_release); /* A */
    }
}

} // namespace bench

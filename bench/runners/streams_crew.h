/*
 * Threads that runners keep from run to run: asleep between runs, awake and polling within one.
 */
#ifndef BENCH_STREAMS_CREW_H
#define BENCH_STREAMS_CREW_H

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runner.h"

namespace bench {

/** Between two polls of a word that another thread will write: lets the CPU's twin, and after a while others, run. */
class backoff {
public:
    void pause();

private:
    unsigned count_ = 0;
};

/** Whether the machine has CPUs for the program's thread and so many others, pinned as machine says. */
bool has_cpus_for(const machine &m, int others);

class crew {
public:
    explicit crew(const machine &m) : machine_(m) {}
    ~crew();
    crew(const crew &) = delete;
    crew &operator=(const crew &) = delete;

    /** Creates threads until there are `count`, each pinned to the CPU of its number, from 1; not timed. */
    void grow(int count);
    /** Wakes threads 1 to `count`, each of which calls job(number) once. They must all have returned before: wait(). */
    void start(int count, const std::function<void(int)> &job);
    /** Polls until all of them run. */
    void until_awake();
    /** Polls until every job has returned. */
    void wait();

private:
    void work(int number);

    const machine machine_;
    std::vector<std::thread> threads_;
    std::mutex lock_; /* guards job_, wanted_, round_, ending_ */
    std::condition_variable wake_;
    std::function<void(int)> job_;
    int wanted_ = 0;
    unsigned round_ = 0;
    bool ending_ = false;
    std::atomic<int> busy_{0}, asleep_{0};
};

} // namespace bench

#endif

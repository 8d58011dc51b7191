/*
 * A way to execute a program's ops: plain streams, graphs, ACS, a rival's runtime. One file each under bench/runners.
 *
 * The harness calls prepare() whenever the program's ops are not those of the run before, then times
 *     program.run(runner); runner.flush(); | submitted |  runner.finish(); | complete |
 * with the same synchronisation of the device behind it for all. prepare() is not timed, so that rivals may plan with
 * knowledge of the whole run, which a program that launches as it goes does not have.
 */
#ifndef BENCH_RUNNER_H
#define BENCH_RUNNER_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dag.h"
#include "memory.h"
#include "op.h"

namespace bench {

class runner : public sink {
public:
    /**
     * Other settings to try (streams, threads); the harness tries each in warm-up and keeps the fastest. choose() is called
     * at least once for each program, and prepare() follows.
     */
    virtual int variants() const { return 1; }
    virtual void choose(int variant) { (void)variant; }
    /** The setting chosen, for reports: "8 streams, 2 threads"; empty if there is nothing to choose. */
    virtual std::string setting() const { return ""; }
    /** Look at a run before it is timed. @return empty, or why this runner cannot run it. */
    virtual std::string prepare(const trace &t, const dag &d)
    {
        (void)t;
        (void)d;
        return "";
    }
    /**
     * Called right before the clock starts, for each run: wakes the threads that a program would have awake while it
     * works. A run is a piece out of the middle of a program, not its first launch after a pause.
     */
    virtual void ready() {}
    /** Calls `body`, which runs the program and finishes: for runtimes that work inside a region of their own. */
    virtual void around(const std::function<void()> &body) { body(); }
    /** Hand over all that is held back. Called once after the program's run(). */
    virtual void flush() {}
    /** Wait until everything is complete. @return empty, or what failed. */
    virtual std::string finish() = 0;
    /** Facts about the last run for reports, "updates 12, rebuilds 0"; may be empty. */
    virtual std::string note() const { return ""; }
};

/** What runners are made from. */
struct machine {
    bool gpu;
    int first_cpu; /* threads are pinned from this CPU on, the program's own first; -1: not pinned */
};

/** What a runner is in a comparison. */
enum runner_role {
    RIVAL, /* issues what it is given, as a program would that does without ACS */
    OURS,  /* ACS */
    BOUND  /* knows the run beforehand: how fast it could be, not something that a dynamic program can have */
};

struct runner_kind {
    const char *name;
    const char *about; /* one line for --help and reports */
    bool gpu, host;    /* where it runs */
    std::function<std::unique_ptr<runner>(const machine &)> make;
    runner_role role = RIVAL;
};

/** Every runner built in, in the order of reports; the first one for a machine is the serial one. */
const std::vector<runner_kind> &runner_kinds();

/** A runner in use; kept from program to program, so that contexts and threads are made once. */
struct contestant {
    const runner_kind *kind;
    std::unique_ptr<runner> way;
};

/**
 * Makes the runners of these names, or with "all" every one that runs on the machine, in the order of the list.
 * @param[out] unknown  the first name that is none, or that does not run on this machine; else empty.
 */
std::vector<contestant> make_contestants(const machine &m, const std::vector<std::string> &names, std::string *unknown);

/** CPUs of the machine, whatever the calling thread is pinned to. */
int cpu_count();
/** Pin the calling thread to the machine's `index`th CPU (0: the program's); nothing if it is not to be pinned. */
void pin_thread(const machine &m, int index);

} // namespace bench

#endif

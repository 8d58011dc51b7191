/*
 * Executes ops: through ACS, on one stream, or on one stream per scene; on the GPU or on the CPU.
 */
#ifndef PHYSICS_RUNNER_H
#define PHYSICS_RUNNER_H

#include <functional>
#include <memory>

#include "program.h"

class runner {
public:
    virtual ~runner() {}
    /** Do the ops need footprints? Runners that don't use them do not pay for them. */
    virtual bool footprints() const { return false; }
    /** Who decides which contacts there are; HOST_DECIDES: what runners do that know nothing of words on the device. */
    virtual decider decides() const { return HOST_DECIDES; }
    /**
     * A step of all scenes begins. @return what it has, if the runner has started all of it, as it was the last time;
     * NULL: it wants the step's ops, and `step_ends` behind them.
     */
    virtual const launch_counts *step_begins() { return nullptr; }
    virtual void step_ends(const launch_counts &of_step) { (void)of_step; }
    /** Are sections decided on the device? Others run all of their ops. */
    virtual bool has_sections() const { return false; }
    /** Starts an op. */
    virtual void launch(const op &o) = 0;
    /** Returns when the copy that fills this host buffer of the scene is complete. */
    virtual void wait_copy(int scene, int copy) = 0;
    /** Returns when everything launched is complete. */
    virtual void finish() = 0;
    /** How many threads issue, each for scenes of its own; 1: one thread for all of them. */
    virtual int threads(int scenes) const { return scenes > 0 ? 1 : 0; }
};

/** Stops the program with a message unless the status is ACS_OK or the CUDA code is 0. */
void require_acs(acs_status status, const char *what);
void require_cuda(int code, const char *what);

std::unique_ptr<runner> make_acs_runner(acs_context *context, int scenes, decider d = KERNELS_DECIDE);
/**
 * The same, but the first step becomes a CUDA graph, whose edges are those of the footprints, and each step is a launch
 * of it. Only on a GPU, with an even number of substeps, and not if the host decides: then steps have other ops.
 */
std::unique_ptr<runner> make_captured_runner(acs_context *context, int scenes, decider d = KERNELS_DECIDE);
/** Plain launches to `streams` streams, scene k to stream k mod streams. */
std::unique_ptr<runner> make_stream_runner(int streams, int scenes, decider d = HOST_DECIDES);
/** The same on CPU threads: each thread runs its scenes' kernels in place. */
std::unique_ptr<runner> make_inline_runner(bool thread_per_scene, decider d = HOST_DECIDES);

/** Copy between the host and an arena while nothing runs. */
void memory_copy(bool gpu, void *to, const void *from, size_t bytes);

#endif

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

std::unique_ptr<runner> make_acs_runner(acs_context *context, int scenes);
/** Plain launches to `streams` streams, scene k to stream k mod streams. */
std::unique_ptr<runner> make_stream_runner(int streams, int scenes);
/** The same on CPU threads: each thread runs its scenes' kernels in place. */
std::unique_ptr<runner> make_inline_runner(bool thread_per_scene);

/** Copy between the host and an arena while nothing runs. */
void memory_copy(bool gpu, void *to, const void *from, size_t bytes);

#endif

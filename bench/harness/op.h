/*
 * What every runner is given: ops in program order, with the bytes that each one reads and writes.
 *
 * A kernel takes one struct by value (wrappers/acs_dual.hpp), so that all runners handle arguments alike. An op and all
 * that it points to stay where they are until the runner's finish() has returned.
 */
#ifndef BENCH_OP_H
#define BENCH_OP_H

#include <cstddef>
#include <cstdint>
#include <functional>

#include "acs.h"
#include "acs_dual.hpp"

namespace bench {

enum op_kind : uint32_t {
    OP_KERNEL,
    OP_COPY, /* bytes from `from` to `to` */
    OP_FILL, /* bytes of `value` at `to` */
    OP_CALL, /* a library call: `call`, whose own `uses` is not looked at */
    OP_READ  /* the program reads `bytes` at `from` and waits for them before it launches anything else */
};

struct op {
    op_kind kind;
    const acs_dual_kernel *kernel;
    uint32_t grid, block; /* CTAs, threads of one */
    uint32_t arg_bytes;
    const void *args;
    void *to;
    const void *from;
    size_t bytes;
    int value;
    uint32_t segment_count;
    const acs_segment *segments;
    const acs_call_params *call;
    float us; /* how long it is expected to run on the device, for runners that plan; 0: unknown */
};

/** Name for reports: the kernel's, or what kind of op it is. Static storage. */
const char *op_name(const op &o);

/** Takes ops in program order. */
class sink {
public:
    virtual ~sink() {}
    virtual void launch(const op &o) = 0;
    /**
     * A decision of the program: copy `bytes` (at most READ_BYTES) at `from` to host memory `to` and return when they are
     * there. Ops launched before that do not touch them may still run.
     */
    virtual void read(void *to, const void *from, size_t bytes) = 0;

    /**
     * Whether decisions stay on the device. A program that has a version for that (program::decided) then makes them by
     * sections, and reads nothing back.
     */
    virtual bool decides() const { return false; }
    /**
     * Ops up to end_if() run only if the word in device memory is not zero; with `unless`: only if it is. Only where
     * decides(). Sections may be nested.
     */
    virtual void begin_if(const uint32_t *word, bool unless);
    virtual void end_if() {}
    /** As: for (i = 0; i < most && !*stop; i++) body(). Reads the word before each iteration, unless decides(). */
    virtual void loop(const uint32_t *stop, uint32_t most, const std::function<void()> &body);
};

enum { READ_BYTES = 4096 };

} // namespace bench

#endif

/*
 * A program to be measured: its buffers, what it launches, and whether its result is right.
 *
 * A workload derives from `program`, makes its buffers in its constructor, launches in run() and compares with an
 * oracle in check(). The same object is run many times by many runners: reset() puts every buffer back first.
 */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "dag.h"
#include "memory.h"
#include "op.h"

namespace bench {

/** Segments of a typed array. */
template <class T> acs_segment in(const T *p, size_t count) { return ACS_IN(p, count * sizeof(T)); }
template <class T> acs_segment out(const T *p, size_t count) { return ACS_OUT(p, count * sizeof(T)); }
template <class T> acs_segment inout(const T *p, size_t count) { return ACS_INOUT(p, count * sizeof(T)); }

class program {
public:
    explicit program(memory &m) : memory_(m) {}
    virtual ~program();
    program(const program &) = delete;
    program &operator=(const program &) = delete;

    /** Launches everything, in program order, the same ops each time that the buffers were reset. */
    virtual void run(sink &s) = 0;
    /** Compares the result with an oracle computed on the CPU. @return empty if right, else what differs, in one line. */
    virtual std::string check() = 0;

    /** Puts every buffer back to its first contents; waits for that. Buffers without contents are filled with 0xff (NaN). */
    virtual void reset();
    /** Called before each repetition of a measurement. @return whether the program now launches other ops than before. */
    virtual bool vary(uint64_t repetition)
    {
        (void)repetition;
        return false;
    }
    /** Whether run() has a version for sinks that decide on the device. Its result is the same bit for bit. */
    virtual bool decided() const { return false; }
    /** Whether `to` does without what `from` writes, as a word on the device says now: their order may be lost. */
    virtual bool spares(const op &from, const op &to) const
    {
        (void)from;
        (void)to;
        return false;
    }
    /** What run() will launch; recorded by running it serially, unless a program knows better. */
    virtual trace describe() { return record(*this); }
    /** What is known of each buffer, in the order in which they were made. */
    struct buffer_facts {
        void *place;
        size_t bytes;
        bool given, zero; /* it has contents before the run; these are zeros */
        bool result;
    };
    std::vector<buffer_facts> buffers() const;
    /** Bytes of all buffers marked as results: two runs are the same if these are. */
    std::vector<char> result() const;
    memory &mem() const { return memory_; }

protected:
    /* Buffers live as long as the program. Each takes the place of the pointer in kernels' arguments. */
    template <class T> T *scratch(size_t count) { return static_cast<T *>(add(count * sizeof(T), CONTENTS_NONE)); }
    template <class T> T *zeros(size_t count) { return static_cast<T *>(add(count * sizeof(T), CONTENTS_ZERO)); }
    template <class T> T *values(const std::vector<T> &v);
    /** T: float or double; see memory::random. */
    template <class T> T *random(size_t count, uint64_t seed, T low, T high);
    /** The buffer that starts at p belongs to the result. */
    void mark_result(const void *p);
    /** The buffer's elements now, on the host. */
    template <class T> std::vector<T> get(const T *p, size_t count) const;

    /** Forgets the ops of the run before: the first thing in run() of programs that use the calls below. */
    void begin() { page_ = used_ = 0; }
    /**
     * Launches a kernel with one thread per item of work: args.threads says how many.
     * `us`: expected duration, for runners that plan ahead; 0: unknown.
     */
    template <class A>
    void launch(sink &s, const acs_dual_kernel &k, uint32_t block, const A &args,
                std::initializer_list<acs_segment> uses, float us = 0)
    {
        launch_grid(s, k, (args.threads + block - 1) / block, block, args, uses.begin(), uses.size(), us);
    }
    /** The same with a number of CTAs of its own, and segments from an array. */
    template <class A>
    void launch_grid(sink &s, const acs_dual_kernel &k, uint32_t grid, uint32_t block, const A &args,
                     const acs_segment *segments, size_t count, float us = 0)
    {
        op o = {};
        o.kind = OP_KERNEL;
        o.kernel = &k;
        o.grid = grid;
        o.block = block;
        o.args = keep(&args, sizeof args);
        o.arg_bytes = sizeof args;
        o.us = us;
        send(s, o, segments, count);
    }
    void copy(sink &s, void *to, const void *from, size_t bytes);
    void fill(sink &s, void *to, int value, size_t bytes);
    /** A library call; `call` and its closure are copied. */
    void call(sink &s, const acs_call_params &call, float us = 0);

private:
    enum contents { CONTENTS_NONE, CONTENTS_ZERO, CONTENTS_VALUES, CONTENTS_FLOAT, CONTENTS_DOUBLE };
    struct buffer {
        void *place;
        size_t bytes;
        contents what;
        bool result;
        uint64_t seed;
        double low, high;
        std::vector<char> first;
    };
    void *add(size_t bytes, contents what);
    /* Copies bytes to memory that stays until the next begin(). */
    void *keep(const void *bytes, size_t count);
    void send(sink &s, op &o, const acs_segment *segments, size_t count);

    memory &memory_;
    std::vector<buffer> buffers_;
    std::vector<std::unique_ptr<char[]>> pages_; /* where ops and what they point to lie, in order of use */
    size_t page_ = 0, used_ = 0;                 /* the page in use, and how much of it is */
};

template <class T> T *program::values(const std::vector<T> &v)
{
    T *const p = static_cast<T *>(add(v.size() * sizeof(T), CONTENTS_VALUES));
    const char *const bytes = reinterpret_cast<const char *>(v.data());
    buffers_.back().first.assign(bytes, bytes + v.size() * sizeof(T));
    return p;
}

template <class T> T *program::random(size_t count, uint64_t seed, T low, T high)
{
    static_assert(sizeof(T) == sizeof(float) || sizeof(T) == sizeof(double), "float or double");
    T *const p = static_cast<T *>(
        add(count * sizeof(T), sizeof(T) == sizeof(float) ? CONTENTS_FLOAT : CONTENTS_DOUBLE));
    buffers_.back().seed = seed;
    buffers_.back().low = low;
    buffers_.back().high = high;
    return p;
}

template <class T> std::vector<T> program::get(const T *p, size_t count) const
{
    std::vector<T> host(count);
    memory_.download(host.data(), p, count * sizeof(T));
    return host;
}

} // namespace bench

#endif

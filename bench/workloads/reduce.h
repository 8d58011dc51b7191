/*
 * Reductions of a whole array in one kernel: the same bits on each run, on both machines, and fast on large arrays.
 * Included by the .cu files of workloads that need one.
 *
 * A fixed number of CTAs each reduce a fixed share by a tree and leave a partial result. The CTA that finds by an
 * integer counter that all others are through reduces the partials, again by a fixed tree: which CTA that is changes
 * from run to run, what it computes does not. So an op is one kernel, as in the papers, without floating-point atomics.
 */
#ifndef BENCH_REDUCE_H
#define BENCH_REDUCE_H

#include <algorithm>

#include "acs_dual.hpp"

namespace bench {

enum { REDUCE_BLOCK = 256, REDUCE_LEVELS = 8, REDUCE_MOST_CTAS = 512, REDUCE_PHASES = 2 * REDUCE_LEVELS + 4 };

/** CTAs for `count` elements: at least four for each thread, until the GPU is full. */
inline unsigned reduce_ctas(size_t count)
{
    const size_t share = REDUCE_BLOCK * 4;
    return static_cast<unsigned>(std::min<size_t>((count + share - 1) / share, REDUCE_MOST_CTAS));
}

/** What every reduction's arguments begin with. */
template <class T> struct reduce_space {
    size_t count;
    unsigned ctas;     /* reduce_ctas(count), the grid */
    T *partial;        /* one for each CTA */
    unsigned *tickets; /* CTAs that are through; 0 between kernels */
};

template <class T> struct reduce_shared {
    T part[REDUCE_BLOCK];
    bool last; /* this CTA ended last: the partials are complete */
};

/* Stores a CTA's partial. @return whether all of them are there now. */
template <class T> ACS_DUAL bool reduce_publish(const reduce_space<T> &a, unsigned block, T value)
{
    a.partial[block] = value;
#ifdef __CUDA_ARCH__
    /* The partial before the ticket, and the ticket before the reads of others' partials. */
    __threadfence();
    const unsigned ticket = atomicInc(a.tickets, a.ctas - 1);
    __threadfence();
#else
    const unsigned ticket = *a.tickets;
    *a.tickets = ticket + 1 == a.ctas ? 0 : ticket + 1;
#endif
    return ticket == a.ctas - 1;
}

template <class R> ACS_DUAL void reduce_tree(int level, unsigned thread, reduce_shared<typename R::value> &s)
{
    const unsigned half = static_cast<unsigned>(REDUCE_BLOCK) >> level;
    if (thread < half)
        s.part[thread] = R::join(s.part[thread], s.part[thread + half]);
}

/* A compiler cannot see that the phases come in order, so that `last` is set before it is asked for. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/**
 * A phase of the kernel. R says what is reduced: types `args` (with a member `space`) and `value`, and functions
 * none(), term(args, i), join(value, value) and store(args, value).
 */
template <class R>
ACS_DUAL void reduce_phase(const typename R::args &a, int phase, unsigned block, unsigned thread,
                           reduce_shared<typename R::value> &s)
{
    typedef typename R::value T;
    const int again = phase - REDUCE_LEVELS - 2; /* phases of the partials' reduction */

    if (phase == 0) {
        const size_t step = static_cast<size_t>(a.space.ctas) * REDUCE_BLOCK;
        T sum = R::none();
        for (size_t i = static_cast<size_t>(block) * REDUCE_BLOCK + thread; i < a.space.count; i += step)
            sum = R::join(sum, R::term(a, i));
        s.part[thread] = sum;
    } else if (phase <= REDUCE_LEVELS) {
        reduce_tree<R>(phase, thread, s);
    } else if (phase == REDUCE_LEVELS + 1) {
        if (thread == 0)
            s.last = reduce_publish(a.space, block, s.part[0]);
    } else if (s.last && again == 0) {
        const volatile T *const partial = a.space.partial; /* other CTAs wrote them while this kernel ran */
        T sum = R::none();
        for (unsigned i = thread; i < a.space.ctas; i += REDUCE_BLOCK)
            sum = R::join(sum, partial[i]);
        s.part[thread] = sum;
    } else if (s.last && again <= REDUCE_LEVELS) {
        reduce_tree<R>(again, thread, s);
    } else if (s.last && thread == 0) {
        R::store(a, s.part[0]);
    }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

} // namespace bench

/** The kernel `kernel_<name>` of the reduction R, to be launched with space.ctas CTAs of REDUCE_BLOCK threads. */
#define BENCH_REDUCE_KERNEL(name, R)                                                                                   \
    ACS_DUAL int name##_phases(const R::args &) { return REDUCE_PHASES; }                                              \
    ACS_DUAL void name##_phase(const R::args &a, int phase, unsigned block, unsigned thread,                           \
                               reduce_shared<R::value> &shared)                                                        \
    {                                                                                                                  \
        reduce_phase<R>(a, phase, block, thread, shared);                                                              \
    }                                                                                                                  \
    ACS_DUAL_BLOCK_KERNEL(name, R::args, reduce_shared<R::value>, REDUCE_BLOCK)

#endif

/*
 * Kernels of one source for GPU and CPU, as wrappers/acs_dual.hpp makes them, with plain parameters in place of a struct:
 * whoever gives an op other memory than its pointers name (renaming) finds pointers among arguments only. Included by the
 * .cu files of this directory, which are compiled by nvcc where there is one and as C++17 elsewhere.
 *
 * A kernel is a type K, outside of unnamed namespaces, with a constant BLOCK (threads of a CTA) and
 *     ACS_DUAL void thread(unsigned i, P...);   of the whole grid, so it looks whether there is an element i
 * or, where the threads of a CTA work together, with a barrier behind each phase,
 *     struct shared; ACS_DUAL int phases(P...);
 *     ACS_DUAL void phase(int phase, unsigned block, unsigned thread, shared &, P...);
 */
#ifndef BENCH_PLAIN_KERNEL_HPP
#define BENCH_PLAIN_KERNEL_HPP

#include <cstddef>
#include <utility>

#include "acs_dual.hpp"

namespace bench {

/** A kernel with these parameters. */
template <class... P> struct plain_kernel {
    acs_dual_kernel dual;
    unsigned block;
};

#ifdef __CUDACC__
template <class K, class... P> __global__ void __launch_bounds__(K::BLOCK) plain_gpu(P... p)
{
    K::thread(blockIdx.x * blockDim.x + threadIdx.x, p...);
}

template <class K, class... P> __global__ void __launch_bounds__(K::BLOCK) plain_block_gpu(P... p)
{
    __shared__ typename K::shared s;
    const int phases = K::phases(p...);
    for (int phase = 0; phase < phases; phase++) {
        K::phase(phase, blockIdx.x, threadIdx.x, s, p...);
        __syncthreads();
    }
}
#endif

template <class K, class... P, size_t... I>
void plain_run(const acs_grid *g, void *const *args, std::index_sequence<I...>)
{
    const unsigned threads = g->grid.x * g->block.x;
    for (unsigned i = 0; i < threads; i++)
        K::thread(i, *static_cast<const P *>(args[I])...);
}

template <class K, class... P> void plain_host(const acs_grid *g, void *const *args)
{
    plain_run<K, P...>(g, args, std::index_sequence_for<P...>{});
}

template <class K, class... P, size_t... I>
void plain_block_run(const acs_grid *g, void *const *args, std::index_sequence<I...>)
{
    const int phases = K::phases(*static_cast<const P *>(args[I])...);
    for (unsigned block = 0; block < g->grid.x; block++) {
        typename K::shared s = {};
        for (int phase = 0; phase < phases; phase++)
            for (unsigned thread = 0; thread < g->block.x; thread++)
                K::phase(phase, block, thread, s, *static_cast<const P *>(args[I])...);
    }
}

template <class K, class... P> void plain_block_host(const acs_grid *g, void *const *args)
{
    plain_block_run<K, P...>(g, args, std::index_sequence_for<P...>{});
}

/* The third parameter is there for its type: it says what P is. */
template <class K, class... P> plain_kernel<P...> make_plain(const char *name, acs_site site, void (*)(unsigned, P...))
{
    void (*gpu)(P...) = nullptr;
#ifdef __CUDACC__
    gpu = plain_gpu<K, P...>;
#endif
    const acs_host_body host = plain_host<K, P...>;
    return {{ACS_KERNEL_INIT(name, gpu, host), site}, K::BLOCK};
}

template <class K, class S, class... P>
plain_kernel<P...> make_plain(const char *name, acs_site site, void (*)(int, unsigned, unsigned, S &, P...))
{
    void (*gpu)(P...) = nullptr;
#ifdef __CUDACC__
    gpu = plain_block_gpu<K, P...>;
#endif
    const acs_host_body host = plain_block_host<K, P...>;
    return {{ACS_KERNEL_INIT(name, gpu, host), site}, K::BLOCK};
}

} // namespace bench

/** The kernel of the type `name`. */
#define BENCH_PLAIN_KERNEL(name) ::bench::make_plain<name>(#name, acs_site{#name, __FILE__, __LINE__}, &name::thread)
#define BENCH_PLAIN_BLOCK_KERNEL(name)                                                                                 \
    ::bench::make_plain<name>(#name, acs_site{#name, __FILE__, __LINE__}, &name::phase)

#endif

// The kernel of random programs on the GPU: the same computation as mix_run, by the lanes of block 0. Built into
// test_random_gpu where nvcc is; called by runner.c.
#include "mix.h"

#include <acs_resident.cuh>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

template <int Pieces> struct mix_work {
    mix_head head;
    mix_piece pieces[Pieces];
};

template <class Block>
__device__ void mix_block(const Block &block, const mix_head *head, const mix_piece *pieces,
                          const unsigned char *const *extras)
{
    __shared__ unsigned long long sum;
    const uint32_t lane = block.thread().x, lanes = block.size().x;
    if (lane == 0)
        sum = 0;
    block.sync();
    atomicAdd(&sum, static_cast<unsigned long long>(mix_gather(head, pieces, extras, lane, lanes)));
    block.sync();
    const uint64_t hash = mix_finish(head, sum, block.grid().x * block.grid().y * block.grid().z);
    for (uint32_t p = 0; p < head->pieces; p++) {
        for (uint32_t r = 0; (pieces[p].access & MIX_WRITE) && r < pieces[p].rows; r++) {
            mix_row(&pieces[p], p, r, hash, lane, lanes);
            block.sync();
        }
    }
}

struct mix_body {
    template <class Block, class Work, class... E>
    static __device__ void run(const Block &block, const Work &work, const E &... extra)
    {
        const unsigned char *extras[sizeof...(E) + 1] = {reinterpret_cast<const unsigned char *>(&extra)..., nullptr};
        if (block.index().x == 0)
            mix_block(block, &work.head, work.pieces, extras);
    }
};

template <int Pieces, class... E>
__global__ void mix_kernel(const __grid_constant__ mix_work<Pieces> work, const __grid_constant__ E... extra)
{
    mix_body::run(acs::launched_block{}, work, extra...);
}

ACS_RESIDENT(mix_nothing)
{
}

/* acs::resident does not take kernels with a list of types. */
template <int Pieces, class... E> struct mix_resident : acs::resident_body<mix_body, mix_work<Pieces>, E...> {
    static const void *kernel() { return reinterpret_cast<const void *>(&mix_kernel<Pieces, E...>); }
};

ACS_EXECUTOR(mix_executor, 128, 4096, ACS_BODY(mix_nothing), mix_resident<1>, mix_resident<6>, mix_resident<6, mix_u4>,
             mix_resident<6, mix_u8, mix_u1, mix_u2>,
             mix_resident<6, mix_u1, mix_b12, mix_u8, mix_u2, mix_b24, mix_u4, mix_u1>)

} // namespace

#define TYPE_(type) , type
#define FUNCTION_(pieces, extras) reinterpret_cast<const void *>(&mix_kernel<pieces extras>),

// A kernel's argument list by signature; -1 is the kernel without arguments.
extern "C" const void *gpu_kernel(int signature)
{
    static const void *const functions[] = {MIX_SIGNATURES(FUNCTION_, TYPE_)};
    return signature < 0 ? reinterpret_cast<const void *>(&mix_nothing) : functions[signature];
}

// What a library would do: launch its own kernel into the stream that it is given.
extern "C" int gpu_call(void *stream, const mix_head *head, const mix_piece *pieces)
{
    mix_work<MIX_PIECES> work{};
    work.head = *head;
    for (uint32_t i = 0; i < head->pieces; i++)
        work.pieces[i] = pieces[i];
    mix_kernel<MIX_PIECES><<<1, 64, 0, static_cast<cudaStream_t>(stream)>>>(work);
    return static_cast<int>(cudaGetLastError());
}

extern "C" int gpu_fill(void *memory, int value, size_t bytes)
{
    if (cudaMemset(memory, value, bytes) != cudaSuccess)
        return -1;
    return cudaStreamSynchronize(cudaStreamLegacy) == cudaSuccess ? 0 : -1;
}

// A real GPU takes no seed, and judges nothing.
extern "C" void gpu_begin(const struct random_config *)
{
}

extern "C" acs_status gpu_opened(acs_context *context)
{
    return acs_executor_add(context, mix_executor());
}

extern "C" void gpu_end(struct verdict *)
{
}

extern "C" void gpu_faults(uint32_t per_mille)
{
    if (per_mille) {
        std::fprintf(stderr, "test_random_gpu: a real GPU does not fail on demand: no --faults\n");
        std::exit(2);
    }
}

/*
 * Owns the kernel that patterns launch, and the calibration of its busy loop. Called by patterns; compiled by nvcc where
 * there is one, else as C++.
 */
#include "task.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

#include "memory.h"

#ifdef __CUDACC__
#include <cuda_runtime_api.h>

#include "acs_resident.cuh"
#endif

namespace bench {

ACS_DUAL const task_read *reads_of(const task_args &a)
{
    return a.reads > TASK_READS ? a.more : a.read;
}

/* The mark that must be in a cell; a cell that nobody wrote in this run holds a smaller one. */
ACS_DUAL bool mark_is_right(uint64_t mark, uint64_t epoch, const task_args &a, uint32_t writer)
{
    const uint64_t base = epoch * a.tasks;
    return writer == TASK_NOBODY ? mark <= base : mark == base + writer + 1;
}

ACS_DUAL uint64_t mark_at(const task_args &a, uint32_t cell, uint32_t cta)
{
    return static_cast<const volatile uint64_t *>(a.cells)[static_cast<size_t>(cell) * a.stride + cta];
}

/* ------------------------------------------------------------------------------------------------------- the GPU */

#ifdef __CUDACC__
template <class Block> static __device__ void look(const Block &block, const task_args &a, uint64_t epoch)
{
    const uint32_t ctas = block.grid().x;
    uint32_t wrong = 0;

    for (uint32_t i = block.thread().x; i < a.reads * ctas; i += block.size().x) {
        const task_read r = reads_of(a)[i / ctas];
        wrong += !mark_is_right(mark_at(a, r.cell, i % ctas), epoch, a, r.writer);
    }
    if (block.thread().x == 0)
        wrong += !mark_is_right(mark_at(a, a.out, block.index().x), epoch, a, a.before);
    if (wrong)
        atomicAdd(a.bad, wrong);
}

struct task_body {
    template <class Block> static __device__ void run(const Block &block, const task_args &a)
    {
        const long long begin = clock64();
        const uint64_t epoch = *static_cast<const volatile uint64_t *>(a.epoch);

        if (a.check)
            look(block, a, epoch);
        if (block.thread().x == 0)
            while (clock64() - begin < a.cycles) {
            }
        block.sync();
        if (a.check && a.cycles > 0)
            look(block, a, epoch);
        if (block.thread().x == 0)
            a.cells[static_cast<size_t>(a.out) * a.stride + block.index().x] = epoch * a.tasks + a.me + 1;
    }
};

template <int function> static __global__ void __launch_bounds__(TASK_BLOCK) task_gpu(const task_args a)
{
    task_body::run(acs::launched_block{}, a);
}

/* Waits only: for calibration. */
static __global__ void __launch_bounds__(TASK_BLOCK) wait_gpu(int64_t cycles)
{
    const long long begin = clock64();
    if (threadIdx.x == 0)
        while (clock64() - begin < cycles) {
        }
}

static double launch_us(int64_t cycles, uint32_t ctas)
{
    cudaEvent_t begin, end;
    float ms = 0, best = 0;

    require_cuda(cudaEventCreate(&begin), "cudaEventCreate");
    require_cuda(cudaEventCreate(&end), "cudaEventCreate");
    for (int k = 0; k < 4; k++) {
        require_cuda(cudaEventRecord(begin, nullptr), "cudaEventRecord");
        wait_gpu<<<ctas, TASK_BLOCK>>>(cycles);
        require_cuda(cudaEventRecord(end, nullptr), "cudaEventRecord");
        require_cuda(cudaEventSynchronize(end), "cudaEventSynchronize");
        require_cuda(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
        best = k < 2 ? ms : std::min(ms, best); /* the first one wakes the clocks */
    }
    require_cuda(cudaEventDestroy(begin), "cudaEventDestroy");
    require_cuda(cudaEventDestroy(end), "cudaEventDestroy");
    return static_cast<double>(best) * 1e3;
}

uint32_t task_resident_ctas()
{
    int per_sm = 0, sms = 0, device = 0;
    require_cuda(cudaGetDevice(&device), "cudaGetDevice");
    require_cuda(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
    require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, task_gpu<0>, TASK_BLOCK, 0),
                 "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    return static_cast<uint32_t>(per_sm) * static_cast<uint32_t>(sms);
}

double task_one_grid_us(int64_t cycles, uint32_t ctas)
{
    return launch_us(cycles, ctas);
}
#else
uint32_t task_resident_ctas()
{
    return 1;
}

double task_one_grid_us(int64_t, uint32_t)
{
    require(false, "there is no GPU to measure a grid on");
    return 0;
}
#endif

/* ------------------------------------------------------------------------------------------------------- the CPU */

/* Work that takes a fixed number of instructions: time that the thread does not run does not count. */
static void spin(int64_t rounds)
{
    uint64_t x = static_cast<uint64_t>(rounds) | 1;
    for (int64_t k = 0; k < rounds; k++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
}

static uint32_t count_wrong(const task_args &a, uint64_t epoch, uint32_t ctas)
{
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < a.reads * ctas; i++) {
        const task_read r = reads_of(a)[i / ctas];
        wrong += !mark_is_right(mark_at(a, r.cell, i % ctas), epoch, a, r.writer);
    }
    for (uint32_t c = 0; c < ctas; c++)
        wrong += !mark_is_right(mark_at(a, a.out, c), epoch, a, a.before);
    return wrong;
}

template <int function> static void task_host(const acs_grid *grid, void *const *args)
{
    const task_args &a = *static_cast<const task_args *>(args[0]);
    const uint64_t epoch = *a.epoch;
    uint32_t wrong = a.check ? count_wrong(a, epoch, grid->grid.x) : 0;

    if (a.cycles > 0) {
        spin(a.cycles);
        wrong += a.check ? count_wrong(a, epoch, grid->grid.x) : 0;
    }
    if (wrong)
        __atomic_fetch_add(a.bad, wrong, __ATOMIC_RELAXED); /* a sum, read when all is over */
    for (uint32_t c = 0; c < grid->grid.x; c++)
        a.cells[static_cast<size_t>(a.out) * a.stride + c] = epoch * a.tasks + a.me + 1;
}

static double host_rounds_per_us()
{
    double best = 0;
    for (int k = 0; k < 5; k++) {
        const auto begin = std::chrono::steady_clock::now();
        spin(2000000);
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        best = std::max(best, 2000000 / took.count());
    }
    return best;
}

static double gpu_cycles_per_us()
{
#ifdef __CUDACC__
    const int64_t few = 2000000, many = 6000000; /* a ms and three: the launch's own time falls out of the difference */
    return static_cast<double>(many - few) / (launch_us(many, 1) - launch_us(few, 1));
#else
    return 0;
#endif
}

double task_cycles_per_us(bool gpu)
{
    static double rate[2] = {0, 0};
    if (rate[gpu] <= 0)
        rate[gpu] = gpu ? gpu_cycles_per_us() : host_rounds_per_us();
    return rate[gpu];
}

#ifdef __CUDACC__
template <class Numbers> struct task_bodies;
template <int... function> struct task_bodies<std::integer_sequence<int, function...>> {
    typedef acs::resident_set<acs::resident<task_body, &task_gpu<function>>...> set;
};

/* As ACS_EXECUTOR, which takes a list of bodies that is written out. */
static __global__ void __launch_bounds__(TASK_BLOCK) run_tasks(const __grid_constant__ acs_executor_launch launch)
{
    acs::detail::execute<task_bodies<std::make_integer_sequence<int, TASK_FUNCTIONS>>::set>(launch);
}

const acs_executor_params *task_executor()
{
    typedef task_bodies<std::make_integer_sequence<int, TASK_FUNCTIONS>>::set set;
    static const acs_executor_params params =
        acs::detail::executor_params<set>(reinterpret_cast<const void *>(&run_tasks), TASK_BLOCK, 0);
    return &params;
}

template <int function> static const void *gpu_function()
{
    return reinterpret_cast<const void *>(&task_gpu<function>);
}
#else
const acs_executor_params *task_executor()
{
    return nullptr;
}

template <int function> static const void *gpu_function()
{
    return nullptr;
}
#endif

template <int... function>
static std::array<acs_dual_kernel, sizeof...(function)> make_kernels(std::integer_sequence<int, function...>)
{
    static char names[sizeof...(function)][16];
    for (size_t k = 0; k < sizeof...(function); k++)
        snprintf(names[k], sizeof names[k], "task_%zu", k);
    return {acs_dual_kernel{ACS_KERNEL_INIT(names[function], gpu_function<function>(), task_host<function>),
                            {names[function], __FILE__, __LINE__}}...};
}

const acs_dual_kernel &task_kernel(int function)
{
    static const std::array<acs_dual_kernel, TASK_FUNCTIONS> kernels =
        make_kernels(std::make_integer_sequence<int, TASK_FUNCTIONS>());
    return kernels[static_cast<size_t>(function)];
}

} // namespace bench

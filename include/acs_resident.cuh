/*
 * Kernels that are also bodies of a resident executor, for .cu files (C++17, nvcc). docs/issue-methods.md says when
 * that pays, and which rules bodies keep.
 *
 *   ACS_RESIDENT(axpy, int, n, float, a, const float *, x, float *, y)
 *   {
 *       const int i = block.index().x * block.size().x + block.thread().x;
 *       if (i < n)
 *           y[i] += a * x[i];
 *   }
 *   ACS_EXECUTOR(vectors, 256, 0, ACS_BODY(axpy), ACS_BODY(scale));
 *   ...
 *   acs_executor_add(context, vectors()); // once for each context
 *   ACS_LAUNCH_ON(context, axpy, grid, 256, 0, ACS_ARGS(n, 2.0f, x, y), ACS_USES(...));
 *
 * ACS_RESIDENT defines the __global__ function `axpy`, which can be launched in any way, and its body, from one text.
 * `block` is the block that runs. ACS_EXECUTOR defines a kernel that runs the blocks of these bodies.
 *
 * Rules of a body, because its blocks run inside another kernel:
 * - It takes block.index(), grid(), thread(), size() for blockIdx, gridDim, threadIdx, blockDim, block.sync() for
 *   __syncthreads(), block.shared<T>() for dynamic shared memory. __shared__ arrays are allowed; their sizes add up.
 * - All threads of the block reach each block.sync(): a thread that returned early would be waited for.
 * - It does not read what other ops write through __ldg() or other read-only loads, and does not wait for other blocks.
 * - The block has a multiple of 32 threads. Launches with others are kernels like any other.
 */
#ifndef ACS_RESIDENT_CUH
#define ACS_RESIDENT_CUH

#include "acs.h"
#include "acs_executor.h"

#include <cuda_runtime.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "acs_resident.cuh needs compute capability 7.0 or newer"
#endif

namespace acs {

/* The block of a launched kernel. */
struct launched_block {
    __device__ uint3 index() const { return blockIdx; }
    __device__ uint3 thread() const { return threadIdx; }
    __device__ dim3 grid() const { return gridDim; }
    __device__ dim3 size() const { return blockDim; }
    __device__ void sync() const { __syncthreads(); }
    template <class T> __device__ T *shared() const
    {
        extern __shared__ uint4 acs_shared[];
        return reinterpret_cast<T *>(acs_shared);
    }
};

/* A block that an executor runs. */
struct resident_block {
    uint3 index_, thread_;
    dim3 grid_, size_;
    uint32_t threads;

    __device__ uint3 index() const { return index_; }
    __device__ uint3 thread() const { return thread_; }
    __device__ dim3 grid() const { return grid_; }
    __device__ dim3 size() const { return size_; }
    __device__ void sync() const { asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory"); }
    template <class T> __device__ T *shared() const
    {
        extern __shared__ uint4 acs_shared[];
        return reinterpret_cast<T *>(acs_shared);
    }
};

namespace detail {

/* ------------------------------------------------------------------------------------------------ bodies of a set */

/* Bytes up to parameter `at` of a kernel: each lies at the next multiple of its alignment. */
template <class... P> constexpr size_t parameter_offset(size_t at)
{
    const size_t bytes[] = {sizeof(P)..., 0}, align[] = {alignof(P)..., 1};
    size_t end = 0;
    for (size_t i = 0; i <= at; i++) {
        end = (end + align[i] - 1) / align[i] * align[i];
        if (i < at)
            end += bytes[i];
    }
    return end;
}

template <size_t at, class... P> struct parameter_at {
    static constexpr size_t value = parameter_offset<P...>(at);
};

template <class Body, class... P> struct body_call {
    template <class Block, size_t... I>
    static __device__ __forceinline__ void run(const Block &block, const unsigned char *args, std::index_sequence<I...>)
    {
        Body::run(block, *reinterpret_cast<const P *>(args + parameter_at<I, P...>::value)...);
    }
};

template <class Body, class... P> body_call<Body, P...> call_of(void (*)(P...));
template <class... P> std::index_sequence_for<P...> indices_of(void (*)(P...));

} // namespace detail

/*
 * A kernel with these parameters, and its body: Body::run(block, arguments...) does what one block of the kernel does.
 * A class that is derived from this one adds `static const void *kernel()`, the address of the kernel.
 */
template <class Body, class... P> struct resident_body {
    template <class Block> static __device__ __forceinline__ void run(const Block &block, const unsigned char *args)
    {
        detail::body_call<Body, P...>::run(block, args, std::index_sequence_for<P...>{});
    }
};

/* The same for a kernel that has a name. */
template <class Body, auto function> struct resident {
    static const void *kernel() { return reinterpret_cast<const void *>(function); }
    template <class Block> static __device__ __forceinline__ void run(const Block &block, const unsigned char *args)
    {
        decltype(detail::call_of<Body>(function))::run(block, args, decltype(detail::indices_of(function)){});
    }
};

/* Bodies that one executor runs. */
template <class... R> struct resident_set {
    static constexpr uint32_t count = sizeof...(R);

    template <class Block>
    static __device__ __forceinline__ void run(uint32_t body, const Block &block, const unsigned char *args)
    {
        uint32_t number = 0;
        (void)((body == number++ ? (R::run(block, args), true) : false) || ...);
    }

    /* The kernels, each as a handle and as the address that other files know it by. */
    static const acs_kernel *kernels()
    {
        static const acs_kernel list[2 * count] = {
            detail::kernel_of(R::kernel())..., acs_kernel{nullptr, R::kernel(), nullptr, ACS_KERNEL_FUNCTION, 0}...};
        return list;
    }
};

namespace detail {

/* ------------------------------------------------------------------------------------------------------- executor */

enum : uint32_t { SLICE_WORDS = 4 }; /* words of 16 bytes of a slice, per thread */

static __device__ __forceinline__ uint32_t load_acquire(const uint32_t *from)
{
    uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

/* Whatever this thread has seen done, barriers of its block included, comes before the count. */
static __device__ __forceinline__ void count_down(uint32_t *counter)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(~0u) : "memory");
}

static __device__ __forceinline__ uint32_t count_down_last(uint32_t *counter)
{
    uint32_t before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(~0u) : "memory");
    return before;
}

static_assert(sizeof(acs_executor_op) == 4 * sizeof(uint4), "an entry is read as four words");

/* What the threads of a block share. */
struct executor_block {
    uint32_t ticket, slice;
    alignas(16) acs_executor_op op;
    uint16_t out[ACS_EXECUTOR_NEAR];
    uint32_t first[ACS_EXECUTOR_OPS];
    uint4 args[ACS_EXECUTOR_ARG_BYTES / sizeof(uint4)];
};

/*
 * Copy the table to device memory, all blocks together. A block takes the next slice until none is left, and then
 * waits for those that others have taken: they run, so the wait ends.
 */
static __device__ void copy_table(const acs_executor_launch &l, executor_block &own)
{
    acs_executor_state *state = reinterpret_cast<acs_executor_state *>(l.state);
    const uint4 *from = reinterpret_cast<const uint4 *>(l.source);
    uint4 *to = reinterpret_cast<uint4 *>(l.table);
    const uint32_t words = l.bytes / sizeof(uint4), each = SLICE_WORDS * blockDim.x, slices = (words + each - 1) / each;
    for (;;) {
        uint4 word[SLICE_WORDS];
        if (threadIdx.x == 0)
            own.slice = atomicAdd(&state->slices, 1);
        __syncthreads();
        const uint32_t first = own.slice * each + threadIdx.x;
        if (own.slice >= slices)
            break;
        for (uint32_t i = 0; i < SLICE_WORDS; i++)
            if (first + i * blockDim.x < words)
                word[i] = from[first + i * blockDim.x];
        for (uint32_t i = 0; i < SLICE_WORDS; i++)
            if (first + i * blockDim.x < words)
                __stcg(to + first + i * blockDim.x, word[i]);
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            atomicAdd(&state->copied, 1);
    }
    if (threadIdx.x == 0)
        while (load_acquire(&state->copied) < slices)
            ;
    __syncthreads();
}

/* The entry that a ticket belongs to: the last whose first ticket is not greater. By a whole warp. */
static __device__ __forceinline__ uint32_t entry_of(const executor_block &own, uint32_t entries, uint32_t ticket)
{
    const uint32_t lane = threadIdx.x % 32, step = (entries + 31) / 32;
    const uint32_t coarse =
        __ballot_sync(~0u, lane * step < entries && own.first[min(lane * step, entries - 1)] <= ticket);
    const uint32_t from = (31 - __clz(static_cast<int>(coarse))) * step;
    const uint32_t fine = __ballot_sync(~0u, lane < step && from + lane < entries &&
                                                 own.first[min(from + lane, entries - 1)] <= ticket);
    return from + 31 - __clz(static_cast<int>(fine));
}

/* Tell the host up to which op all are complete. By one thread; one at a time, and the last waits for its turn. */
static __device__ void publish(const acs_executor_launch &l, acs_executor_state *state, bool all)
{
    while (atomicExch(&state->publishing, 1))
        if (!all)
            return; /* a later op publishes this one */
    __threadfence();
    uint32_t complete = l.ops;
    for (uint32_t w = 0; !all && w < (l.ops + 31) / 32; w++) {
        const uint32_t bits = __ldcg(&state->done[w]);
        if (bits != ~0u) {
            complete = min(w * 32 + __ffs(static_cast<int>(~bits)) - 1, l.ops);
            break;
        }
    }
    if (complete > __ldcg(&state->published)) {
        state->published = complete;
        __threadfence_system(); /* the ops' writes to host memory must be there when the host sees the word */
        *reinterpret_cast<volatile uint64_t *>(l.word) = l.first_value + complete - 1;
    }
    __threadfence();
    atomicExch(&state->publishing, 0);
}

/* An op has ended. By one thread. */
static __device__ void end_op(const acs_executor_launch &l, acs_executor_state *state, uint32_t position)
{
    atomicOr(&state->done[position / 32], 1u << (position % 32));
    __threadfence();
    const bool all = atomicAdd(&state->ended, 1) == l.ops - 1;
    if (all || position % ACS_EXECUTOR_STEP == ACS_EXECUTOR_STEP - 1)
        publish(l, state, all);
}

/* Fetch what the block needs of an entry, then wait until the entry may run. By the first warp. */
static __device__ __forceinline__ void fetch_entry(const acs_executor_launch &l, executor_block &own, uint32_t entry)
{
    const uint32_t lane = threadIdx.x;
    const acs_executor_op *op = reinterpret_cast<const acs_executor_op *>(l.table) + entry;
    const uint4 word = __ldcg(reinterpret_cast<const uint4 *>(op) + lane % 4);
    if (lane < 4)
        reinterpret_cast<uint4 *>(&own.op)[lane] = word;
    __syncwarp();
    const uint4 *args = reinterpret_cast<const uint4 *>(l.table + own.op.args_at);
    const uint16_t *outs = reinterpret_cast<const uint16_t *>(l.table + l.outs_at) + own.op.out_first;
    for (uint32_t i = lane; i < own.op.arg_bytes / sizeof(uint4); i += 32)
        own.args[i] = __ldcg(args + i);
    for (uint32_t i = lane; i < own.op.out_count && i < ACS_EXECUTOR_NEAR; i += 32)
        own.out[i] = __ldcg(outs + i);
    if (lane == 0)
        while (load_acquire(&op->pending))
            ;
}

/* A block of an entry has ended: count down what follows it. By the first warp. */
static __device__ __forceinline__ void release_entry(const acs_executor_launch &l, acs_executor_state *state,
                                                     executor_block &own, uint32_t entry)
{
    const uint32_t lane = threadIdx.x;
    acs_executor_op *ops = reinterpret_cast<acs_executor_op *>(l.table);
    const uint16_t *outs = reinterpret_cast<const uint16_t *>(l.table + l.outs_at) + own.op.out_first;
    const uint32_t count = own.op.out_count, position = own.op.position;
    const bool each = own.op.each, join = own.op.body == ACS_EXECUTOR_JOIN;
    for (uint32_t i = lane; each && i < count; i += 32)
        count_down(&ops[i < ACS_EXECUTOR_NEAR ? own.out[i] : __ldcg(outs + i)].pending);
    uint32_t last = 0;
    if (lane == 0) {
        last = count_down_last(&ops[entry].left) == 1;
        own.ticket = atomicAdd(&state->ticket, 1);
    }
    last = __shfl_sync(~0u, last, 0);
    if (!last)
        return;
    for (uint32_t i = lane; !each && i < count; i += 32)
        count_down(&ops[i < ACS_EXECUTOR_NEAR ? own.out[i] : __ldcg(outs + i)].pending);
    if (lane == 0 && !join)
        end_op(l, state, position);
}

/* The block's part of a copy or fill of the library's own; `src` NULL: a fill. By all threads. */
static __device__ __forceinline__ void copy_part(unsigned char *dst, const unsigned char *src, uint64_t bytes, uint32_t part,
                                                 uint32_t value)
{
    const uint64_t first = static_cast<uint64_t>(part) * ACS_EXECUTOR_COPY_BYTES;
    const uint32_t here = first < bytes ? static_cast<uint32_t>(min(bytes - first, uint64_t{ACS_EXECUTOR_COPY_BYTES})) : 0;
    const uintptr_t all = reinterpret_cast<uintptr_t>(dst) | reinterpret_cast<uintptr_t>(src) | here;
    dst += first;
    src += src ? first : 0;
    if (all % sizeof(uint4) == 0) {
        const uint4 words = make_uint4(value, value, value, value);
        for (uint32_t i = threadIdx.x; i < here / sizeof(uint4); i += blockDim.x)
            reinterpret_cast<uint4 *>(dst)[i] = src ? reinterpret_cast<const uint4 *>(src)[i] : words;
        return;
    }
    for (uint32_t i = threadIdx.x; i < here; i += blockDim.x)
        dst[i] = src ? src[i] : static_cast<unsigned char>(value);
}

static __device__ __forceinline__ void run_own(uint32_t body, const uint64_t *args, uint32_t index)
{
    unsigned char *dst = reinterpret_cast<unsigned char *>(args[0]);
    if (body == ACS_EXECUTOR_FILL) {
        copy_part(dst, nullptr, args[1], index, static_cast<uint32_t>(args[2] & 0xff) * 0x01010101u);
        return;
    }
    const unsigned char *src = reinterpret_cast<const unsigned char *>(args[1]);
    const uint64_t bytes = args[2];
    const uint32_t parts = static_cast<uint32_t>((bytes + ACS_EXECUTOR_COPY_BYTES - 1) / ACS_EXECUTOR_COPY_BYTES);
    const uint64_t at = body == ACS_EXECUTOR_ROWS ? index / parts * args[3] : 0;
    copy_part(dst + at, src + at, bytes, body == ACS_EXECUTOR_ROWS ? index % parts : index, 0);
}

/* Run the block's part of an entry. */
template <class Set>
static __device__ __forceinline__ void run_entry(executor_block &own, uint32_t entry_ticket)
{
    const uint32_t gx = own.op.grid[0], gy = own.op.grid[1], bx = own.op.block[0], by = own.op.block[1];
    const uint32_t threads = bx * by * own.op.block[2], at = threadIdx.x;
    if (own.op.body >= ACS_EXECUTOR_BODIES) {
        if (own.op.body != ACS_EXECUTOR_JOIN)
            run_own(own.op.body, reinterpret_cast<const uint64_t *>(own.args), entry_ticket);
        return;
    }
    if (at >= threads)
        return;
    resident_block block;
    block.threads = threads;
    block.grid_ = dim3(gx, gy, own.op.grid[2]);
    block.size_ = dim3(bx, by, own.op.block[2]);
    block.index_ = entry_ticket < gx ? make_uint3(entry_ticket, 0, 0)
                                     : make_uint3(entry_ticket % gx, entry_ticket / gx % gy, entry_ticket / gx / gy);
    block.thread_ = at < bx ? make_uint3(at, 0, 0) : make_uint3(at % bx, at / bx % by, at / bx / by);
    Set::run(own.op.body, block, reinterpret_cast<const unsigned char *>(own.args));
}

/*
 * The executor. A block takes the next ticket, waits until the op of the ticket may run, runs its block of the op, and
 * counts down what follows.
 *
 * Progress: tickets are taken in order, by blocks that run. Consider the smallest ticket that was taken and has not
 * ended. Its op follows only ops with smaller tickets, all of which have ended. So its block does not wait. No block
 * ever waits for one that does not run, however few of them the device runs at once.
 */
template <class Set> static __device__ __forceinline__ void execute(const acs_executor_launch &l)
{
    __shared__ executor_block own;
    acs_executor_state *state = reinterpret_cast<acs_executor_state *>(l.state);
    copy_table(l, own);
    const uint32_t *firsts = reinterpret_cast<const uint32_t *>(l.table + l.firsts_at);
    for (uint32_t i = threadIdx.x; i < l.entries; i += blockDim.x)
        own.first[i] = __ldcg(firsts + i);
    if (threadIdx.x == 0)
        own.ticket = atomicAdd(&state->ticket, 1);
    __syncthreads();
    for (uint32_t ticket = own.ticket; ticket < l.tickets; ticket = own.ticket) {
        const uint32_t entry = entry_of(own, l.entries, ticket);
        if (threadIdx.x < 32)
            fetch_entry(l, own, entry);
        __syncthreads();
        run_entry<Set>(own, ticket - own.first[entry]);
        __syncthreads();
        if (threadIdx.x < 32)
            release_entry(l, state, own, entry);
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(&state->exited, 1) == gridDim.x - 1)
            *state = acs_executor_state{};
    }
}

template <class Set>
acs_executor_params executor_params(const void *executor, uint32_t threads, uint64_t shared_bytes)
{
    acs_executor_params p{};
    p.size = sizeof p;
    p.executor = kernel_of(executor);
    p.layout = ACS_EXECUTOR_LAYOUT;
    p.threads = threads;
    p.shared_bytes = shared_bytes;
    p.kernels = Set::kernels();
    p.count = 2 * Set::count;
    p.bodies = Set::count;
    return p;
}

} // namespace detail
} // namespace acs

/* ------------------------------------------------------------------------------------------------------------ macros */

/* How many pairs of a type and a name follow the first argument. */
#define ACS_PAIRS_(...) ACS_PAIRS_PICK_(__VA_ARGS__,16, even, 15, even, 14, even, 13, even, 12, \
        even, 11, even, 10, even, 9, even, 8, even, 7, even, 6, even, 5, even, 4, even, 3, even, \
        2, even, 1, even, 0, 0)
#define ACS_PAIRS_PICK_(p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, \
        p17, p18, p19, p20, p21, p22, p23, p24, p25, p26, p27, p28, p29, p30, p31, p32, p33, \
        pairs, ...) pairs
#define ACS_RESIDENT_CAT_(a, b) ACS_RESIDENT_CAT2_(a, b)
#define ACS_RESIDENT_CAT2_(a, b) a##b
#define ACS_RESIDENT_OPEN_(...) __VA_ARGS__
/* Of pairs: parameters, and names. */
#define ACS_P1_(t, a) t a
#define ACS_P2_(t, a, ...) t a, ACS_P1_(__VA_ARGS__)
#define ACS_P3_(t, a, ...) t a, ACS_P2_(__VA_ARGS__)
#define ACS_P4_(t, a, ...) t a, ACS_P3_(__VA_ARGS__)
#define ACS_P5_(t, a, ...) t a, ACS_P4_(__VA_ARGS__)
#define ACS_P6_(t, a, ...) t a, ACS_P5_(__VA_ARGS__)
#define ACS_P7_(t, a, ...) t a, ACS_P6_(__VA_ARGS__)
#define ACS_P8_(t, a, ...) t a, ACS_P7_(__VA_ARGS__)
#define ACS_P9_(t, a, ...) t a, ACS_P8_(__VA_ARGS__)
#define ACS_P10_(t, a, ...) t a, ACS_P9_(__VA_ARGS__)
#define ACS_P11_(t, a, ...) t a, ACS_P10_(__VA_ARGS__)
#define ACS_P12_(t, a, ...) t a, ACS_P11_(__VA_ARGS__)
#define ACS_P13_(t, a, ...) t a, ACS_P12_(__VA_ARGS__)
#define ACS_P14_(t, a, ...) t a, ACS_P13_(__VA_ARGS__)
#define ACS_P15_(t, a, ...) t a, ACS_P14_(__VA_ARGS__)
#define ACS_P16_(t, a, ...) t a, ACS_P15_(__VA_ARGS__)
#define ACS_A1_(t, a) a
#define ACS_A2_(t, a, ...) a, ACS_A1_(__VA_ARGS__)
#define ACS_A3_(t, a, ...) a, ACS_A2_(__VA_ARGS__)
#define ACS_A4_(t, a, ...) a, ACS_A3_(__VA_ARGS__)
#define ACS_A5_(t, a, ...) a, ACS_A4_(__VA_ARGS__)
#define ACS_A6_(t, a, ...) a, ACS_A5_(__VA_ARGS__)
#define ACS_A7_(t, a, ...) a, ACS_A6_(__VA_ARGS__)
#define ACS_A8_(t, a, ...) a, ACS_A7_(__VA_ARGS__)
#define ACS_A9_(t, a, ...) a, ACS_A8_(__VA_ARGS__)
#define ACS_A10_(t, a, ...) a, ACS_A9_(__VA_ARGS__)
#define ACS_A11_(t, a, ...) a, ACS_A10_(__VA_ARGS__)
#define ACS_A12_(t, a, ...) a, ACS_A11_(__VA_ARGS__)
#define ACS_A13_(t, a, ...) a, ACS_A12_(__VA_ARGS__)
#define ACS_A14_(t, a, ...) a, ACS_A13_(__VA_ARGS__)
#define ACS_A15_(t, a, ...) a, ACS_A14_(__VA_ARGS__)
#define ACS_A16_(t, a, ...) a, ACS_A15_(__VA_ARGS__)

#define ACS_RESIDENT_0(name)                                                                                           \
    struct name##_body {                                                                                               \
        template <class Block> static __device__ __forceinline__ void run(const Block &block);                         \
    };                                                                                                                 \
    __global__ void name() { name##_body::run(::acs::launched_block{}); }                                              \
    template <class Block> __device__ __forceinline__ void name##_body::run([[maybe_unused]] const Block &block)
#define ACS_RESIDENT_DEFINE_(name, parameters, names)                                                                  \
    struct name##_body {                                                                                               \
        template <class Block>                                                                                         \
        static __device__ __forceinline__ void run(const Block &block, ACS_RESIDENT_OPEN_ parameters);                 \
    };                                                                                                                 \
    __global__ void name parameters { name##_body::run(::acs::launched_block{}, ACS_RESIDENT_OPEN_ names); }           \
    template <class Block>                                                                                             \
    __device__ __forceinline__ void name##_body::run([[maybe_unused]] const Block &block, ACS_RESIDENT_OPEN_ parameters)
#define ACS_RESIDENT_1(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P1_(__VA_ARGS__)), (ACS_A1_(__VA_ARGS__)))
#define ACS_RESIDENT_2(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P2_(__VA_ARGS__)), (ACS_A2_(__VA_ARGS__)))
#define ACS_RESIDENT_3(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P3_(__VA_ARGS__)), (ACS_A3_(__VA_ARGS__)))
#define ACS_RESIDENT_4(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P4_(__VA_ARGS__)), (ACS_A4_(__VA_ARGS__)))
#define ACS_RESIDENT_5(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P5_(__VA_ARGS__)), (ACS_A5_(__VA_ARGS__)))
#define ACS_RESIDENT_6(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P6_(__VA_ARGS__)), (ACS_A6_(__VA_ARGS__)))
#define ACS_RESIDENT_7(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P7_(__VA_ARGS__)), (ACS_A7_(__VA_ARGS__)))
#define ACS_RESIDENT_8(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P8_(__VA_ARGS__)), (ACS_A8_(__VA_ARGS__)))
#define ACS_RESIDENT_9(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P9_(__VA_ARGS__)), (ACS_A9_(__VA_ARGS__)))
#define ACS_RESIDENT_10(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P10_(__VA_ARGS__)), (ACS_A10_(__VA_ARGS__)))
#define ACS_RESIDENT_11(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P11_(__VA_ARGS__)), (ACS_A11_(__VA_ARGS__)))
#define ACS_RESIDENT_12(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P12_(__VA_ARGS__)), (ACS_A12_(__VA_ARGS__)))
#define ACS_RESIDENT_13(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P13_(__VA_ARGS__)), (ACS_A13_(__VA_ARGS__)))
#define ACS_RESIDENT_14(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P14_(__VA_ARGS__)), (ACS_A14_(__VA_ARGS__)))
#define ACS_RESIDENT_15(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P15_(__VA_ARGS__)), (ACS_A15_(__VA_ARGS__)))
#define ACS_RESIDENT_16(name, ...) ACS_RESIDENT_DEFINE_(name, (ACS_P16_(__VA_ARGS__)), (ACS_A16_(__VA_ARGS__)))

/**
 * Define a kernel and its body: ACS_RESIDENT(name, type, parameter, type, parameter, ...) { ... }, with at most 16
 * parameters. A type with a comma in it needs an alias.
 */
#define ACS_RESIDENT(...) ACS_RESIDENT_CAT_(ACS_RESIDENT_, ACS_PAIRS_(__VA_ARGS__))(__VA_ARGS__)

/** The body of a kernel that ACS_RESIDENT defined, for ACS_EXECUTOR. Others: ::acs::resident<Body, kernel>. */
#define ACS_BODY(name) ::acs::resident<name##_body, &name>

/**
 * Define an executor: ACS_EXECUTOR(name, threads, shared_bytes, body, body, ...). `threads`: most threads of a block, a
 * multiple of 32. `shared_bytes`: most dynamic shared memory of a launch. name() is what acs_executor_add takes.
 */
#define ACS_EXECUTOR(name, threads_, shared_bytes_, ...)                                                               \
    static __global__ void __launch_bounds__(threads_) name##_executor(const __grid_constant__ acs_executor_launch l)  \
    {                                                                                                                  \
        ::acs::detail::execute<::acs::resident_set<__VA_ARGS__>>(l);                                                   \
    }                                                                                                                  \
    static inline const acs_executor_params *name()                                                                    \
    {                                                                                                                  \
        static const acs_executor_params params = ::acs::detail::executor_params<::acs::resident_set<__VA_ARGS__>>(    \
            reinterpret_cast<const void *>(&name##_executor), threads_, shared_bytes_);                                \
        return &params;                                                                                                \
    }

#endif

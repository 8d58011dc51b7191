/*
 * acs_nccl: communicators of one rank have the bits of plain calls, in captures and outside. Ops of two communicators
 * overlap, and those of one do not. On two GPUs two ranks, a thread and a context each, exchange and sum among kernels.
 */
#include "acs_nccl.h"

#include "gpu_wrapped.cuh"

#include <nccl.h>
#include <thread>

#define CHECK_NCCL(call) CHECK_EQ(static_cast<int>(call), 0)

enum { COUNT = 1 << 18, BYTES = COUNT * 4 };

/* A reduction of one rank to other memory, and a group that sends to itself. */
static void one_rank()
{
    if (!wrapped_is_there("acs::nccl", acs_nccl_load()))
        return;
    const plain_library nccl("libnccl.so." PLAIN_TEXT(NCCL_MAJOR));
    const int device = 0;
    ncclComm_t plain = nullptr;
    acs_nccl_comm *comms[2] = {};
    CHECK_NCCL(PLAIN(nccl, ncclCommInitAll)(&plain, 1, &device));
    for (auto &comm : comms)
        CHECK_STATUS(acs_nccl_comm_alone(&comm), ACS_OK);
    wrapped_check({"ncclAllReduce", FILL_FLOATS, BYTES, BYTES,
                   [=](int, const void *in, void *out, cudaStream_t stream) {
                       CHECK_NCCL(PLAIN(nccl, ncclAllReduce)(in, out, COUNT, ncclFloat, ncclSum, plain, stream));
                   },
                   [=](acs_context *context, int which, const void *in, void *out) {
                       return acs_nccl_all_reduce(context, comms[which], ACS_NCCL_F32, ACS_NCCL_SUM, in, out, COUNT);
                   }});
    wrapped_check({"ncclSend and ncclRecv", FILL_FLOATS, BYTES, BYTES,
                   [=](int, const void *in, void *out, cudaStream_t stream) {
                       CHECK_NCCL(PLAIN(nccl, ncclGroupStart)());
                       CHECK_NCCL(PLAIN(nccl, ncclSend)(in, COUNT, ncclFloat, 0, plain, stream));
                       CHECK_NCCL(PLAIN(nccl, ncclRecv)(out, COUNT, ncclFloat, 0, plain, stream));
                       CHECK_NCCL(PLAIN(nccl, ncclGroupEnd)());
                   },
                   [=](acs_context *context, int which, const void *in, void *out) {
                       const acs_nccl_part parts[] = {
                           {ACS_NCCL_SEND, ACS_NCCL_F32, ACS_NCCL_SUM, 0, in, nullptr, COUNT},
                           {ACS_NCCL_RECEIVE, ACS_NCCL_F32, ACS_NCCL_SUM, 0, nullptr, out, COUNT},
                       };
                       return acs_nccl_group(context, comms[which], parts, 2);
                   }});
    for (acs_nccl_comm *const comm : comms)
        acs_nccl_comm_destroy(comm);
    CHECK_NCCL(PLAIN(nccl, ncclCommDestroy)(plain));
}

/* An op of a communicator waits for the one before, which waits for a kernel that waits in vain for what is behind it. */
static void ops_of_one_communicator_do_not_overlap()
{
    if (!wrapped_is_there("acs::nccl", acs_nccl_load()))
        return;
    acs_options options = check_options();
    options.issue = ACS_ISSUE_LAUNCH;
    options.streams = 4;
    acs_context *const context = check_open(&options);
    acs_nccl_comm *comm = nullptr;
    char *memory = nullptr;
    int *flag = nullptr, saw = 1;
    CHECK_STATUS(acs_nccl_comm_alone(&comm), ACS_OK);
    CHECK_CUDA(cudaMalloc(&memory, 4 * BYTES));
    CHECK_CUDA(cudaMalloc(&flag, 2 * sizeof(int)));
    CHECK_CUDA(cudaMemset(flag, 0, 2 * sizeof(int)));
    char *const out[2] = {memory + 2 * BYTES, memory + 3 * BYTES};
    CHECK(acs_nccl_all_reduce(context, comm, ACS_NCCL_F32, ACS_NCCL_SUM, memory, out[0], COUNT) != 0); /* connects */
    CHECK_STATUS(acs_sync(context), ACS_OK);
    ACS_LAUNCH_ON(context, wrapped_wait, 1, 1, 0, ACS_ARGS(flag, flag + 1),
                  ACS_USES(ACS_INOUT(out[0], BYTES), ACS_OUT(flag + 1, sizeof(int))));
    for (int i = 0; i < 2; i++)
        CHECK(acs_nccl_all_reduce(context, comm, ACS_NCCL_F32, ACS_NCCL_SUM, memory + i * BYTES, out[i], COUNT) != 0);
    ACS_LAUNCH_ON(context, wrapped_raise, 1, 1, 0, ACS_ARGS(flag), ACS_USES(ACS_IN(out[1], BYTES)));
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_CUDA(cudaMemcpy(&saw, flag + 1, sizeof saw, cudaMemcpyDeviceToHost));
    CHECK_EQ(saw, 0);
    CHECK_STATUS(acs_close(context), ACS_OK);
    acs_nccl_comm_destroy(comm);
    CHECK_CUDA(cudaFree(memory));
    CHECK_CUDA(cudaFree(flag));
}

/* --------------------------------------------------------------------------------------------------------- two ranks */

enum { RANK_COUNT = 100000, RANK_STEPS = 25 };

static __global__ void mix(uint32_t *x, const uint32_t *y, uint32_t add)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < RANK_COUNT)
        x[i] = x[i] * 5 + y[i] + add;
}

/* What both ranks have at the end, by the CPU: element i of x and y. */
static void expected_of_ranks(uint32_t i, uint32_t x[2], uint32_t y[2])
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        x[rank] = i + rank;
        y[rank] = i * 3 + rank;
    }
    for (uint32_t step = 0; step < RANK_STEPS; step++) {
        for (uint32_t rank = 0; rank < 2; rank++)
            x[rank] = x[rank] * 5 + y[rank] + step + rank;
        x[0] = x[1] = x[0] + x[1];
        const uint32_t mine = y[0];
        y[0] = y[1] * 5 + x[1] + 7;
        y[1] = mine * 5 + x[0] + 7;
    }
}

/* Each step: a kernel, a sum of both ranks in place, an exchange, and a kernel that needs both. */
static void run_rank(int rank, ncclComm_t plain, bool *same)
{
    const size_t bytes = RANK_COUNT * sizeof(uint32_t);
    const unsigned blocks = (RANK_COUNT + 255) / 256;
    std::vector<uint32_t> x(RANK_COUNT), y(RANK_COUNT);
    acs_nccl_comm *comm = nullptr;
    uint32_t *memory = nullptr;
    CHECK_CUDA(cudaSetDevice(rank));
    acs_context *const context = check_open_default();
    CHECK_STATUS(acs_nccl_comm_adopt(plain, &comm), ACS_OK);
    for (uint32_t i = 0; i < RANK_COUNT; i++) {
        x[i] = i + static_cast<uint32_t>(rank);
        y[i] = i * 3 + static_cast<uint32_t>(rank);
    }
    CHECK_CUDA(cudaMalloc(&memory, 3 * bytes));
    uint32_t *const at_x = memory, *const at_y = memory + RANK_COUNT, *const at_z = memory + 2 * RANK_COUNT;
    CHECK_CUDA(cudaMemcpy(at_x, x.data(), bytes, cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(at_y, y.data(), bytes, cudaMemcpyHostToDevice));
    for (uint32_t step = 0; step < RANK_STEPS; step++) {
        const acs_nccl_part exchange[] = {
            {ACS_NCCL_SEND, ACS_NCCL_U32, ACS_NCCL_SUM, 1 - rank, at_y, nullptr, RANK_COUNT},
            {ACS_NCCL_RECEIVE, ACS_NCCL_U32, ACS_NCCL_SUM, 1 - rank, nullptr, at_z, RANK_COUNT},
        };
        ACS_LAUNCH_ON(context, mix, blocks, 256, 0, ACS_ARGS(at_x, at_y, step + static_cast<uint32_t>(rank)),
                      ACS_USES(ACS_INOUT(at_x, bytes), ACS_IN(at_y, bytes)));
        CHECK(acs_nccl_all_reduce(context, comm, ACS_NCCL_U32, ACS_NCCL_SUM, at_x, at_x, RANK_COUNT) != 0);
        CHECK(acs_nccl_group(context, comm, exchange, 2) != 0);
        ACS_LAUNCH_ON(context, mix, blocks, 256, 0, ACS_ARGS(at_z, at_x, 7u),
                      ACS_USES(ACS_INOUT(at_z, bytes), ACS_IN(at_x, bytes)));
        CHECK(acs_memcpy(context, at_y, at_z, bytes) != 0);
    }
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_CUDA(cudaMemcpy(x.data(), at_x, bytes, cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaMemcpy(y.data(), at_y, bytes, cudaMemcpyDeviceToHost));
    *same = true;
    for (uint32_t i = 0; i < RANK_COUNT; i++) {
        uint32_t wanted_x[2], wanted_y[2];
        expected_of_ranks(i, wanted_x, wanted_y);
        *same &= x[i] == wanted_x[rank] && y[i] == wanted_y[rank];
    }
    CHECK_STATUS(acs_close(context), ACS_OK);
    acs_nccl_comm_destroy(comm);
    CHECK_CUDA(cudaFree(memory));
}

static void two_ranks()
{
    int devices = 0;
    CHECK_CUDA(cudaGetDeviceCount(&devices));
    if (!wrapped_is_there("acs::nccl", acs_nccl_load()))
        return;
    if (devices < 2) {
        printf("two ranks are left out: there is one GPU\n");
        return;
    }
    const plain_library nccl("libnccl.so." PLAIN_TEXT(NCCL_MAJOR));
    const int numbers[2] = {0, 1};
    ncclComm_t plain[2] = {};
    bool same[2] = {};
    CHECK_NCCL(PLAIN(nccl, ncclCommInitAll)(plain, 2, numbers));
    std::thread other(run_rank, 1, plain[1], &same[1]);
    run_rank(0, plain[0], &same[0]);
    other.join();
    CHECK(same[0] && same[1]);
    for (ncclComm_t comm : plain)
        CHECK_NCCL(PLAIN(nccl, ncclCommDestroy)(comm));
    CHECK_CUDA(cudaSetDevice(0));
}

int main(int argc, char **argv)
{
    const check_test tests[] = {
        CHECK_TEST(one_rank),
        CHECK_TEST(ops_of_one_communicator_do_not_overlap),
        CHECK_TEST(two_ranks),
    };
    return wrapped_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}

/*
 * acs_nccl on one GPU: communicators of one rank have the bits of plain calls, in captures and outside. Ops of two
 * communicators overlap, and those of one do not.
 */
#include "acs_nccl.h"

#include "gpu_wrapped.cuh"

#include <nccl.h>

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

int main(int argc, char **argv)
{
    const check_test tests[] = {
        CHECK_TEST(one_rank),
        CHECK_TEST(ops_of_one_communicator_do_not_overlap),
    };
    return wrapped_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}

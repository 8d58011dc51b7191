/*
 * Groups on a GPU: NCCL, found at run time. Called by the thread that issues an op, with the slot's stream. The ops of a
 * communicator are issued one after the other, since each updates its token. Never synchronises, but for what NCCL does
 * when it connects ranks. Built without NCCL's header it only says so.
 */
#include "nccl/nccl.h"

#if ACS_NCCL_HAVE_CUDA

#include <nccl.h>

#define FUNCTIONS(X)                                                                                                   \
    X(ncclGetErrorString) X(ncclGetUniqueId) X(ncclCommInitRank) X(ncclCommDestroy) X(ncclCommCount)                   \
    X(ncclCommUserRank) X(ncclCommCuDevice) X(ncclGroupStart) X(ncclGroupEnd) X(ncclAllReduce) X(ncclBroadcast)        \
    X(ncclReduceScatter) X(ncclAllGather) X(ncclSend) X(ncclRecv)

static struct {
    FUNCTIONS(ACS_WRAP_MEMBER)
} g;
static const acs_wrap_function g_functions[] = {FUNCTIONS(ACS_WRAP_ROW)};
static const acs_wrap_library g_library = {"libnccl.so." ACS_WRAP_TEXT(NCCL_MAJOR), g_functions,
                                           sizeof g_functions / sizeof g_functions[0]};
static acs_wrap_loader g_loader = {&g_library, 1, 0, ""};

/* The header's values are those of acs_nccl.h. */
_Static_assert((int)ncclBfloat16 == (int)ACS_NCCL_BF16 && (int)ncclFloat32 == (int)ACS_NCCL_F32 &&
                   (int)ncclUint64 == (int)ACS_NCCL_U64 && (int)ncclInt8 == (int)ACS_NCCL_I8,
               "types");
_Static_assert((int)ncclSum == (int)ACS_NCCL_SUM && (int)ncclProd == (int)ACS_NCCL_PRODUCT &&
                   (int)ncclMax == (int)ACS_NCCL_MAX && (int)ncclMin == (int)ACS_NCCL_MIN &&
                   (int)ncclAvg == (int)ACS_NCCL_AVERAGE,
               "reductions");

bool acs_nccl_cuda_load(const char **why)
{
    return acs_wrap_load(&g_loader, why);
}

const char *acs_nccl_cuda_text(int status)
{
    return g.ncclGetErrorString((ncclResult_t)status);
}

static int code_of(ncclResult_t result)
{
    return result == ncclSuccess ? 0 : ACS_WRAP_CODE_BASE + (int)result;
}

/* -------------------------------------------------------------------------------------------------------- communicators */

int acs_nccl_cuda_describe(acs_nccl_comm *comm)
{
    ncclResult_t result = g.ncclCommCount(comm->handle, &comm->ranks);

    if (result == ncclSuccess)
        result = g.ncclCommUserRank(comm->handle, &comm->rank);
    if (result == ncclSuccess)
        result = g.ncclCommCuDevice(comm->handle, &comm->device);
    return code_of(result);
}

/* A communicator of one rank, made for the device of its first op. */
static int make_alone_locked(acs_nccl_comm *comm)
{
    ncclUniqueId id;
    ncclComm_t made = NULL;
    ncclResult_t result = g.ncclGetUniqueId(&id);

    if (result == ncclSuccess)
        result = g.ncclCommInitRank(&made, 1, id, 0);
    if (result != ncclSuccess)
        return code_of(result);
    comm->handle = made;
    return acs_nccl_cuda_describe(comm);
}

void acs_nccl_cuda_destroy(acs_nccl_comm *comm)
{
    if (comm->handle && !comm->adopted)
        (void)g.ncclCommDestroy(comm->handle); /* there is nobody to tell of a failure */
}

/* --------------------------------------------------------------------------------------------------------------- groups */

static ncclResult_t issue_part(const acs_nccl_part *p, ncclComm_t comm, cudaStream_t stream)
{
    const ncclDataType_t type = (ncclDataType_t)p->type;
    const ncclRedOp_t reduction = (ncclRedOp_t)p->reduction;
    const size_t count = (size_t)p->count;

    switch (p->kind) {
    case ACS_NCCL_ALL_REDUCE: return g.ncclAllReduce(p->send, p->receive, count, type, reduction, comm, stream);
    case ACS_NCCL_BROADCAST: return g.ncclBroadcast(p->send, p->receive, count, type, p->peer, comm, stream);
    case ACS_NCCL_REDUCE_SCATTER: return g.ncclReduceScatter(p->send, p->receive, count, type, reduction, comm, stream);
    case ACS_NCCL_ALL_GATHER: return g.ncclAllGather(p->send, p->receive, count, type, comm, stream);
    case ACS_NCCL_SEND: return g.ncclSend(p->send, count, type, p->peer, comm, stream);
    case ACS_NCCL_RECEIVE: return g.ncclRecv(p->receive, count, type, p->peer, comm, stream);
    }
    return ncclInvalidArgument;
}

/* A group that was begun is ended, also after an error: NCCL counts per thread. The first error is reported. */
static int issue_group(const acs_call_env *env, const acs_nccl_args *args)
{
    ncclResult_t result = g.ncclGroupStart(), ended;

    if (result != ncclSuccess)
        return code_of(result);
    for (size_t i = 0; i < args->count && result == ncclSuccess; i++)
        result = issue_part(&args->parts[i], args->comm->handle, env->stream);
    ended = g.ncclGroupEnd();
    return code_of(result != ncclSuccess ? result : ended);
}

static int run_locked(const acs_call_env *env, const acs_nccl_args *args)
{
    acs_nccl_comm *const comm = args->comm;
    const int code = comm->handle ? 0 : make_alone_locked(comm);

    if (code)
        return code;
    return comm->device == env->device ? issue_group(env, args) : ACS_NCCL_CODE_DEVICE;
}

int acs_nccl_cuda_run(const acs_call_env *env, const acs_nccl_args *args)
{
    const char *why;
    int code;

    if (!acs_nccl_cuda_load(&why))
        return ACS_WRAP_CODE_LIBRARY;
    (void)pthread_mutex_lock(&args->comm->lock); /* cannot fail: the mutex is valid and not held by this thread */
    code = run_locked(env, args);
    (void)pthread_mutex_unlock(&args->comm->lock);
    return code;
}

#else /* no NCCL */

bool acs_nccl_cuda_load(const char **why)
{
    *why = "this build of acs_nccl has no NCCL: its header was not there, or was not wanted";
    return false;
}

const char *acs_nccl_cuda_text(int status)
{
    (void)status;
    return NULL;
}

int acs_nccl_cuda_describe(acs_nccl_comm *comm)
{
    (void)comm;
    return ACS_WRAP_CODE_LIBRARY;
}

int acs_nccl_cuda_run(const acs_call_env *env, const acs_nccl_args *args)
{
    (void)env;
    (void)args;
    return ACS_WRAP_CODE_LIBRARY;
}

void acs_nccl_cuda_destroy(acs_nccl_comm *comm)
{
    (void)comm; /* none has a handle */
}

#endif

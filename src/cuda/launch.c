/*
 * One launch of a kernel that check() has passed, into a stream: of the program's op, or with arguments from elsewhere.
 * Called in a scope by submit.c, capture.c and call.c. It takes no lock and keeps nothing.
 */
#include "cuda/internal.h"

/* Only what was asked for: a launch without attributes takes the driver's short path. Returns how many. */
static unsigned launch_attributes(const acs_cuda *self, const acs_attributes *wanted, CUlaunchAttribute *list)
{
    unsigned n = 0;
    if (wanted->cluster.x) {
        list[n].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        list[n].value.clusterDim.x = wanted->cluster.x;
        list[n].value.clusterDim.y = wanted->cluster.y;
        list[n++].value.clusterDim.z = wanted->cluster.z;
    }
    if (wanted->cooperative) {
        list[n].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        list[n++].value.cooperative = 1;
    }
    if (wanted->priority) { /* clamped, as cudaStreamCreateWithPriority does it; more urgent is the smaller number */
        int priority = wanted->priority;
        priority = priority < self->limits.priority_high ? self->limits.priority_high : priority;
        priority = priority > self->limits.priority_low ? self->limits.priority_low : priority;
        list[n].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
        list[n++].value.priority = priority;
    }
    return n;
}

/* The driver copies the arguments before it returns, so pointers into the record will do. */
CUresult acs_cuda_launch_args(acs_cuda *self, const acs_record *op, CUstream stream, void **args)
{
    CUlaunchAttribute attributes[3];
    const acs_cuda_kernel *kernel = op->u.launch.resolved;
    CUlaunchConfig config = {
        .gridDimX = op->grid.x,
        .gridDimY = op->grid.y,
        .gridDimZ = op->grid.z,
        .blockDimX = op->u.launch.block.x,
        .blockDimY = op->u.launch.block.y,
        .blockDimZ = op->u.launch.block.z,
        .sharedMemBytes = (unsigned)op->u.launch.shared_bytes, /* checked against the device */
        .hStream = stream,
        .attrs = attributes,
    };
    config.numAttrs = launch_attributes(self, &op->u.launch.attributes, attributes);
    return self->cu.cuLaunchKernelEx(&config, kernel->launch, args, NULL);
}

static CUresult launch_with(acs_cuda *self, const acs_record *op, CUstream stream, void **args)
{
    for (uint32_t i = 0; i < op->arg_count; i++)
        args[i] = op->arg_bytes + op->args[i].offset; /* bound to the device: the identity, for now */
    return acs_cuda_launch_args(self, op, stream, args);
}

/* Rare, and apart so that other launches do not pay for its stack. */
static __attribute__((noinline)) CUresult launch_many_args(acs_cuda *self, const acs_record *op, CUstream stream)
{
    void *args[ACS_CUDA_ARGS_MOST]; /* check refuses more */
    return launch_with(self, op, stream, args);
}

CUresult acs_cuda_launch(acs_cuda *self, const acs_record *op, CUstream stream)
{
    void *args[32];
    if (ACS_UNLIKELY(op->arg_count > sizeof args / sizeof args[0]))
        return launch_many_args(self, op, stream);
    return launch_with(self, op, stream, args);
}

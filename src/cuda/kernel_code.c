/*
 * What the driver tells of a kernel's compiled code: its limits, its parameters, the cluster that it requires, and whether
 * it launches kernels. kernel.c asks once, at the first sight of a kernel, in a scope. Runs nothing, and keeps nothing.
 */
#include "cuda/graphs/graphs.h"

/* A variable of CUDA's device runtime, which the linker adds to modules that launch kernels from the device. */
static const char g_device_runtime[] = "__CNPRT_VERSION_NUMBER__";

static CUresult read_cluster(acs_cuda *self, acs_cuda_kernel *kernel)
{
    int must = 0, size[3] = {0};
    CUresult result = CUDA_SUCCESS;
    const CUfunction_attribute attributes[3] = {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                                                CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
                                                CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH};
    for (int i = 0; i < 3 && result == CUDA_SUCCESS; i++)
        result = self->cu.cuFuncGetAttribute(&size[i], attributes[i], kernel->function);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuFuncGetAttribute(&must, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, kernel->function);
    kernel->cluster = (acs_dim3){(uint32_t)size[0], (uint32_t)size[1], (uint32_t)size[2]};
    kernel->wants_cluster = must && !size[0];
    return result;
}

CUresult acs_cuda_code_limits(acs_cuda *self, acs_cuda_kernel *kernel)
{
    const CUfunction function = kernel->function;
    int dynamic_shared = 0;
    CUresult result =
        self->cu.cuFuncGetAttribute(&kernel->block_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuFuncGetAttribute(&kernel->static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuFuncGetAttribute(&kernel->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuFuncGetAttribute(&dynamic_shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
    if (result == CUDA_SUCCESS)
        result = read_cluster(self, kernel);
    atomic_init(&kernel->dynamic_shared, dynamic_shared);
    atomic_init(&kernel->wide_clusters, false);
    return result;
}

bool acs_cuda_code_params(acs_cuda *self, CUfunction function, uint32_t *bytes, uint32_t *offsets, uint32_t *count)
{
    *count = 0;
    if (!self->cu.cuFuncGetParamInfo)
        return false;
    for (; *count < ACS_CUDA_ARGS_MOST; (*count)++) {
        size_t offset, size;
        CUresult result = self->cu.cuFuncGetParamInfo(function, *count, &offset, &size);
        if (result != CUDA_SUCCESS)
            return result == CUDA_ERROR_INVALID_VALUE;
        bytes[*count] = (uint32_t)size;
        offsets[*count] = (uint32_t)offset;
    }
    return true;
}

/*
 * Whether the device runtime is in the kernel's module; if the driver does not tell the module, it may be. It is in the
 * library's own, too, whose kernels launch none.
 */
static bool has_device_runtime(acs_cuda *self, CUfunction function)
{
    CUmodule module = NULL, own = NULL;
    CUdeviceptr variable;
    size_t bytes;
    if (self->cu.cuFuncGetModule(&module, function) != CUDA_SUCCESS)
        return true;
    const CUfunction ours = atomic_load_explicit(&self->methods->own, memory_order_relaxed); /* relaxed: as it says */
    if (ours && self->cu.cuFuncGetModule(&own, ours) == CUDA_SUCCESS && module == own)
        return false;
    return self->cu.cuModuleGetGlobal(&variable, &bytes, module, g_device_runtime) != CUDA_ERROR_NOT_FOUND;
}

/* Instantiate a graph of this kernel alone, which the device may launch. The driver refuses kernels that launch others. */
static CUresult try_device_launch(acs_cuda *self, const acs_cuda_kernel *kernel, void **args)
{
    const acs_dim3 cluster = kernel->cluster;
    CUgraph graph = NULL;
    CUgraphNode node;
    CUgraphExec exec = NULL;
    const acs_dim3 one = {1, 1, 1};
    const CUDA_KERNEL_NODE_PARAMS params =
        acs_cuda_node_params(kernel->function, cluster.x ? cluster : one, one, 0, args);
    CUresult result = self->cu.cuGraphCreate(&graph, 0);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuGraphAddKernelNode(&node, graph, NULL, 0, &params);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    if (result == CUDA_SUCCESS)
        (void)acs_cuda_note(self, self->cu.cuGraphExecDestroy(exec));
    if (graph)
        (void)acs_cuda_note(self, self->cu.cuGraphDestroy(graph));
    return result;
}

bool acs_cuda_code_launches(acs_cuda *self, const acs_cuda_kernel *kernel)
{
    static unsigned char zeros[ACS_ARG_BYTES_MAX]; /* never written */
    void *args[ACS_CUDA_ARGS_MOST];
    if (!self->methods || !has_device_runtime(self, kernel->function))
        return false;
    for (uint32_t i = 0; i < kernel->param_count; i++)
        args[i] = zeros;
    return !kernel->params_known || try_device_launch(self, kernel, args) != CUDA_SUCCESS;
}

/*
 * The CUDA backend's own device code: an image made at build time if there was an nvcc, loaded into the context at the
 * first need (code.c). Owns the loaded library; called by code.c and by the files that issue bundles. If the build,
 * the driver, the GPU or a debugger prevents loading, the backend goes on without bundles; it never fails for that.
 */
#include "cuda/internal.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef ACS_HAVE_DEVICE
extern const uint64_t acs_device_image[];
#endif

/* ------------------------------------------------------------------------------------------------------- debuggers */

static int is_sanitizer(struct dl_phdr_info *info, size_t bytes, void *found)
{
    (void)bytes;
    if (strstr(info->dlpi_name, "libsanitizer-collection") || strstr(info->dlpi_name, "libsanitizer-public"))
        *(bool *)found = true;
    return *(bool *)found;
}

/* Whether the process that traces this one is cuda-gdb. */
static bool traced_by_cuda_gdb(void)
{
    char line[256], path[64], name[64] = "";
    long tracer = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "TracerPid:", 10) == 0)
            tracer = strtol(line + 10, NULL, 10);
    if (file)
        (void)fclose(file);
    (void)snprintf(path, sizeof path, "/proc/%ld/comm", tracer);
    file = tracer > 0 ? fopen(path, "re") : NULL;
    if (file && !fgets(name, sizeof name, file))
        name[0] = 0;
    if (file)
        (void)fclose(file);
    return strncmp(name, "cuda-gdb", 8) == 0;
}

/*
 * Find a tool that inspects kernels one by one. It sees more of plain launches, and cannot follow nodes that the
 * device changes. compute-sanitizer also checks the ends of allocations, so they are kept apart.
 */
static const char *find_debugger(acs_cuda *self)
{
    bool sanitizer = false;
    (void)dl_iterate_phdr(is_sanitizer, &sanitizer);
    self->base.apart = sanitizer;
    return sanitizer ? "compute-sanitizer is at work" : traced_by_cuda_gdb() ? "cuda-gdb is at work" : NULL;
}

/* ---------------------------------------------------------------------------------------------------------- loading */

/* The reason for the log, or NULL: the driver has all functions. */
static const char *driver_lacks(const acs_cuda *self)
{
    const acs_cuda_driver *cu = &self->cu;
    bool graphs = cu->cuGraphCreate && cu->cuGraphDestroy && cu->cuGraphAddKernelNode && cu->cuGraphInstantiateWithFlags &&
                  cu->cuGraphExecKernelNodeSetParams && cu->cuGraphNodeSetEnabled && cu->cuGraphExecDestroy &&
                  cu->cuGraphUpload && cu->cuGraphLaunch;
    bool device = cu->cuGraphKernelNodeSetAttribute && cu->cuGraphKernelNodeGetAttribute && cu->cuLibraryLoadData &&
                  cu->cuLibraryUnload && cu->cuLibraryGetKernel && cu->cuFuncGetParamInfo;
    return graphs && device ? NULL : "the driver is too old";
}

static bool tell_why(const char *why)
{
    acs_log(ACS_LOG_INFO, "cuda: kernels are launched one by one: no device code: %s", why);
    return false;
}

bool acs_cuda_device_init(acs_cuda *self, const acs_options *options)
{
    const char *tool = find_debugger(self), *why = driver_lacks(self);
    if (!why && options->issue != ACS_ISSUE_RESIDENT) /* an executor is a kernel like any other, in no graph */
        why = tool;
#ifndef ACS_HAVE_DEVICE
    why = "the library was built without nvcc";
#endif
    return why == NULL || tell_why(why);
}

bool acs_cuda_device_load(acs_cuda *self)
{
#ifdef ACS_HAVE_DEVICE
    const CUresult result = self->cu.cuLibraryLoadData(&self->library, acs_device_image, NULL, NULL, 0, NULL, NULL, 0);
#else
    const CUresult result = CUDA_ERROR_NOT_SUPPORTED; /* acs_cuda_device_init has said so */
#endif
    if (result == CUDA_SUCCESS)
        return true;
    self->library = NULL;
    (void)acs_cuda_note(self, result);
    return tell_why(acs_cuda_text((int)result));
}

void acs_cuda_device_fini(acs_cuda *self)
{
    const bool stays = atomic_load_explicit(&self->code_stays, memory_order_relaxed); /* relaxed: no call is under way */
    CUresult result = self->library && !stays ? self->cu.cuLibraryUnload(self->library) : CUDA_SUCCESS;
    self->library = NULL;
    acs_cuda_close_note(self, "device code", result);
}

CUfunction acs_cuda_device_kernel(acs_cuda *self, const char *name)
{
    CUkernel kernel = NULL;
    CUfunction function = NULL;
    CUresult result = self->cu.cuLibraryGetKernel(&kernel, self->library, name);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuKernelGetFunction(&function, kernel);
    if (result == CUDA_SUCCESS && self->cu.cuFuncLoad)
        result = self->cu.cuFuncLoad(function);
    if (result == CUDA_SUCCESS)
        return function;
    (void)acs_cuda_note(self, result);
    acs_log(ACS_LOG_INFO, "cuda: '%s' of the device code cannot be had: %s", name, acs_cuda_text((int)result));
    return NULL;
}

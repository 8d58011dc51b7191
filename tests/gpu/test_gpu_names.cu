/*
 * What profilers see: with every way to issue, each kernel of the program's has a record of its own with its own name in
 * CUPTI, which Nsight Systems and PyTorch's profiler read. CUPTI is looked for at run time; skipped where there is none.
 *
 * Records of kernels that the GPU launches by itself are the driver's to give: how many there are is printed.
 */
#include "check.h"

#include <cupti.h>
#include <dlfcn.h>

#if CUDART_VERSION >= 13000
typedef CUpti_ActivityKernel10 kernel_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
#endif

enum { CELLS = 16, STEPS = 40, BUFFER = 1 << 20 };

__global__ void seen_alpha(int *cell, int add)
{
    *cell = *cell * 3 + add;
}

__global__ void seen_beta(int *cell, const int *other)
{
    *cell += *other;
}

/* -------------------------------------------------------------------------------------------------------------- CUPTI */

struct profiler {
    decltype(&cuptiActivityEnable) enable;
    decltype(&cuptiActivityRegisterCallbacks) callbacks;
    decltype(&cuptiActivityGetNextRecord) next;
    decltype(&cuptiActivityFlushAll) flush;
};
static profiler g_profiler;
static int g_alpha, g_beta;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *records)
{
    *buffer = static_cast<uint8_t *>(aligned_alloc(8, BUFFER));
    *size = *buffer ? BUFFER : 0;
    *records = 0;
}

static void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid)
{
    CUpti_Activity *record = nullptr;
    while (g_profiler.next(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            continue;
        const char *name = reinterpret_cast<const kernel_record *>(record)->name;
        g_alpha += name && strstr(name, "seen_alpha");
        g_beta += name && strstr(name, "seen_beta");
    }
    free(buffer);
}

template <typename function>
static void find(void *library, const char *name, function *to)
{
    *to = reinterpret_cast<function>(dlsym(library, name));
}

static bool profiler_start()
{
    void *library = nullptr;
    for (const char *name : {"libcupti.so", "libcupti.so.13", "libcupti.so.12"})
        library = library ? library : dlopen(name, RTLD_NOW);
    if (!library)
        return false;
    find(library, "cuptiActivityEnable", &g_profiler.enable);
    find(library, "cuptiActivityRegisterCallbacks", &g_profiler.callbacks);
    find(library, "cuptiActivityGetNextRecord", &g_profiler.next);
    find(library, "cuptiActivityFlushAll", &g_profiler.flush);
    return g_profiler.enable && g_profiler.callbacks && g_profiler.next && g_profiler.flush &&
           g_profiler.callbacks(give_buffer, take_buffer) == CUPTI_SUCCESS &&
           g_profiler.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS;
}

/* -------------------------------------------------------------------------------------------------------------- tests */

/* CELLS chains of both kernels, the same again and again. @return the kernels that went by `issue`. */
static uint64_t run_by(int issue)
{
    int *cells = nullptr, wanted[CELLS] = {}, is[CELLS];
    CHECK_CUDA(cudaMalloc(&cells, sizeof is));
    CHECK_CUDA(cudaMemset(cells, 0, sizeof is));
    CHECK_CUDA(cudaDeviceSynchronize());
    acs_options options = check_options();
    options.issue = issue;
    acs_context *context = check_open(&options);
    for (int step = 0; step < STEPS; step++) {
        for (int c = 0; c < CELLS; c++) {
            int *cell = cells + c, *next = cells + (c + 1) % CELLS;
            ACS_LAUNCH_ON(context, seen_alpha, 1, 1, 0, ACS_ARGS(cell, step), ACS_USES(ACS_INOUT(cell, sizeof *cell)));
            ACS_LAUNCH_ON(context, seen_beta, 1, 1, 0, ACS_ARGS(next, cell),
                          ACS_USES(ACS_INOUT(next, sizeof *next), ACS_IN(cell, sizeof *cell)));
            wanted[c] = wanted[c] * 3 + step;
            wanted[(c + 1) % CELLS] += wanted[c];
        }
        CHECK_STATUS(acs_sync(context), ACS_OK);
    }
    const acs_statistics stats = check_stats(context);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaMemcpy(is, cells, sizeof is, cudaMemcpyDeviceToHost));
    CHECK(memcmp(is, wanted, sizeof is) == 0);
    CHECK_CUDA(cudaFree(cells));
    return stats.issued_by[issue];
}

static void names_are_seen(int issue, const char *name, bool all)
{
    g_alpha = g_beta = 0;
    const uint64_t by = run_by(issue);
    CHECK(g_profiler.flush(1) == CUPTI_SUCCESS);
    printf("  %-8s %3llu of %d kernels by it; records: %d of seen_alpha, %d of seen_beta\n", name,
           static_cast<unsigned long long>(by), 2 * STEPS * CELLS, g_alpha, g_beta);
    if (all) {
        CHECK_EQ(g_alpha, STEPS * CELLS);
        CHECK_EQ(g_beta, STEPS * CELLS);
    }
}

static void kernels_are_seen_by_their_names_with_every_vehicle()
{
    names_are_seen(ACS_ISSUE_LAUNCH, "launch", true);
    names_are_seen(ACS_ISSUE_GRAPH, "graph", true);
    names_are_seen(ACS_ISSUE_REPLAY, "replay", true);
    names_are_seen(ACS_ISSUE_LAYERS, "layers", true);
    names_are_seen(ACS_ISSUE_GPU, "gpu", false);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {CHECK_TEST(kernels_are_seen_by_their_names_with_every_vehicle)};
    /* Before the first call of CUDA, so that nothing is missed. */
    if (!profiler_start()) {
        printf("skipped: no CUPTI is found, or it does not start here\n");
        return CHECK_SKIPPED;
    }
    return CHECK_MAIN(argc, argv, tests);
}

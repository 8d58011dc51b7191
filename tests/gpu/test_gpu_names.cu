/*
 * What profilers see: with every way to issue but one, each kernel of the program's has a record of its own with
 * its own name in CUPTI, which Nsight Systems and PyTorch's profiler read. Where nodes of layers are switched off
 * there may be more records than kernels. Of kernels that the GPU launches by itself there need be none: the
 * ranges of NVTX, which this program takes as a profiler would, name those, and `auto` does without them. CUPTI is
 * looked for at run time; skipped where there is none.
 */
#include "check.h"

#include <atomic>
#include <cupti.h>
#include <dlfcn.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif
/* From here on a program can be its own tool. */
#if defined(NVTX_LOAD_SEQUENCE_VERSION) && NVTX_LOAD_SEQUENCE_VERSION >= 2
#define TAKES_RANGES 1
#else
#define TAKES_RANGES 0
#endif

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

/* ------------------------------------------------------------------------------------------------------- CUPTI */

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

/* ------------------------------------------------------------------------------------------------------ ranges */

/* Kernels that the ranges of one issue method named; any thread. */
static std::atomic<const char *> g_method{""};
static std::atomic<int> g_ranges, g_named_alpha, g_named_beta;
static std::atomic<int> g_single; /* ranges of single launches, each named as its kernel */

static int count_of(const char *message, const char *kernel)
{
    const char *at = strstr(message, kernel);
    int count = 0;
    return at && sscanf(at + strlen(kernel), " x%d", &count) == 1 ? count : 0;
}

static void note_range(const char *message)
{
    const size_t length = strlen(g_method);
    g_single += strncmp(message, "seen_alpha (test_gpu_names.cu:", 30) == 0;
    g_single += strncmp(message, "seen_beta (test_gpu_names.cu:", 29) == 0;
    if (strncmp(message, g_method, length) != 0 || message[length] != ':')
        return;
    g_ranges++;
    g_named_alpha += count_of(message, "seen_alpha");
    g_named_beta += count_of(message, "seen_beta");
}

#if TAKES_RANGES
static int g_domain;

static nvtxDomainHandle_t NVTX_API make_domain(const char *)
{
    return reinterpret_cast<nvtxDomainHandle_t>(&g_domain);
}

static int NVTX_API push_range(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range)
{
    if (reinterpret_cast<int *>(domain) == &g_domain && range->messageType == NVTX_MESSAGE_TYPE_ASCII)
        note_range(range->message.ascii);
    return 0;
}

static int NVTX_API attach(NvtxGetExportTableFunc_t tables)
{
    const auto *callbacks = static_cast<const NvtxExportTableCallbacks *>(tables(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable table = nullptr;
    unsigned size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
        size <= NVTX_CBID_CORE2_DomainCreateA)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(make_domain);
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(push_range);
    return 1;
}
#endif

/* ------------------------------------------------------------------------------------------------------- tests */

/* CELLS chains of both kernels, the same again and again. */
static acs_statistics run_by(int issue, int repeats)
{
    int *cells = nullptr, wanted[CELLS] = {}, is[CELLS];
    CHECK_CUDA(cudaMalloc(&cells, sizeof is));
    CHECK_CUDA(cudaMemset(cells, 0, sizeof is));
    CHECK_CUDA(cudaDeviceSynchronize());
    acs_options options = check_options();
    options.issue = issue;
    options.repeats = repeats;
    if (repeats == ACS_REPEATS_AUTO)
        options.workers = 0; /* this thread builds graphs, so that none comes later than it is wanted */
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
    return stats;
}

enum { ALL = STEPS * CELLS }; /* of each kernel */

static acs_statistics look_at(int issue, const char *name, int repeats = ACS_REPEATS_NAMED)
{
    g_alpha = g_beta = 0;
    g_ranges = g_named_alpha = g_named_beta = g_single = 0;
    g_method = name;
    const acs_statistics stats = run_by(issue, repeats);
    CHECK(g_profiler.flush(1) == CUPTI_SUCCESS);
    printf("  %-8s %3d of %d kernels by it; records: %d of seen_alpha, %d of seen_beta; %d ranges name %d and %d\n",
           name, static_cast<int>(stats.issued_by[issue]), 2 * ALL, g_alpha, g_beta, g_ranges.load(),
           g_named_alpha.load(), g_named_beta.load());
    return stats;
}

/* Whatever went by the issue method is named by its ranges; each launch has its own. */
static void names_are_in_ranges(int issue, const acs_statistics &stats)
{
    const uint64_t wanted = TAKES_RANGES && issue != ACS_ISSUE_LAUNCH ? stats.issued_by[issue] : 0;
    CHECK_EQ(g_named_alpha + g_named_beta, wanted);
    CHECK((g_ranges > 0) == (wanted > 0));
    CHECK_EQ(g_single, TAKES_RANGES ? stats.issued_by[ACS_ISSUE_LAUNCH] : 0);
}

static void kernels_are_seen_by_their_names_with_every_method_of_the_host()
{
    static const struct {
        int issue;
        const char *name;
    } ways[] = {{ACS_ISSUE_LAUNCH, "launch"}, {ACS_ISSUE_REPLAY, "replay"}};
    for (const auto &way : ways) {
        const acs_statistics stats = look_at(way.issue, way.name);
        CHECK(g_alpha == ALL && g_beta == ALL);
        names_are_in_ranges(way.issue, stats);
    }
}

/* Replays of passes, too. Until their graphs are there kernels are launched one by one. */
static void kernels_of_passes_are_seen_by_their_names()
{
    const acs_statistics stats = look_at(ACS_ISSUE_REPLAY, "passes", ACS_REPEATS_AUTO);
    CHECK(g_alpha >= ALL && g_beta >= ALL);
    CHECK(stats.replayed > ALL);
    CHECK(static_cast<uint64_t>(g_named_alpha + g_named_beta) <= stats.issued_by[ACS_ISSUE_REPLAY]);
}

static void all_kernels_are_seen_where_a_profiler_is_attached()
{
    (void)look_at(ACS_ISSUE_AUTO, "auto", ACS_REPEATS_AUTO);
    CHECK(!TAKES_RANGES || g_alpha >= ALL);
    CHECK(!TAKES_RANGES || g_beta >= ALL);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        CHECK_TEST(kernels_are_seen_by_their_names_with_every_method_of_the_host),
        CHECK_TEST(kernels_of_passes_are_seen_by_their_names),
        CHECK_TEST(all_kernels_are_seen_where_a_profiler_is_attached),
    };
#if TAKES_RANGES
    /* One copy of NVTX serves the program and the library that is linked into it. */
    InitializeInjectionNvtx2_fnptr = attach;
#endif
    /* Before the first call of CUDA, so that nothing is missed. */
    if (!profiler_start()) {
        printf("skipped: no CUPTI is found, or it does not start here\n");
        return CHECK_SKIPPED;
    }
    return CHECK_MAIN(argc, argv, tests);
}

/*
 * The GPU's part of the random programs over the twin: kernels with the bodies of mix.h, in an order of the program's seed,
 * and the verdict on the driver calls that the library made. Called by runner.c; gpu.cu is the same for a real GPU.
 */
#include "executor_double.h"
#include "twin.h"

#include "random/program.h"

#include <pthread.h>
#include <string.h>

enum { KERNELS = MIX_SIGNATURE_COUNT + 2, NOTHING = MIX_SIGNATURE_COUNT, LIBRARY = MIX_SIGNATURE_COUNT + 1 };

static const char g_symbols[KERNELS], g_executor_symbol; /* what stands for the addresses of __global__ functions */
static uint32_t g_param_bytes[KERNELS][MIX_EXTRAS + 1];
static CUkernel g_library;
static bool g_may_lose;
static dice g_dice;

typedef struct library_work {
    mix_head head;
    mix_piece pieces[MIX_PIECES];
} library_work;

static void mix_blocks(void *const *args, const uint32_t grid[3])
{
    const mix_head *head = args[0];
    mix_run(head, (const mix_piece *)(head + 1), (const unsigned char *const *)(args + 1), grid[0] * grid[1] * grid[2]);
}

static void mix_body(void *const *args)
{
    uint32_t grid[3];
    twin_grid(grid);
    mix_blocks(args, grid);
}

/* From the first byte of a piece to its last. */
static size_t mix_touches(void *const *args, twin_range *out, size_t capacity)
{
    const mix_head *head = args[0];
    const mix_piece *piece = (const mix_piece *)(head + 1);
    size_t count = 0;
    for (uint32_t i = 0; i < head->pieces && count < capacity; i++)
        if (piece[i].rows && piece[i].row_bytes)
            out[count++] = (twin_range){piece[i].base, (uint64_t)(piece[i].rows - 1) * piece[i].pitch + piece[i].row_bytes};
    return count;
}

static CUkernel add_kernel(int k)
{
    const uint16_t *sizes = NULL;
    uint32_t pieces = MIX_PIECES, extras = k < NOTHING ? signature_extras(k, &sizes, &pieces) : 0;
    twin_kernel_spec spec = {.name = "mix", .symbol = &g_symbols[k], .param_bytes = g_param_bytes[k]};
    spec.runtime = k == 3 || k == 4; /* one module launches kernels, though only one of its kernels does */
    spec.launches = k == 3;
    if (k != NOTHING) {
        spec.body = mix_body;
        spec.touches = mix_touches;
        spec.param_count = 1 + extras;
        g_param_bytes[k][0] = (uint32_t)(sizeof(mix_head) + pieces * sizeof(mix_piece));
        for (uint32_t i = 0; i < extras; i++)
            g_param_bytes[k][1 + i] = sizes[i];
    }
    return twin_kernel(&spec);
}

/* ---------------------------------------------------------------------------------------------------- an executor */

static executor_double g_executor;

/* Bodies have the numbers of signatures, then that of the kernel without arguments. */
static void run_body(const acs_executor_op *op, const unsigned char *args)
{
    const uint16_t *sizes = NULL;
    uint32_t pieces = 0, offset = 0;
    void *list[MIX_EXTRAS + 1];
    if (op->body >= ACS_EXECUTOR_BODIES)
        executor_double_own(op, args);
    if (op->body >= NOTHING)
        return;
    const uint32_t count = 1 + signature_extras(op->body, &sizes, &pieces);
    for (uint32_t i = 0; i < count; i++) {
        list[i] = (void *)(uintptr_t)(args + offset);
        offset += (g_param_bytes[op->body][i] + 7u) / 8 * 8;
    }
    mix_blocks(list, op->grid);
}

static void executor_body(void *const *args)
{
    executor_double_run(&g_executor, args[0]);
}

static void add_executor(uint64_t seed)
{
    static const uint32_t bytes[] = {sizeof(acs_executor_launch)};
    const twin_kernel_spec spec = {
        .name = "executor", .symbol = &g_executor_symbol, .body = executor_body, .param_bytes = bytes, .param_count = 1};
    g_executor = (executor_double){.seed = seed, .run = run_body};
    (void)twin_kernel(&spec);
}

acs_status gpu_opened(acs_context *context)
{
    acs_kernel kernels[MIX_SIGNATURE_COUNT + 1];
    acs_executor_params params = {.size = sizeof params,
                                  .executor = {"executor", &g_executor_symbol, NULL, ACS_KERNEL_FUNCTION, 0},
                                  .layout = ACS_EXECUTOR_LAYOUT,
                                  .threads = 128,
                                  .shared_bytes = 4096,
                                  .kernels = kernels,
                                  .count = MIX_SIGNATURE_COUNT + 1,
                                  .bodies = MIX_SIGNATURE_COUNT + 1};
    for (int k = 0; k <= MIX_SIGNATURE_COUNT; k++)
        kernels[k] = (acs_kernel){"mix", &g_symbols[k], NULL, ACS_KERNEL_FUNCTION, 0};
    const acs_status status = acs_executor_add(context, &params);
    return twin_lost() || g_may_lose ? ACS_OK : status;
}

void gpu_begin(const random_config *config)
{
    twin_seed(config->seed);
    g_may_lose = config->may_lose;
    g_dice = (dice){config->seed ^ 0xa076bc9};
    for (int k = 0; k < KERNELS; k++)
        g_library = add_kernel(k); /* the last one is what gpu_call launches */
    add_executor(config->seed);
}

/* Somewhere in the program, most often. */
static void lose_somewhere(void)
{
    static const CUresult codes[] = {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED,
                                     CUDA_ERROR_ECC_UNCORRECTABLE};
    CUresult code = codes[dice_below(&g_dice, sizeof codes / sizeof codes[0])];
    uint32_t where = dice_below(&g_dice, 3);
    if (where == 0)
        twin_lose_after_kernels(code, dice_below(&g_dice, 30));
    else if (where == 1)
        twin_lose_after_calls(code, dice_below(&g_dice, 400));
    else
        twin_lose_after_work(code, dice_below(&g_dice, 200));
}

void gpu_faults(uint32_t per_mille)
{
    if (per_mille && g_may_lose)
        lose_somewhere();
    else if (g_may_lose)
        twin_lose_never();
    else
        twin_fail_rate(per_mille);
}

void gpu_end(verdict *v)
{
    twin_audit();
    if (twin_breach())
        verdict_fail(v, "an illegal driver call: %s (%llu in all)", twin_breach(), (unsigned long long)twin_breaches());
    if (g_executor.wrong)
        verdict_fail(v, "the table of an executor: %s", g_executor.wrong);
}

const void *gpu_kernel(int signature)
{
    return &g_symbols[signature < 0 ? NOTHING : signature];
}

/* What a library would do: its own kernel into the stream that it is given. Its errors are not the subject. */
int gpu_call(void *stream, const mix_head *head, const mix_piece *pieces)
{
    library_work work;
    void *args[] = {&work};
    CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 64, .blockDimY = 1,
                             .blockDimZ = 1, .hStream = stream};
    memset(&work, 0, sizeof work);
    work.head = *head;
    memcpy(work.pieces, pieces, head->pieces * sizeof work.pieces[0]);
    twin_spare_thread(true);
    CUresult result = TWIN_GET(cuLaunchKernelEx, 11060)(&config, (CUfunction)g_library, args, NULL);
    twin_spare_thread(false);
    return twin_lost() ? 0 : (int)result; /* that the device is lost is the backend's to find out */
}

int gpu_fill(void *memory, int value, size_t bytes)
{
    CUcontext context = NULL;
    twin_spare_thread(true);
    CUresult result = TWIN_GET(cuCtxPushCurrent, 4000)(twin_context(0));
    if (result == CUDA_SUCCESS)
        result = TWIN_GET(cuMemsetD8Async, 3020)((CUdeviceptr)(uintptr_t)memory, (unsigned char)value, bytes, NULL);
    if (result == CUDA_SUCCESS)
        result = TWIN_GET(cuStreamSynchronize, 2000)(NULL);
    if (twin_thread_depth())
        (void)TWIN_GET(cuCtxPopCurrent, 4000)(&context);
    twin_spare_thread(false);
    if (twin_lost())
        memset(memory, value, bytes); /* so that the oracle knows what is there */
    return twin_lost() ? 0 : (int)result;
}

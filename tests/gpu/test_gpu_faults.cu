/*
 * Failures on a GPU: a launch that only the driver can refuse, kernels that fault, kernels that never end. A fault kills the
 * CUDA context of its process, so each runs in a child: this program again, with the name of the case as its argument.
 */
#include "kernels.cuh"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

/* Refused by the driver at the launch: more blocks than can be resident together. */
static acs_op launch_too_large(acs_context *context, uint32_t *word)
{
    acs_attributes attributes = {};
    attributes.cooperative = 1;
    return ACS_LAUNCH_WITH(context, attributes, mix_kernel, 1 << 20, 1024, 0, ACS_ARGS(word, nullptr, 1, 0, 0),
                           ACS_USES(ACS_INOUT(word, 4)));
}

static void check_failed_launch(const acs_options &options)
{
    device_buffer<uint32_t> a(1), b(1);
    acs_context *context = check_open(&options);
    launch_mix(context, a.data, NULL, 1, 1, 20000);
    const acs_op bad = launch_too_large(context, a.data);
    const acs_op dependent = launch_mix(context, a.data, NULL, 1, 2, 0);
    const acs_op other = launch_mix(context, b.data, NULL, 1, 3, 0);
    CHECK(bad != 0 && dependent != 0 && other != 0);
    CHECK_STATUS(acs_wait(context, other), ACS_OK);
    CHECK_STATUS(acs_wait(context, bad), ACS_ERR_LAUNCH);
    CHECK_STATUS(acs_wait(context, dependent), ACS_ERR_SKIPPED);
    CHECK_STATUS(acs_wait_range(context, a.data, 4, ACS_READ), ACS_ERR_SKIPPED);
    acs_error error = {};
    error.size = sizeof error;
    CHECK_STATUS(acs_context_error(context, &error), ACS_ERR_LAUNCH);
    CHECK_EQ(error.op, bad);
    CHECK_EQ(error.native, cudaErrorCooperativeLaunchTooLarge);
    CHECK(error.site.file && strstr(error.site.file, "test_gpu_faults") && error.site.line > 0);
    CHECK(strstr(error.text, cudaGetErrorString(cudaErrorCooperativeLaunchTooLarge)) != NULL);
    CHECK_STATUS(acs_op_error(context, dependent, &error), ACS_ERR_SKIPPED);
    CHECK_EQ(error.cause, bad);
    CHECK_STATUS(acs_clear(context), ACS_OK);
    CHECK_STATUS(acs_wait(context, launch_mix(context, a.data, NULL, 1, 4, 0)), ACS_OK);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_EQ(a.first(), mix_word(mix_word(0, 0, 1), 0, 4));
    CHECK_EQ(b.first(), mix_word(0, 0, 3));
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaGetLastError());
}

static void launch_that_the_driver_refuses_is_exact_and_skips_its_dependents_only()
{
    for (int workers = 0; workers < 2; workers++)
        for (int wait = ACS_WAIT_GPU; wait <= ACS_WAIT_HOST; wait++) {
            acs_options options = check_options();
            options.workers = workers;
            options.wait = wait;
            check_failed_launch(options);
        }
}

static void exhausted_memory_is_an_error_and_nothing_else()
{
    acs_context *context = check_open_default();
    void *memory = NULL;
    CHECK_STATUS(acs_malloc(context, (size_t)1 << 50, ACS_MEMORY_DEVICE, &memory), ACS_ERR_MEMORY);
    CHECK(memory == NULL);
    CHECK_CUDA(cudaGetLastError());
    CHECK_STATUS(acs_malloc(context, 1 << 20, ACS_MEMORY_DEVICE, &memory), ACS_OK);
    CHECK(acs_free(context, memory) != 0);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* --------------------------------------------------------------------------------------------------- in the child */

enum fault { FAULT_TRAP, FAULT_ADDRESS, FAULT_ENDLESS };

static __global__ void fault_kernel(uint32_t *word, int fault)
{
    delay(50000);
    if (fault == FAULT_TRAP)
        __trap();
    *reinterpret_cast<volatile uint32_t *>(word + (1ull << 40)) = 1; /* no allocation reaches there */
}

/* Ops before, the faulting one, ops after, the last behind it; nothing may hang, and no answer is wrong. */
static void fault_in_child(int fault, const acs_options &options)
{
    enum { OPS = 40 };
    device_buffer<uint32_t> *words = new device_buffer<uint32_t>(OPS); /* not freed: the CUDA context is lost */
    acs_context *context = check_open(&options);
    const acs_op settled = launch_mix(context, words->data, NULL, 1, 1, 0);
    acs_op bad = 0, later = 0;
    CHECK_STATUS(acs_sync(context), ACS_OK);
    for (int i = 0; i < OPS; i++) {
        if (i == OPS / 2)
            bad = ACS_LAUNCH_ON(context, fault_kernel, 1, 1, 0, ACS_ARGS(words->data + i, fault),
                                ACS_USES(ACS_INOUT(words->data + i, 4)));
        else
            later = launch_mix(context, words->data + i, i == OPS - 1 ? words->data + OPS / 2 : NULL, 1, i, 1000);
    }
    acs_error error = {};
    error.size = sizeof error;
    CHECK_STATUS(acs_sync(context), ACS_ERR_DEVICE);
    CHECK_STATUS(acs_wait(context, bad), ACS_ERR_DEVICE);
    CHECK_STATUS(acs_context_error(context, &error), ACS_ERR_DEVICE);
    CHECK(error.native != 0 && error.text[0]);
    printf("  context: op %llu: %s\n", (unsigned long long)error.op, error.text);
    if (options.serial) {
        CHECK_EQ(error.op, bad);
        CHECK(error.site.name && strstr(error.site.name, "fault_kernel"));
    }
    CHECK_STATUS(acs_op_error(context, bad, &error), ACS_ERR_DEVICE);
    CHECK_STATUS(acs_op_error(context, settled, NULL), ACS_OK);
    if (later)
        CHECK_STATUS(acs_wait(context, later), ACS_ERR_DEVICE);
    CHECK_EQ(launch_mix(context, words->data, NULL, 1, 1, 0), 0);
    CHECK_STATUS(check_last_error().status, ACS_ERR_DEVICE);
    CHECK_STATUS(acs_clear(context), ACS_ERR_DEVICE);
    CHECK_STATUS(acs_close(context), ACS_ERR_DEVICE);
}

/* Ends only when the host says so, which this test does after acs_close returned. */
static __global__ void endless_kernel(volatile uint32_t *flag, uint32_t *word, uint32_t *block)
{
    while (*flag == 0) {
    }
    *block += 1; /* memory of acs_malloc, which was "freed" meanwhile */
    *word = 7;
}

/*
 * The kernel ended after all, and the CUDA context is well: a new context runs. What was chained behind the kernel on the
 * GPU was issued, and ran then; what waited for it on the host was not.
 */
static void check_after_endless(uint32_t *word, bool chained)
{
    acs_context *context = check_open_default();
    CHECK_STATUS(acs_wait(context, launch_mix(context, word, NULL, 1, 1, 0)), ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
    uint32_t value = 0;
    CHECK_CUDA(cudaMemcpy(&value, word, sizeof value, cudaMemcpyDeviceToHost));
    CHECK_EQ(value, mix_word(chained ? mix_word(7, 0, 2) : 7, 0, 1));
}

static void endless_in_child(acs_options options)
{
    uint32_t *flag = NULL, *block = NULL;
    device_buffer<uint32_t> *words = new device_buffer<uint32_t>(2);
    CHECK_CUDA(cudaHostAlloc((void **)&flag, sizeof *flag, cudaHostAllocMapped));
    *flag = 0;
    options.watchdog_s = 2;
    acs_context *context = check_open(&options);
    CHECK_STATUS(acs_malloc(context, sizeof *block, ACS_MEMORY_DEVICE, (void **)&block), ACS_OK);
    launch_mix(context, words->data + 1, NULL, 1, 1, 1000);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    const acs_op endless =
        ACS_LAUNCH_ON(context, endless_kernel, 1, 1, 0, ACS_ARGS(flag, words->data, block),
                      ACS_USES(ACS_INOUT(words->data, 4), ACS_INOUT(block, 4)));
    const acs_op behind = launch_mix(context, words->data, NULL, 1, 2, 0);
    const acs_op gone = acs_free(context, block);
    acs_error error = {};
    error.size = sizeof error;
    CHECK_STATUS(acs_wait(context, behind), ACS_ERR_DEVICE);
    CHECK_STATUS(acs_wait(context, gone), ACS_ERR_DEVICE);
    CHECK_STATUS(acs_sync(context), ACS_ERR_DEVICE);
    CHECK_STATUS(acs_context_error(context, &error), ACS_ERR_DEVICE);
    printf("  context: op %llu: %s\n", (unsigned long long)error.op, error.text);
    CHECK_EQ(error.op, endless);
    CHECK_EQ(error.native, ETIMEDOUT);
    CHECK(strstr(error.text, "endless_kernel") != NULL);
    CHECK_EQ(launch_mix(context, words->data + 1, NULL, 1, 1, 0), 0);
    CHECK_STATUS(acs_close(context), ACS_ERR_DEVICE);
    *(volatile uint32_t *)flag = 1;
    CHECK_CUDA(cudaDeviceSynchronize());
    check_after_endless(words->data, !options.serial && options.wait == ACS_WAIT_GPU);
}

struct child_case {
    const char *name;
    int fault, serial, workers, wait;
};

static const child_case g_cases[] = {
    {"child:trap", FAULT_TRAP, 0, 1, ACS_WAIT_GPU},
    {"child:trap-inline", FAULT_TRAP, 0, 0, ACS_WAIT_GPU},
    {"child:trap-4-workers", FAULT_TRAP, 0, 4, ACS_WAIT_GPU},
    {"child:trap-host-wait", FAULT_TRAP, 0, 1, ACS_WAIT_HOST},
    {"child:trap-serial", FAULT_TRAP, 1, 1, ACS_WAIT_GPU},
    {"child:address", FAULT_ADDRESS, 0, 1, ACS_WAIT_GPU},
    {"child:address-serial", FAULT_ADDRESS, 1, 0, ACS_WAIT_GPU},
    {"child:endless", FAULT_ENDLESS, 0, 1, ACS_WAIT_GPU},
    {"child:endless-inline", FAULT_ENDLESS, 0, 0, ACS_WAIT_GPU},
    {"child:endless-4-workers", FAULT_ENDLESS, 0, 4, ACS_WAIT_GPU},
    {"child:endless-host-wait", FAULT_ENDLESS, 0, 1, ACS_WAIT_HOST},
    {"child:endless-serial", FAULT_ENDLESS, 1, 1, ACS_WAIT_GPU},
};

static int run_case(const char *name)
{
    alarm(120); /* a hang is a failure */
    for (const child_case &c : g_cases) {
        if (strcmp(c.name, name) != 0)
            continue;
        acs_options options = check_options();
        options.serial = c.serial;
        options.workers = c.workers;
        options.wait = c.wait;
        if (c.fault == FAULT_ENDLESS)
            endless_in_child(options);
        else
            fault_in_child(c.fault, options);
        fflush(stdout);
        _exit(g_check_failures ? 1 : 0); /* no destructors on a lost CUDA context */
    }
    fprintf(stderr, "no case %s\n", name);
    return 1;
}

static void kernels_that_fault_or_never_end_end_every_wait_and_are_named()
{
    for (const child_case &c : g_cases) {
        int status = -1;
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", "test_gpu_faults", c.name, (char *)NULL);
            _exit(127);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fprintf(stderr, "%s: ended with %s %d\n", c.name, WIFEXITED(status) ? "status" : "signal",
                    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
            g_check_failures++;
        }
    }
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        CHECK_TEST(launch_that_the_driver_refuses_is_exact_and_skips_its_dependents_only),
        CHECK_TEST(exhausted_memory_is_an_error_and_nothing_else),
        CHECK_TEST(kernels_that_fault_or_never_end_end_every_wait_and_are_named),
    };
    if (argc == 2 && strncmp(argv[1], "child:", 6) == 0)
        return run_case(argv[1]);
    return CHECK_MAIN(argc, argv, tests);
}

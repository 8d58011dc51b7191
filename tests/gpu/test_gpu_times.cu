/*
 * The times that CUPTI tells of ops (ACS_TRACE_TIMES): chains of kernels that wait a known time on the GPU, issued in each
 * way. In the trace each takes at least that long, and begins when the one before has ended. CUPTI must start before CUDA,
 * so each way of learning has a process of its own, which this program starts. Skipped where there is no CUPTI.
 */
#include "check.h"

#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

enum { CHAINS = 6, STEPS = 30, WAIT_NS = 40000 };

static __device__ unsigned long long gpu_ns()
{
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void wait_and_add(int *cell, int add)
{
    const unsigned long long begin = gpu_ns();
    while (gpu_ns() - begin < WAIT_NS) {
    }
    *cell = *cell * 3 + add;
}

/* The columns of an op that are looked at (docs/trace.md). */
struct row {
    unsigned long long seq, began, ended;
    int status;
};

static std::string read_file(const char *path)
{
    std::string text;
    FILE *file = fopen(path, "r");
    char part[4096];
    CHECK(file != nullptr);
    for (size_t bytes; file && (bytes = fread(part, 1, sizeof part, file)) > 0;)
        text.append(part, bytes);
    if (file)
        fclose(file);
    return text;
}

static std::vector<row> rows_of(const std::string &trace)
{
    std::vector<row> rows;
    const size_t ops = trace.find("\"ops\":[");
    CHECK(ops != std::string::npos);
    const char *at = ops == std::string::npos ? "" : trace.c_str() + ops + 7;
    for (row r; sscanf(at, "[%llu,%*d,%*d,%*d,%*u,%*u,%*u,%*u,%llu,%llu", &r.seq, &r.began, &r.ended) == 3;) {
        rows.push_back(r);
        at = strchr(at, ']');
        at = at && at[1] == ',' ? at + 2 : "";
        at += *at == '\n';
    }
    return rows;
}

/* The ops of all chains. */
static void run_by(int issue, int repeats, const char *times, const char *path)
{
    int *cells = nullptr, is[CHAINS] = {}, wanted[CHAINS] = {};
    acs_options options = check_options();
    options.issue = issue;
    options.repeats = repeats;
    options.trace_times = strcmp(times, "kernels") == 0 ? ACS_TRACE_TIMES_KERNELS : ACS_TRACE_TIMES_GRAPHS;
    snprintf(options.trace, sizeof options.trace, "%s", path);
    acs_context *context = check_open(&options);
    CHECK_STATUS(acs_malloc(context, sizeof is, ACS_MEMORY_DEVICE, (void **)&cells), ACS_OK);
    CHECK(acs_memset(context, cells, 0, sizeof is) != 0);
    for (int step = 0; step < STEPS; step++) {
        for (int c = 0; c < CHAINS; c++) {
            CHECK(ACS_LAUNCH_ON(context, wait_and_add, 1, 1, 0, ACS_ARGS(cells + c, step),
                                ACS_USES(ACS_INOUT(cells + c, sizeof(int)))) != 0);
            wanted[c] = wanted[c] * 3 + step;
        }
        if (repeats == ACS_REPEATS_AUTO)
            CHECK_STATUS(acs_sync(context), ACS_OK);
    }
    CHECK(acs_memcpy(context, is, cells, sizeof is) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK(acs_free(context, cells) != 0);
    const acs_statistics stats = check_stats(context);
    printf("  %llu of %d kernels by the method, %llu replayed\n", (unsigned long long)stats.issued_by[issue],
           CHAINS * STEPS, (unsigned long long)stats.replayed);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK(memcmp(is, wanted, sizeof is) == 0);
}

/* Op 1 is the fill, and the copy comes last. */
static void look_at(const std::vector<row> &rows, const char *what)
{
    std::vector<unsigned long long> ended(CHAINS);
    int kernels = 0, too_short = 0, too_early = 0;
    for (const row &r : rows) {
        if (r.seq < 2 || r.seq > 1 + CHAINS * STEPS)
            continue;
        const size_t chain = (r.seq - 2) % CHAINS;
        kernels++;
        too_short += r.ended - r.began + 1000 < WAIT_NS; /* the clocks of GPU and CPU run at their own rates */
        too_early += r.began < ended[chain];
        ended[chain] = r.ended;
    }
    CHECK_EQ(kernels, CHAINS * STEPS);
    CHECK_EQ(too_short, 0);
    CHECK_EQ(too_early, 0);
    printf("  %s: %d kernels, %d too short, %d before their turn\n", what, kernels, too_short, too_early);
}

static const char *g_times; /* how the process learns times */

static void check_way(int issue, int repeats, const char *what)
{
    char path[] = "/tmp/acs_times_XXXXXX", other[sizeof path + 24];
    static int contexts = 1; /* that of has_cupti */
    const int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    run_by(issue, repeats, g_times, path);
    snprintf(other, sizeof other, "%s.%d", path, ++contexts);
    const std::string trace = read_file(other);
    CHECK(trace.find(std::string("\"times\":\"") + g_times) != std::string::npos);
    const size_t timed = trace.find("\"timed\":");
    CHECK(timed != std::string::npos && atoi(trace.c_str() + timed + 8) == CHAINS * STEPS + 2);
    look_at(rows_of(trace), what);
    unlink(other);
    unlink(path);
}

static void launches_one_by_one()
{
    check_way(ACS_ISSUE_LAUNCH, ACS_REPEATS_NAMED, "launch");
}

static void graphs_of_bundles()
{
    check_way(ACS_ISSUE_REPLAY, ACS_REPEATS_NAMED, "replay");
}

static void replays_of_passes()
{
    check_way(ACS_ISSUE_REPLAY, ACS_REPEATS_AUTO, "passes");
}

static void by_choice()
{
    check_way(ACS_ISSUE_AUTO, ACS_REPEATS_AUTO, "auto");
}

/* Whether a context with this way can be opened. */
static bool has_cupti(const char *times)
{
    acs_options options = check_options();
    acs_context *context = nullptr;
    options.trace_times = strcmp(times, "kernels") == 0 ? ACS_TRACE_TIMES_KERNELS : ACS_TRACE_TIMES_GRAPHS;
    snprintf(options.trace, sizeof options.trace, "/dev/null");
    const acs_status status = acs_open(&options, &context);
    if (status == ACS_OK)
        CHECK_STATUS(acs_close(context), ACS_OK);
    else
        printf("skipped: %s\n", check_last_error().text);
    return status == ACS_OK;
}

static int run_in_process(char *program, const char *times)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        setenv("ACS_TEST_TIMES", times, 1);
        execl("/proc/self/exe", program, static_cast<char *>(nullptr));
        _exit(1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {CHECK_TEST(launches_one_by_one), CHECK_TEST(graphs_of_bundles),
                                       CHECK_TEST(replays_of_passes), CHECK_TEST(by_choice)};
    g_times = getenv("ACS_TEST_TIMES");
    if (!g_times) {
        const int graphs = run_in_process(argv[0], "graphs"), kernels = run_in_process(argv[0], "kernels");
        return graphs == 0 ? kernels : graphs;
    }
    printf("%s:\n", g_times);
    if (!has_cupti(g_times))
        return CHECK_SKIPPED;
    return CHECK_MAIN(argc, argv, tests);
}

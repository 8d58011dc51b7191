/*
 * What it costs that the GPU decides: chains of kernels of 4 blocks, each pass from idle to idle; us per kernel, medians.
 * Programs: `known` (launches as always), also with arguments that change from pass to pass; `grid, ahead` (each grid is
 * read; the words stand before the pass begins); `grid, on the path` (each kernel writes the word from which the next
 * one's grid is read); `section of 8, on the path` (every eighth kernel writes the word that decides about the next
 * eight), of which all, half or none run. Ways: a captured graph, replays, launches; beside them,
 * by hand: `early exit` (a captured graph, whose kernels look at the word) and `host reads` (the word is copied to the
 * host, which then launches). Exits with 1 if a result is wrong.
 */
#include "kernels.cuh"

#include <algorithm>
#include <chrono>
#include <string>

enum { LENGTH = 64, CTAS = 4, PASSES = 25, CHAINS_MOST = 32 };

struct cell {
    uint32_t runs, word[LENGTH + 1];
};

/* Counts that it ran, and writes the word for later kernels. `only_if`: another word without which it does nothing. */
static __global__ void work(cell *c, uint32_t next, uint32_t to, uint32_t delay_ns, const uint32_t *only_if)
{
    if (only_if && *only_if == 0)
        return;
    delay(delay_ns);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        c->runs++;
        c->word[next] = to;
    }
}

enum program { KNOWN, VARIES, AHEAD, PATH, SECTION, PROGRAMS };
static const char *const g_programs[] = {"known", "known, arguments vary", "grid, ahead", "grid, on the path",
                                         "section of 8, on the path"};
enum way { CAPTURED, REPLAYS, LAUNCH, EARLY_EXIT, HOST_READS, WAYS };
static const char *const g_ways[] = {"captured graph", "replays", "launches", "early exit",
                                     "host reads"};

struct scene {
    device_buffer<cell> cells{CHAINS_MOST};
    acs_context *context = nullptr;
    cudaStream_t stream = nullptr;
    int chains = 1;
    uint32_t delay_ns = 2000;
    program what = KNOWN;
    uint32_t pass = 0;
    uint32_t every = 1; /* of sections, each so-manieth runs; 0: none does */
};

/* Whether the kernels of a section run; the first section always does. */
static bool runs(const scene &s, int section)
{
    return s.what != SECTION || section == 0 || (s.every && section % (int)s.every == 0);
}

/* The word that kernel i writes: the next one's items, or whether the next section runs, as it stands there already. */
static uint32_t next_word(const scene &s, int i)
{
    return s.what == SECTION ? (uint32_t)(i / 8 + 1) : s.what == PATH ? (uint32_t)i + 1 : (uint32_t)LENGTH;
}

static uint32_t value(const scene &s, int i)
{
    return s.what == SECTION ? runs(s, i / 8 + 1) : CTAS * 8;
}

static void launch_one(scene &s, int chain, int i)
{
    cell *c = s.cells.data + chain;
    const uint32_t *none = nullptr;
    const bool reads = s.what == AHEAD || s.what == PATH, writes = s.what == PATH || (s.what == SECTION && i % 8 == 7);
    const acs_dim3 most = {CTAS, 1, 1};
    const acs_read_grid grid = reads ? ACS_GRID_FOR(&c->word[i], 8, most) : acs_make_read_grid(nullptr, 0, most);
    uint32_t *word = &c->word[writes ? next_word(s, i) : (uint32_t)LENGTH];
    CHECK(ACS_LAUNCH_ON(s.context, work, grid, 128, 0,
                        ACS_ARGS(c, writes ? next_word(s, i) : (uint32_t)LENGTH, value(s, i) + (s.what == VARIES) * s.pass,
                                 s.delay_ns, none),
                        ACS_USES(ACS_INOUT(&c->runs, 4), ACS_INOUT(word, 4))) != 0);
}

static void launch_program(scene &s)
{
    const int step = s.what == SECTION ? 8 : 1;
    for (int i = 0; i < LENGTH; i += step)
        for (int k = 0; k < s.chains; k++) {
            if (s.what == SECTION)
                CHECK_STATUS(acs_if(s.context, &s.cells.data[k].word[i / 8]), ACS_OK);
            for (int n = i; n < i + step; n++)
                launch_one(s, k, n);
            if (s.what == SECTION)
                CHECK_STATUS(acs_end_if(s.context), ACS_OK);
        }
}

static void early_exit(scene &s)
{
    for (int k = 0; k < s.chains; k++)
        for (int i = 0; i < LENGTH; i++) {
            cell *c = s.cells.data + k;
            work<<<CTAS, 128, 0, s.stream>>>(c, next_word(s, i), value(s, i), s.delay_ns,
                                             s.what == SECTION ? &c->word[i / 8] : nullptr);
        }
}

static void host_reads(scene &s)
{
    const int step = s.what == SECTION ? 8 : 1;
    for (int i = 0; i < LENGTH; i += step)
        for (int k = 0; k < s.chains; k++) {
            cell *c = s.cells.data + k;
            uint32_t word = 1;
            if (s.what > VARIES) {
                const uint32_t *from = &c->word[s.what == SECTION ? i / 8 : i];
                CHECK_CUDA(cudaMemcpyAsync(&word, from, 4, cudaMemcpyDeviceToHost, s.stream));
                CHECK_CUDA(cudaStreamSynchronize(s.stream));
            }
            for (int n = i; n < i + step && word; n++)
                work<<<CTAS, 128, 0, s.stream>>>(c, next_word(s, n), value(s, n), s.delay_ns, nullptr);
        }
}

static void prepare(scene &s)
{
    std::vector<cell> cells(CHAINS_MOST);
    for (cell &c : cells) {
        c.runs = 0;
        for (int w = 0; w <= LENGTH; w++)
            c.word[w] = s.what == SECTION ? runs(s, w) : CTAS * 8;
    }
    CHECK_CUDA(cudaMemcpy(s.cells.data, cells.data(), s.cells.bytes(), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaDeviceSynchronize());
}

static uint32_t expected(const scene &s)
{
    uint32_t count = 0;
    for (int i = 0; i < LENGTH; i++)
        count += runs(s, i / 8);
    return count;
}

static double measure(scene &s, way by)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    std::vector<double> times;
    const acs_uses any{nullptr, 0, nullptr, nullptr, 1};
    acs_options options = check_options();
    options.issue = by == LAUNCH ? ACS_ISSUE_LAUNCH : ACS_ISSUE_AUTO;
    options.repeats = by == REPLAYS ? ACS_REPEATS_AUTO : ACS_REPEATS_NAMED;
    s.context = check_open(&options);
    if (by == CAPTURED || by == EARLY_EXIT) {
        CHECK_CUDA(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
        if (by == CAPTURED) {
            CHECK(acs_after_stream(s.context, s.stream, any) != 0);
            launch_program(s);
            CHECK_STATUS(acs_stream_after(s.context, s.stream, any), ACS_OK);
        } else {
            early_exit(s);
        }
        CHECK_CUDA(cudaStreamEndCapture(s.stream, &graph));
        CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
        CHECK_CUDA(cudaGraphUpload(exec, s.stream));
    }
    for (int pass = 0; pass < PASSES; pass++) {
        prepare(s);
        s.pass++;
        const auto begin = std::chrono::steady_clock::now();
        if (exec)
            CHECK_CUDA(cudaGraphLaunch(exec, s.stream));
        else if (by == HOST_READS)
            host_reads(s);
        else
            launch_program(s);
        if (exec || by == HOST_READS)
            CHECK_CUDA(cudaStreamSynchronize(s.stream));
        else
            CHECK_STATUS(acs_sync(s.context), ACS_OK);
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        times.push_back(took.count() / (LENGTH * s.chains));
        const std::vector<cell> cells = s.cells.read();
        for (int k = 0; k < s.chains; k++)
            CHECK_EQ(cells[k].runs, expected(s));
    }
    if (exec)
        CHECK_CUDA(cudaGraphExecDestroy(exec));
    if (graph)
        CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_STATUS(acs_close(s.context), ACS_OK);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

int main(int argc, char **argv)
{
    const int brief = argc > 1 ? atoi(argv[1]) : 0; /* 1: fewer chains; 2: a captured graph of one chain alone */

    scene s;
    if (!check_has_gpu()) {
        printf("skipped: %s\n", check_last_error().text);
        return CHECK_SKIPPED;
    }
    CHECK_CUDA(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    for (int chains : {1, 8, 32})
        for (uint32_t delay_ns : {0u, 2000u}) {
            if (brief && (chains > (brief == 1 ? 8 : 1) || delay_ns == 0))
                continue;
            printf("%d chains of %d kernels of %u us; us per kernel\n%-36s", chains, LENGTH, delay_ns / 1000, "");
            for (const char *name : g_ways)
                printf("%16s", name);
            printf("\n");
            for (int what = 0; what < PROGRAMS; what++)
                for (uint32_t every : {1u, 2u, 0u}) {
                    if (what != SECTION && every != 1)
                        continue;
                    s.chains = chains;
                    s.delay_ns = delay_ns;
                    s.what = (program)what;
                    s.every = every;
                    const std::string name = std::string(g_programs[what]) +
                                             (what != SECTION ? "" : every == 1 ? ", all" : every ? ", half" : ", none");
                    printf("%-36s", name.c_str());
                    for (int by = 0; by < WAYS; by++) {
                        if ((by == HOST_READS && chains > 8) || (brief == 2 && by != CAPTURED))
                            printf("%16s", "-");
                        else
                            printf("%16.3f", measure(s, (way)by));
                        fflush(stdout);
                    }
                    printf("\n");
                }
        }
    return g_check_failures != 0;
}

/*
 * What calls of cuBLAS and cuSOLVER cost the host, when they are called and when they are captured, and what the work costs
 * without the library: as a graph of its own, and as parts of one graph. Tiles of 128 x 128 in a matrix of 16 x 16 tiles.
 */
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

enum { TILE = 128, TILES = 16, LD = TILE * TILES + 6, CALLS = 32, REPEATS = 30, WORKSPACE = 32 << 20 };

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        const int e = static_cast<int>(call);                                                                          \
        if (e != 0) {                                                                                                  \
            fprintf(stderr, "line %d: %d\n", __LINE__, e);                                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static double *g_matrix;
static const double g_one = 1, g_minus = -1;

struct handles {
    cublasHandle_t blas;
    cusolverDnHandle_t solver;
    void *workspace;
    cudaStream_t stream;
    int *info;
};

static double now_us()
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double *tile(int i, int j)
{
    return g_matrix + static_cast<size_t>(j) * TILE * LD + static_cast<size_t>(i) * TILE;
}

static void set(handles &h)
{
    CHECK(cublasSetStream(h.blas, h.stream));
    CHECK(cublasSetWorkspace(h.blas, h.workspace, WORKSPACE));
    CHECK(cusolverDnSetStream(h.solver, h.stream));
}

static handles make()
{
    handles h = {};
    CHECK(cublasCreate(&h.blas));
    CHECK(cusolverDnCreate(&h.solver));
    CHECK(cudaMalloc(&h.workspace, WORKSPACE));
    CHECK(cudaMalloc(&h.info, sizeof *h.info));
    CHECK(cudaStreamCreateWithFlags(&h.stream, cudaStreamNonBlocking));
    set(h);
    return h;
}

static void gemm(handles &h, int i, int j)
{
    CHECK(cublasDgemm(h.blas, CUBLAS_OP_N, CUBLAS_OP_T, TILE, TILE, TILE, &g_minus, tile(i, 0), LD, tile(j, 0), LD, &g_one,
                      tile(i, j), LD));
}

static void syrk(handles &h, int i)
{
    CHECK(cublasDsyrk(h.blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, TILE, TILE, &g_minus, tile(i, 0), LD, &g_one, tile(i, i),
                      LD));
}

static void trsm(handles &h, int i)
{
    CHECK(cublasDtrsm(h.blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, TILE, TILE,
                      &g_one, tile(0, 0), LD, tile(i, 0), LD));
}

static void potrf(handles &h, int i)
{
    int elements = 0;
    CHECK(cusolverDnDpotrf_bufferSize(h.solver, CUBLAS_FILL_MODE_LOWER, TILE, tile(i, i), LD, &elements));
    CHECK(cusolverDnDpotrf(h.solver, CUBLAS_FILL_MODE_LOWER, TILE, tile(i, i), LD, static_cast<double *>(h.workspace),
                           elements, h.info));
}

static double median(std::vector<double> &v)
{
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

static void time_calls(const char *name, const std::function<void(int)> &call)
{
    std::vector<double> host, complete;
    for (int r = 0; r < REPEATS; r++) {
        CHECK(cudaDeviceSynchronize());
        const double began = now_us();
        for (int i = 0; i < CALLS; i++)
            call(i);
        host.push_back((now_us() - began) / CALLS);
        CHECK(cudaDeviceSynchronize());
        complete.push_back((now_us() - began) / CALLS);
    }
    printf("%-28s host %6.2f  complete %6.2f us a call\n", name, median(host), median(complete));
}

static cudaGraph_t capture(handles &h, const std::function<void()> &call, double *us)
{
    cudaGraph_t graph = nullptr;
    const double began = now_us();
    CHECK(cudaStreamBeginCapture(h.stream, cudaStreamCaptureModeThreadLocal));
    call();
    CHECK(cudaStreamEndCapture(h.stream, &graph));
    *us = now_us() - began;
    return graph;
}

static void time_captured(const char *name, handles &h, const std::function<void(int)> &call)
{
    std::vector<double> times;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    size_t nodes = 0;
    for (int i = 0; i < REPEATS; i++) {
        double us = 0;
        if (graph)
            CHECK(cudaGraphDestroy(graph));
        graph = capture(h, [&] { call(i % 10); }, &us);
        times.push_back(us);
    }
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    const double began = now_us();
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    printf("%s: capture %.2f us, %zu nodes, instantiate %.1f us\n", name, median(times), nodes, now_us() - began);
    time_calls("   launch of its graph", [&](int) { CHECK(cudaGraphLaunch(exec, h.stream)); });
}

/* Products as children of one graph. */
static void time_children(handles &h, bool chained)
{
    enum { COUNT = 64 };
    cudaGraph_t parent = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaGraphNode_t last = nullptr;
    std::vector<double> runs;
    double add = 0, us = 0;
    CHECK(cudaGraphCreate(&parent, 0));
    for (int i = 0; i < COUNT; i++) {
        cudaGraph_t child = capture(h, [&] { gemm(h, 1 + i % 15, 1 + i / 15); }, &us);
        cudaGraphNode_t node = nullptr;
        const double began = now_us();
        CHECK(cudaGraphAddChildGraphNode(&node, parent, &last, chained && last ? 1 : 0, child));
        add += now_us() - began;
        last = node;
        CHECK(cudaGraphDestroy(child));
    }
    const double began = now_us();
    CHECK(cudaGraphInstantiate(&exec, parent, 0));
    const double built = now_us() - began;
    for (int i = 0; i <= REPEATS; i++) {
        const double start = now_us();
        CHECK(cudaGraphLaunch(exec, h.stream));
        CHECK(cudaDeviceSynchronize());
        if (i > 0)
            runs.push_back(now_us() - start);
    }
    printf("%d gemms as children, %s: add %.2f us, instantiate %.2f us, run %.2f us each\n", COUNT,
           chained ? "chain" : "apart", add / COUNT, built / COUNT, median(runs) / COUNT);
}

static void time_threads(int count)
{
    enum { EACH = 300 };
    std::vector<handles> all;
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++) {
        all.push_back(make());
        gemm(all.back(), 1, 1 + i);
    }
    CHECK(cudaDeviceSynchronize());
    const double began = now_us();
    for (int i = 0; i < count; i++)
        threads.emplace_back([&, i] {
            for (int k = 0; k < EACH; k++) {
                set(all[i]);
                gemm(all[i], 1 + k % 15, 1 + i);
            }
        });
    for (std::thread &t : threads)
        t.join();
    printf("%d threads: dgemm with Set*: %.2f us a call (all together)\n", count, (now_us() - began) / EACH / count);
    CHECK(cudaDeviceSynchronize());
}

int main()
{
    std::vector<double> values(static_cast<size_t>(LD) * TILE * TILES, 0.001);
    for (int i = 0; i < TILE * TILES; i++)
        values[static_cast<size_t>(i) * LD + i] = 1000;
    CHECK(cudaMalloc(&g_matrix, values.size() * sizeof(double)));
    CHECK(cudaMemcpy(g_matrix, values.data(), values.size() * sizeof(double), cudaMemcpyHostToDevice));
    handles h = make();
    time_calls("SetStream+SetWorkspace", [&](int) { set(h); });
    time_calls("dgemm", [&](int i) { gemm(h, 1 + i % 15, 0); });
    time_calls("dsyrk", [&](int i) { syrk(h, 1 + i % 15); });
    time_calls("dtrsm", [&](int i) { trsm(h, 1 + i % 15); });
    time_calls("dpotrf+size", [&](int) { potrf(h, 15); });
    time_captured("gemm", h, [&](int i) { gemm(h, 1 + i, 0); });
    time_captured("syrk", h, [&](int i) { syrk(h, 1 + i); });
    time_captured("trsm", h, [&](int i) { trsm(h, 1 + i); });
    time_captured("potrf", h, [&](int i) { potrf(h, i); });
    time_children(h, false);
    time_children(h, true);
    for (int count : {1, 2, 3, 4, 6})
        time_threads(count);
    return 0;
}

/*
 * What the shape of an executable graph costs: chains side by side, edges between them, and the order in which nodes were
 * added. Prints microseconds per level (the kernels of all chains at one place); judges nothing. The figures are the
 * origin of the costs in src/capture/graph_shape.c.
 */
#include "graph_time.cuh"

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr uint32_t LEVELS = 64;

/* Keep one warp busy so long. 0: end at once. */
__global__ void busy(uint32_t ns)
{
    uint64_t begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < ns);
}

struct shape {
    const char *name;
    uint32_t chains;
    uint32_t every;     /* every so many levels a kernel also follows the one before it on other chains; 0: never */
    uint32_t others;    /* number of these chains */
    bool by_chain;      /* nodes are added chain by chain, else level by level */
    uint32_t side = 0;  /* one chain: every so many levels a kernel stands beside the next one, from the last level on */
    uint32_t joins = 0; /* ... and is joined so many levels later */
    char kind = 'k';    /* what stands there: a kernel, a copy (c) or a fill (f) of 4 KiB */
    bool inside = false; /* it stands in the chain instead */
};

cudaGraphNode_t add(cudaGraph_t graph, uint32_t ns)
{
    void *args[] = {&ns};
    cudaKernelNodeParams params = {};
    params.func = (void *)busy;
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = args;
    cudaGraphNode_t node;
    CHECK_CUDA(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    return node;
}

/* A copy or fill of 4 KiB, or a kernel. */
cudaGraphNode_t add_kind(cudaGraph_t graph, char kind, uint32_t ns)
{
    static unsigned char *memory;
    if (!memory)
        CHECK_CUDA(cudaMalloc(&memory, 8192));
    cudaGraphNode_t node;
    if (kind == 'c') {
        CHECK_CUDA(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, memory, memory + 4096, 4096,
                                            cudaMemcpyDeviceToDevice));
        return node;
    }
    if (kind == 'f') {
        cudaMemsetParams params = {};
        params.dst = memory;
        params.elementSize = 1;
        params.width = 4096;
        params.height = 1;
        CHECK_CUDA(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
        return node;
    }
    return add(graph, ns);
}

void link(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to)
{
#if CUDART_VERSION >= 13000
    CHECK_CUDA(cudaGraphAddDependencies(graph, &from, &to, nullptr, 1));
#else
    CHECK_CUDA(cudaGraphAddDependencies(graph, &from, &to, 1));
#endif
}

cudaGraph_t build(const shape &s, uint32_t ns)
{
    cudaGraph_t graph;
    CHECK_CUDA(cudaGraphCreate(&graph, 0));
    std::vector<std::vector<cudaGraphNode_t>> nodes(s.chains, std::vector<cudaGraphNode_t>(LEVELS));
    for (uint32_t outer = 0; outer < (s.by_chain ? s.chains : LEVELS); outer++)
        for (uint32_t inner = 0; inner < (s.by_chain ? LEVELS : s.chains); inner++)
            nodes[s.by_chain ? outer : inner][s.by_chain ? inner : outer] = add(graph, ns);
    for (uint32_t c = 0; c < s.chains; c++)
        for (uint32_t l = 1; l < LEVELS; l++) {
            const bool aside = s.side && l % s.side == 0 && l + s.joins < LEVELS;
            if (aside) {
                const cudaGraphNode_t beside = add_kind(graph, s.kind, ns);
                link(graph, nodes[c][l - 1], beside);
                link(graph, beside, nodes[c][s.inside ? l : l + s.joins]);
            }
            if (!aside || !s.inside)
                link(graph, nodes[c][l - 1], nodes[c][l]);
            for (uint32_t o = 1; s.every && l % s.every == 0 && o <= s.others; o++)
                link(graph, nodes[(c + o) % s.chains][l - 1], nodes[c][l]);
        }
    return graph;
}

double per_level(const shape &s, uint32_t ns, cudaStream_t stream)
{
    cudaGraph_t graph = build(s, ns);
    const double time = graph_time(graph, stream);
    CHECK_CUDA(cudaGraphDestroy(graph));
    return time / LEVELS;
}

} // namespace

int main()
{
    static const shape shapes[] = {
        {"one chain", 1, 0, 0, true},
        {"2 chains", 2, 0, 0, true},
        {"4 chains", 4, 0, 0, true},
        {"8 chains", 8, 0, 0, true},
        {"8 chains, added by level", 8, 0, 0, false},
        {"12 chains", 12, 0, 0, true},
        {"16 chains", 16, 0, 0, true},
        {"24 chains", 24, 0, 0, true},
        {"32 chains", 32, 0, 0, true},
        {"64 chains", 64, 0, 0, true},
        {"2 chains, edges every 1", 2, 1, 1, true},
        {"2 chains, edges every 2", 2, 2, 1, true},
        {"2 chains, edges every 4", 2, 4, 1, true},
        {"4 chains, edges every 1", 4, 1, 1, true},
        {"8 chains, edges every 1", 8, 1, 1, true},
        {"8 chains, edges every 2", 8, 2, 1, true},
        {"8 chains, edges every 4", 8, 4, 1, true},
        {"8 chains, edges every 8", 8, 8, 1, true},
        {"8 chains, edges every 4, by level", 8, 4, 1, false},
        {"8 chains, 2 edges every 4", 8, 4, 2, true},
        {"8 chains, 7 edges every 4", 8, 4, 7, true},
        {"16 chains, edges every 1", 16, 1, 1, true},
        {"16 chains, edges every 4", 16, 4, 1, true},
        {"32 chains, edges every 4", 32, 4, 1, true},
        {"one chain, one beside every 2", 1, 0, 0, true, 2, 1},
        {"one chain, one beside every 4", 1, 0, 0, true, 4, 1},
        {"one chain, one beside every 4, joined 2 later", 1, 0, 0, true, 4, 2},
        {"one chain, one beside every 8", 1, 0, 0, true, 8, 1},
        {"one chain, a kernel more every 2", 1, 0, 0, true, 2, 0, 'k', true},
        {"one chain, a copy every 2", 1, 0, 0, true, 2, 0, 'c', true},
        {"one chain, a fill every 2", 1, 0, 0, true, 2, 0, 'f', true},
        {"one chain, a copy beside every 2", 1, 0, 0, true, 2, 1, 'c'},
        {"one chain, a fill beside every 2", 1, 0, 0, true, 2, 1, 'f'},
        {"one chain, a copy beside every 4, joined 2 later", 1, 0, 0, true, 4, 2, 'c'},
        {"one chain, a fill beside every 4, joined 2 later", 1, 0, 0, true, 4, 2, 'f'},
    };
    static const uint32_t times[] = {0, 2000, 5000};
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    printf("%-52s%12s%12s%12s   us per level, by time of a kernel\n", "", "empty", "2 us", "5 us");
    for (const shape &s : shapes) {
        printf("%-52s", s.name);
        for (uint32_t ns : times)
            printf("%12.2f", per_level(s, ns, stream));
        printf("\n");
    }
    return 0;
}

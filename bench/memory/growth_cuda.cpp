/*
 * Owns the ways by which memory can be had from a CUDA device: cudaMalloc, a pool of the driver's, and physical memory that
 * is mapped to addresses (the driver's virtual-memory calls). Called by acs-memory --growth. Gives back all that it takes.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "growth.h"
#include "way.h"

namespace bench {

namespace {

using clock_type = std::chrono::steady_clock;

const uint64_t MIB = 1024 * 1024;

void require_driver(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: driver error %d\n", what, static_cast<int>(result));
    exit(1);
}

/* The address of a driver function: nothing links the driver. */
template <typename function> function driver(const char *name)
{
    void *symbol = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    require_cuda(cudaGetDriverEntryPointByVersion(name, &symbol, 12000, cudaEnableDefault, &found), name);
    if (found != cudaDriverEntryPointSuccess) {
        fprintf(stderr, "the driver has no %s\n", name);
        exit(1);
    }
    function f = nullptr;
    std::memcpy(&f, &symbol, sizeof f);
    return f;
}

struct virtual_memory {
    decltype(&cuMemAddressReserve) reserve = driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
    decltype(&cuMemAddressFree) unreserve = driver<decltype(&cuMemAddressFree)>("cuMemAddressFree");
    decltype(&cuMemCreate) create = driver<decltype(&cuMemCreate)>("cuMemCreate");
    decltype(&cuMemRelease) release = driver<decltype(&cuMemRelease)>("cuMemRelease");
    decltype(&cuMemMap) map = driver<decltype(&cuMemMap)>("cuMemMap");
    decltype(&cuMemUnmap) unmap = driver<decltype(&cuMemUnmap)>("cuMemUnmap");
    decltype(&cuMemSetAccess) access = driver<decltype(&cuMemSetAccess)>("cuMemSetAccess");
};

/* Work that runs on the device while a call is timed: fills of a buffer of its own. */
class background {
public:
    background()
    {
        require_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
        require_cuda(cudaMalloc(&buffer_, BYTES), "cudaMalloc");
    }
    ~background()
    {
        (void)cudaFree(buffer_);
        (void)cudaStreamDestroy(stream_);
    }
    background(const background &) = delete;
    background &operator=(const background &) = delete;

    /* Some 40 ms of it: more than any call that does not wait for the device. */
    void start()
    {
        for (int k = 0; k < 160; k++)
            require_cuda(cudaMemsetAsync(buffer_, k, BYTES, stream_), "cudaMemsetAsync");
    }
    bool over() { return cudaStreamQuery(stream_) == cudaSuccess; }
    void wait() { require_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

private:
    static const size_t BYTES = 1024 * MIB;
    cudaStream_t stream_ = nullptr;
    void *buffer_ = nullptr;
};

class measurer {
public:
    explicit measurer(int repetitions) : repetitions_(repetitions) {}

    /* The calls of a piece's life, in their order. */
    struct step {
        const char *call;
        std::function<void()> run;
    };

    void life(const char *way, uint64_t bytes, const std::vector<step> &steps)
    {
        for (const bool busy : {false, true}) {
            std::vector<growth_cost> costs(steps.size());
            for (int k = 0; k <= repetitions_; k++) /* the first one is warm-up */
                for (size_t n = 0; n < steps.size(); n++)
                    time(steps[n], k > 0, busy, costs[n]);
            for (size_t n = 0; n < steps.size(); n++) {
                costs[n].way = way;
                costs[n].call = steps[n].call;
                costs[n].bytes = bytes;
                costs[n].busy = busy;
                all.push_back(costs[n]);
            }
        }
    }

    std::vector<growth_cost> all;

private:
    void time(const step &s, bool counts, bool busy, growth_cost &cost)
    {
        if (busy)
            work_.start();
        const auto begin = clock_type::now();
        s.run();
        const double us = std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
        if (counts) {
            cost.us.push_back(us);
            cost.waited += busy && work_.over();
        }
        if (busy)
            work_.wait();
    }

    const int repetitions_;
    background work_;
};

void by_malloc(measurer &m, uint64_t bytes)
{
    void *piece = nullptr;
    m.life("cudaMalloc", bytes,
           {{"take", [&] { require_cuda(cudaMalloc(&piece, bytes), "cudaMalloc"); }},
            {"give", [&] { require_cuda(cudaFree(piece), "cudaFree"); }}});
}

/* A pool that has nothing: its growth, and that it gives everything back. */
void by_pool(measurer &m, uint64_t bytes, int device)
{
    cudaMemPool_t pool = nullptr;
    cudaStream_t stream = nullptr;
    cudaMemPoolProps props = {};
    void *piece = nullptr;
    uint64_t everything = UINT64_MAX;
    props.allocType = cudaMemAllocationTypePinned;
    props.location = {cudaMemLocationTypeDevice, device};
    require_cuda(cudaMemPoolCreate(&pool, &props), "cudaMemPoolCreate");
    require_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything), "release threshold");
    require_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    m.life("cudaMallocAsync", bytes,
           {{"take",
             [&] {
                 require_cuda(cudaMallocFromPoolAsync(&piece, bytes, pool, stream), "cudaMallocFromPoolAsync");
                 require_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
             }},
            {"give",
             [&] {
                 require_cuda(cudaFreeAsync(piece, stream), "cudaFreeAsync");
                 require_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
                 require_cuda(cudaMemPoolTrimTo(pool, 0), "cudaMemPoolTrimTo");
             }}});
    require_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
    require_cuda(cudaMemPoolDestroy(pool), "cudaMemPoolDestroy");
}

/* Pages of `page` bytes each, as many as make up the size: the finer, the better they can be used elsewhere. */
void by_mapping(measurer &m, uint64_t bytes, uint64_t page, int device)
{
    const virtual_memory cu;
    CUmemAllocationProp prop = {};
    CUmemAccessDesc access = {};
    CUdeviceptr addresses = 0;
    std::vector<CUmemGenericAllocationHandle> pages(bytes / page);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    require_driver(cu.reserve(&addresses, 2 * bytes, 0, 0, 0), "cuMemAddressReserve");
    const CUdeviceptr elsewhere = addresses + bytes;
    const auto map = [&](CUdeviceptr at) {
        for (size_t k = 0; k < pages.size(); k++)
            require_driver(cu.map(at + k * page, page, 0, pages[k], 0), "cuMemMap");
    };
    const auto grant = [&](CUdeviceptr at) { require_driver(cu.access(at, bytes, &access, 1), "cuMemSetAccess"); };
    const auto unmap = [&](CUdeviceptr at) { require_driver(cu.unmap(at, bytes), "cuMemUnmap"); };
    char name[48];
    snprintf(name, sizeof name, "mapping, %llu MiB pages", static_cast<unsigned long long>(page / MIB));
    m.life(name, bytes,
           {{"create",
             [&] {
                 for (CUmemGenericAllocationHandle &piece : pages)
                     require_driver(cu.create(&piece, page, &prop, 0), "cuMemCreate");
             }},
            {"map", [&] { map(addresses); }},
            {"access", [&] { grant(addresses); }},
            {"unmap", [&] { unmap(addresses); }},
            {"map again", [&] { map(elsewhere); }},
            {"access again", [&] { grant(elsewhere); }},
            {"unmap again", [&] { unmap(elsewhere); }},
            {"release",
             [&] {
                 for (const CUmemGenericAllocationHandle piece : pages)
                     require_driver(cu.release(piece), "cuMemRelease");
             }}});
    require_driver(cu.unreserve(addresses, 2 * bytes), "cuMemAddressFree");
}

} // namespace

std::vector<growth_cost> measure_growth(int repetitions)
{
    int device = 0;
    require_cuda(cudaGetDevice(&device), "cudaGetDevice");
    measurer m(repetitions);
    for (const uint64_t bytes : {2 * MIB, 32 * MIB, 256 * MIB}) {
        by_malloc(m, bytes);
        by_pool(m, bytes, device);
        by_mapping(m, bytes, bytes, device);
        if (bytes > 2 * MIB)
            by_mapping(m, bytes, 2 * MIB, device);
    }
    return m.all;
}

} // namespace bench

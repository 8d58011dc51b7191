/*
 * Owns the list of ways, and those that need no CUDA call: ACS through its public interface, and the C library. Called by
 * the measuring loop.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "acs.h"
#include "acs_context.h"
#include "way.h"

namespace bench {

namespace {

class acs_way : public way {
public:
    acs_way(const machine &m, int pool, int growth)
    {
        acs_options o = acs_options_for(m);
        o.pool = pool;
        o.growth = growth;
        context_ = acs_open_for(m, o);
        require(acs_malloc(context_, WAKING_BYTES, ACS_MEMORY_HOST, &waking_) == ACS_OK,
                acs_error_text("acs_malloc").c_str());
    }

    ~acs_way() override
    {
        acs_free(context_, waking_);
        (void)acs_close(context_);
    }
    acs_way(const acs_way &) = delete;
    acs_way &operator=(const acs_way &) = delete;

    void *take(size_t bytes) override
    {
        void *block = nullptr;
        if (acs_malloc(context_, bytes, ACS_MEMORY_DEVICE, &block) != ACS_OK)
            note("acs_malloc");
        return block;
    }

    void give(void *block) override
    {
        if (acs_free(context_, block) == 0)
            note("acs_free");
    }

    void use(void *block, size_t bytes) override
    {
        if (acs_memset(context_, block, 1, bytes) == 0)
            note("acs_memset");
    }

    std::string finish() override
    {
        if (acs_sync(context_) != ACS_OK)
            note("acs_sync");
        std::string what;
        what.swap(failure_);
        return what;
    }

    /* The worker looks for work for a while before it sleeps (ACS_SPIN_US). */
    void ready() override { (void)acs_wait(context_, acs_memset(context_, waking_, 0, WAKING_BYTES)); }

    /* Chunks are kept while there is memory, so what is reserved now is the most; without a pool that is what was in use. */
    uint64_t reserved_bytes() override
    {
        acs_statistics s = {};
        s.size = sizeof s;
        if (acs_stats(context_, &s) != ACS_OK)
            return 0;
        return s.memory_reserved > s.memory_peak ? s.memory_reserved : s.memory_peak;
    }

private:
    static const size_t WAKING_BYTES = 4;

    void note(const char *what)
    {
        if (failure_.empty())
            failure_ = acs_error_text(what);
    }

    acs_context *context_ = nullptr;
    void *waking_ = nullptr;
    std::string failure_;
};

class c_way : public way {
public:
    c_way()
    {
#ifdef __GLIBC__
        (void)malloc_trim(0); /* what others have left would make the first pass a warm one */
#endif
    }
    void *take(size_t bytes) override { return malloc(bytes); }
    void give(void *block) override { free(block); }
    void use(void *block, size_t bytes) override { memset(block, 1, bytes); }
    std::string finish() override { return ""; }
    uint64_t reserved_bytes() override { return 0; }
};

} // namespace

const std::vector<way_kind> &way_kinds()
{
    static const std::vector<way_kind> kinds = {
        {"acs", "acs_malloc and acs_free with a pool (ACS_POOL=on)", true, true, 0,
         [](const machine &m) { return std::unique_ptr<way>(new acs_way(m, ACS_POOL_ON, ACS_GROWTH_PAGES)); }},
        {"acs-chunks", "the same, where what the device gave is never moved (ACS_GROWTH=chunks)", true, true, 0,
         [](const machine &m) { return std::unique_ptr<way>(new acs_way(m, ACS_POOL_ON, ACS_GROWTH_CHUNKS)); }},
        {"acs-off", "acs_malloc and acs_free, each block the driver's (ACS_POOL=off)", true, true, 512,
         [](const machine &m) { return std::unique_ptr<way>(new acs_way(m, ACS_POOL_OFF, ACS_GROWTH_CHUNKS)); }},
#if BENCH_CUDA
        {"async", "cudaMallocAsync and cudaFreeAsync on one stream; the device's pool keeps everything", true, false, 0,
         make_async_way, lacking_for_async},
        {"cuda", "cudaMalloc and cudaFree", true, false, 256, make_cuda_way},
#else
        {"async", "cudaMallocAsync and cudaFreeAsync (not built in: no CUDA)", false, false, 0, nullptr},
        {"cuda", "cudaMalloc and cudaFree (not built in: no CUDA)", false, false, 0, nullptr},
#endif
        {"malloc", "the C library's malloc and free", false, true, 0,
         [](const machine &) { return std::unique_ptr<way>(new c_way); }},
    };
    return kinds;
}

} // namespace bench

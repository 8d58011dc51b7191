/*
 * Owns OpenMP tasks as a runner: the same kernels on the CPU, ordered by depend clauses. Called by the measuring loop,
 * inside a parallel region that one thread of the team launches from. An object is named by its first byte, as OpenMP
 * does it: programs whose footprints overlap in part are beyond it, and it says so.
 */
#include "runners.h"

#include <algorithm>
#include <map>
#include <set>

#if BENCH_OPENMP
#include <omp.h>
#endif

namespace bench {

#if BENCH_OPENMP
namespace {

class openmp_runner : public runner {
public:
    explicit openmp_runner(const machine &m) : machine_(m), threads_(omp_get_num_procs()) {}

    std::string setting() const override { return std::to_string(threads_) + " threads"; }

    std::string prepare(const trace &t, const dag &) override
    {
        for (const op &o : t.ops)
            if (o.kind != OP_KERNEL)
                return "runs kernels only";
        return same_objects(t) ? "" : "footprints overlap in part";
    }

    void around(const std::function<void()> &body) override
    {
#pragma omp parallel num_threads(threads_)
        {
            pin_thread(machine_, omp_get_thread_num());
#pragma omp single
            body();
        }
    }

    void launch(const op &o) override
    {
        char *in[MOST], *out[MOST];
        int ins = 0, outs = 0;
        const op *const task = &o;

        for (uint32_t k = 0; k < o.segment_count; k++) {
            char *const object = reinterpret_cast<char *>(static_cast<uintptr_t>(o.segments[k].base));
            if (o.segments[k].access == ACS_READ)
                in[ins++] = object;
            else
                out[outs++] = object;
        }
#pragma omp task firstprivate(task) depend(iterator(i = 0 : ins), in : in[i][0])                                       \
    depend(iterator(j = 0 : outs), inout : out[j][0])
        {
            void *args[1] = {const_cast<void *>(task->args)};
            const acs_grid grid = {{task->grid, 1, 1}, {task->block, 1, 1}, 0, nullptr};
            task->kernel->code.host(&grid, args);
        }
    }

    void read(void *, const void *, size_t) override {}

    std::string finish() override
    {
#pragma omp taskwait
        return "";
    }

private:
    enum { MOST = 64 };

    /* Do any two segments with different first bytes share a byte, or is one op beyond MOST? */
    static bool same_objects(const trace &t)
    {
        std::map<uint64_t, uint64_t> end;
        for (const op &o : t.ops) {
            if (o.segment_count > MOST)
                return false;
            for (uint32_t k = 0; k < o.segment_count; k++) {
                const acs_segment &s = o.segments[k];
                if (s.extent != ACS_EXTENT_BYTES || s.rows != 1)
                    return false;
                end[s.base] = std::max(end[s.base], s.base + s.row_bytes);
            }
        }
        uint64_t last = 0;
        for (const auto &object : end) {
            if (object.first < last)
                return false;
            last = object.second;
        }
        return true;
    }

    const machine machine_;
    int threads_;
};

} // namespace
#endif

void add_openmp(std::vector<runner_kind> &list)
{
#if BENCH_OPENMP
    list.push_back({"openmp", "OpenMP tasks with depend clauses", false, true,
                    [](const machine &m) { return std::unique_ptr<runner>(new openmp_runner(m)); }});
#else
    (void)list;
#endif
}

} // namespace bench

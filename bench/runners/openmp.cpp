/*
 * Owns OpenMP tasks as a runner: the same kernels on the CPU, ordered by depend clauses. Called by the measuring loop,
 * inside a parallel region that one thread of the team launches from. An object is named by its first byte, as OpenMP
 * does it: programs whose footprints overlap in part are beyond it, and it says so.
 */
#include "objects.h"
#include "runners.h"

#if BENCH_OPENMP
#include <omp.h>
#endif

namespace bench {

#if BENCH_OPENMP
namespace {

class openmp_runner : public runner {
public:
    /* Short tasks want few threads: 1, 2, 4 and so on, and all CPUs, are tried. */
    explicit openmp_runner(const machine &m) : machine_(m)
    {
        for (int n = 1; n < cpu_count(); n *= 2)
            threads_.push_back(n);
        threads_.push_back(cpu_count());
    }

    int variants() const override { return static_cast<int>(threads_.size()); }
    void choose(int variant) override { chosen_ = static_cast<size_t>(variant); }
    std::string setting() const override { return std::to_string(threads_[chosen_]) + " threads"; }
    std::string prepare(const trace &t, const dag &) override { return why_not_objects(t, MOST); }

    void around(const std::function<void()> &body) override
    {
#pragma omp parallel num_threads(threads_[chosen_])
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

    const machine machine_;
    std::vector<int> threads_;
    size_t chosen_ = 0;
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

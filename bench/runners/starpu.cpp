/*
 * Owns StarPU as a runner, where it was found: the same kernels on the CPU, ordered by the data they access (StarPU's
 * sequential consistency). Called by the measuring loop. Its workers are paused between runs, for they poll.
 */
#include "objects.h"
#include "runners.h"

#if BENCH_STARPU
#include <starpu.h>

#include <cstdlib>
#include <cstring>
#include <unordered_map>
#endif

namespace bench {

#if BENCH_STARPU
namespace {

void run_op(void *[], void *arg)
{
    const op &o = *static_cast<const op *>(arg);
    void *args[1] = {const_cast<void *>(o.args)};
    const acs_grid grid = {{o.grid, 1, 1}, {o.block, 1, 1}, 0, nullptr};
    o.kernel->code.host(&grid, args);
}

class starpu_runner : public runner {
public:
    explicit starpu_runner(const machine &)
    {
        starpu_conf conf;
        starpu_conf_init(&conf);
        conf.ncuda = 0;
        conf.nopencl = 0;
        failed_ = starpu_init(&conf) != 0;
        memset(&codelet_, 0, sizeof codelet_);
        codelet_.cpu_funcs[0] = run_op;
        codelet_.nbuffers = STARPU_VARIABLE_NBUFFERS;
        codelet_.name = "op";
        if (!failed_)
            starpu_pause();
    }

    ~starpu_runner() override
    {
        if (failed_)
            return;
        starpu_resume();
        for (const auto &object : objects_)
            starpu_data_unregister(object.second);
        starpu_shutdown();
    }
    starpu_runner(const starpu_runner &) = delete;
    starpu_runner &operator=(const starpu_runner &) = delete;

    /* Its build has a limit: Debian's is 4. */
    std::string setting() const override { return std::to_string(starpu_cpu_worker_get_count()) + " workers"; }

    /* A handle per object, and per op the handles that it needs: a program that uses StarPU has them at hand. */
    std::string prepare(const trace &t, const dag &) override
    {
        if (failed_)
            return "starpu_init failed";
        const std::string why = why_not_objects(t, UINT32_MAX);
        if (!why.empty())
            return why;
        accesses_.clear();
        first_.assign(1, 0);
        for (const op &o : t.ops) {
            for (uint32_t k = 0; k < o.segment_count; k++)
                add(o.segments[k]);
            first_.push_back(accesses_.size());
            if (objects_.size() > MOST_OBJECTS)
                return "too many objects to register";
        }
        return "";
    }

    void around(const std::function<void()> &body) override
    {
        starpu_resume();
        next_ = 0;
        body();
        starpu_pause();
    }

    void launch(const op &o) override
    {
        const size_t first = first_[next_], count = first_[next_ + 1] - first;
        starpu_task *const task = starpu_task_create();

        next_++;
        task->cl = &codelet_;
        task->cl_arg = const_cast<op *>(&o);
        task->nbuffers = static_cast<int>(count);
        if (count > STARPU_NMAXBUFS) {
            /* Freed with the task. */
            task->dyn_handles = static_cast<starpu_data_handle_t *>(malloc(count * sizeof *task->dyn_handles));
            task->dyn_modes = static_cast<starpu_data_access_mode *>(malloc(count * sizeof *task->dyn_modes));
        }
        for (size_t k = 0; k < count; k++) {
            STARPU_TASK_SET_HANDLE(task, accesses_[first + k].object, k);
            STARPU_TASK_SET_MODE(task, accesses_[first + k].mode, k);
        }
        if (starpu_task_submit(task) != 0)
            refused_++;
    }

    void read(void *, const void *, size_t) override {}

    std::string finish() override
    {
        const bool complete = starpu_task_wait_for_all() == 0;
        const bool ok = complete && refused_ == 0;
        refused_ = 0;
        return ok ? "" : "StarPU refused a task";
    }

private:
    enum { MOST_OBJECTS = 100000 };
    struct access {
        starpu_data_handle_t object;
        starpu_data_access_mode mode;
    };

    void add(const acs_segment &s)
    {
        starpu_data_handle_t &object = objects_[s.base];
        if (!object)
            starpu_variable_data_register(&object, STARPU_MAIN_RAM, static_cast<uintptr_t>(s.base), s.row_bytes);
        accesses_.push_back(
            {object, s.access == ACS_READ ? STARPU_R : (s.access == ACS_WRITE ? STARPU_W : STARPU_RW)});
    }

    starpu_codelet codelet_;
    std::unordered_map<uint64_t, starpu_data_handle_t> objects_;
    std::vector<access> accesses_;
    std::vector<size_t> first_; /* per op its first access; one more at the end */
    size_t next_ = 0;
    uint64_t refused_ = 0;
    bool failed_;
};

} // namespace
#endif

void add_starpu(std::vector<runner_kind> &list)
{
#if BENCH_STARPU
    list.push_back({"starpu", "StarPU", false, true,
                    [](const machine &m) { return std::unique_ptr<runner>(new starpu_runner(m)); }});
#else
    (void)list;
#endif
}

} // namespace bench

/*
 * Owns the runners that keep program order: one CUDA stream, and a loop on the CPU. Called by the program's thread.
 */
#include "runners.h"
#include "streams_slot.h"

namespace bench {

namespace {

class serial_runner : public runner {
public:
    explicit serial_runner(const machine &m) : gpu_(m.gpu), slot_(m.gpu, 0) {}

    std::string prepare(const trace &t, const dag &) override
    {
        for (const op &o : t.ops)
            slot_.reserve(o);
        return why_not(t, gpu_);
    }

    void launch(const op &o) override { slot_.issue(o, failure_); }

    void read(void *to, const void *from, size_t bytes) override
    {
        op o = {};
        o.kind = OP_READ;
        o.to = to;
        o.from = from;
        o.bytes = bytes;
        slot_.reserve(o);
        slot_.issue(o, failure_);
        slot_.wait(failure_);
        slot_.fetch(o);
    }

    std::string finish() override
    {
        wait_for_device(gpu_, failure_);
        return failure_.take();
    }

private:
    const bool gpu_;
    slot slot_;
    failure failure_;
};

} // namespace

void add_serial(std::vector<runner_kind> &list)
{
    const auto make = [](const machine &m) { return std::unique_ptr<runner>(new serial_runner(m)); };

    if (BENCH_CUDA)
        list.push_back({"stream", "one CUDA stream, in program order", true, false, make});
    list.push_back({"serial", "a loop on the CPU that calls host bodies", false, true, make});
}

} // namespace bench

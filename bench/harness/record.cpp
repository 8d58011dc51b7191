/*
 * Owns the serial execution of ops, one after another with a wait behind each: how a program is recorded, and how an
 * order with a lost dependency is played. Called outside timed regions.
 */
#include <cstring>
#include <map>

#include "dag.h"
#include "program.h"

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace bench {

/* A library call's handles, kept from call to call as a slot keeps them: one serial slot for the whole process. */
static void **place_of(const acs_call_params &c)
{
    static std::map<const void *, void *> places;
    return &places[c.place_key];
}

acs_call_env call_env(memory &m, const acs_call_params &c, void *stream)
{
    acs_call_env env = {};
    env.stream = stream;
    env.device = m.gpu() ? 0 : -1;
    env.scratch = c.scratch_bytes ? m.allocate(c.scratch_bytes) : nullptr;
    env.scratch_bytes = c.scratch_bytes;
    env.place = c.place_key ? place_of(c) : nullptr;
    return env;
}

static void execute_call(memory &m, const acs_call_params &c)
{
    const acs_call_env env = call_env(m, c, nullptr);

    require(c.function(&env, const_cast<void *>(c.closure)) == 0, "a library call failed");
    m.wait();
    if (env.scratch)
        m.release(env.scratch);
}

static void execute_kernel(memory &m, const op &o)
{
    void *args[1] = {const_cast<void *>(o.args)};
#if BENCH_CUDA
    if (m.gpu()) {
        require_cuda(cudaLaunchKernel(o.kernel->code.function, dim3(o.grid), dim3(o.block), args, 0, nullptr),
                     op_name(o));
        m.wait();
        return;
    }
#endif
    (void)m;
    const acs_grid grid = {{o.grid, 1, 1}, {o.block, 1, 1}, 0, nullptr};
    o.kernel->code.host(&grid, args);
}

void execute(memory &m, const op &o)
{
    switch (o.kind) {
    case OP_KERNEL: execute_kernel(m, o); break;
    case OP_COPY: m.copy(o.to, o.from, o.bytes); break;
    case OP_FILL: m.fill(o.to, o.value, o.bytes); break;
    case OP_CALL: execute_call(m, *o.call); break;
    case OP_READ: break;
    }
    m.wait();
}

void sink::begin_if(const uint32_t *, bool)
{
    require(false, "a program has sections for a runner that cannot decide on the device");
}

void sink::loop(const uint32_t *stop, uint32_t most, const std::function<void()> &body)
{
    for (uint32_t i = 0; i < most; i++) {
        uint32_t stopped;
        read(&stopped, stop, sizeof stopped);
        if (stopped)
            return;
        body();
    }
}

namespace {

uint64_t fold(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *const p = static_cast<const unsigned char *>(bytes);
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

/* Runs each op as it comes, and keeps it. */
class recorder : public sink {
public:
    recorder(program &p, bool decides) : memory_(p.mem()), decides_(decides)
    {
        trace_.reads = std::make_shared<std::deque<acs_segment>>();
        trace_.answers = std::make_shared<std::deque<std::vector<char>>>();
        trace_.decided = p.decided();
    }

    void launch(const op &o) override
    {
        if (off_ > 0)
            return;
        add(o);
        execute(memory_, o);
    }

    void read(void *to, const void *from, size_t bytes) override
    {
        require(bytes <= READ_BYTES, "a program reads more than READ_BYTES at once");
        trace_.reads->push_back(ACS_IN(from, bytes));
        op o = {};
        o.kind = OP_READ;
        o.to = to;
        o.from = from;
        o.bytes = bytes;
        o.segments = &trace_.reads->back();
        o.segment_count = 1;
        add(o);
        memory_.download(to, from, bytes);
        trace_.answers->emplace_back(static_cast<char *>(to), static_cast<char *>(to) + bytes);
    }

    bool decides() const override { return decides_; }

    void begin_if(const uint32_t *word, bool unless) override
    {
        if (off_ > 0 || (now(word) != 0) == unless)
            off_++;
    }

    void end_if() override { off_ -= off_ > 0; } /* sections that do not run are the innermost ones */

    void loop(const uint32_t *stop, uint32_t most, const std::function<void()> &body) override
    {
        if (!decides_) {
            sink::loop(stop, most, body);
            return;
        }
        for (uint32_t i = 0; i < most && off_ == 0 && !now(stop); i++)
            body();
    }

    trace take() { return std::move(trace_); }

private:
    void add(const op &o)
    {
        uint64_t hash = trace_.identity;
        hash = fold(hash, &o.kind, sizeof o.kind);
        hash = fold(hash, &o.kernel, sizeof o.kernel);
        hash = fold(hash, &o.grid, sizeof o.grid);
        hash = fold(hash, &o.block, sizeof o.block);
        trace_.identity = fold(hash, o.segments, o.segment_count * sizeof *o.segments);
        trace_.ops.push_back(o);
    }

    uint32_t now(const uint32_t *word) const
    {
        uint32_t value;
        memory_.download(&value, word, sizeof value);
        return value;
    }

    memory &memory_;
    const bool decides_;
    uint32_t off_ = 0; /* open sections that do not run */
    trace trace_;
};

} // namespace

trace record(program &p, bool decides)
{
    recorder r(p, decides);
    p.run(r);
    return r.take();
}

} // namespace bench

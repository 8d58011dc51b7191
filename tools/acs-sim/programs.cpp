/*
 * Owns the list of programs, and patterns: the bench's tasks with their accesses, on one device or dealt out to several.
 * Called by the command line and the studies.
 */
#include "programs.h"

#include <algorithm>
#include <map>

#include "memory.h"

namespace design {

const std::vector<program_kind> &program_kinds()
{
    static const std::vector<program_kind> list = {
        {"pattern", "tasks of --pattern", true, make_pattern},
        {"recent", "--width times --steps tasks, each of which reads two of the last --width", false, make_recent},
        {"physics", "one step of the physics sample, --scenes scenes of --worlds worlds", false, make_physics},
        {"ant", "the same, one scene of this body plan", false, make_physics},
        {"grasp", "the same", false, make_physics},
        {"humanoid", "the same", false, make_physics},
        {"cheetah", "the same", false, make_physics},
        {"walker", "the same", false, make_physics},
        {"instanas", "InstaNAS-like: a controller picks among five blocks in each of 17 layers", false, make_network},
        {"dynroute", "dynamic routing: 61 decisions of the host inside of one inference", false, make_network},
        {"condconv", "CondConv: weights mixed from four experts' as it runs", false, make_network},
        {"squeezenet", "fire modules", false, make_network},
        {"nasnet", "NASNet-A cells", false, make_network},
        {"randwire", "RandWire WS(32, 4, 0.75)", false, make_network},
    };
    return list;
}

const program_kind *find_program(const std::string &name)
{
    for (const program_kind &k : program_kinds())
        if (name == k.name)
            return &k;
    return nullptr;
}

program make_program(const std::string &name, const program_request &q)
{
    const program_kind *const kind = find_program(name);

    bench::require(kind != nullptr, "there is no such program");
    program p = kind->make(q, name);
    p.name = kind->pattern ? q.shape.name : name;
    return p;
}

static uint64_t block_ns(const program_request &q)
{
    return static_cast<uint64_t>((q.kernel_us < 0 ? 5 : q.kernel_us) * 1000);
}

namespace {

/*
 * Cells with their last writer and the readers since, and which devices have a copy: edges as they are found, none that
 * is found twice, implied ones among them.
 */
class dealer {
public:
    dealer(const program_request &q, uint32_t cells, bool by_row)
        : request_(q), owners_(by_row ? q.shape.width : cells), cells_(cells)
    {
        program_.devices = q.devices;
    }

    void add(const bench::task_access &a)
    {
        const uint32_t device = owner(a.out);
        std::vector<uint32_t> up;

        for (uint32_t cell : a.reads)
            read(cell, device, up);
        if (a.update)
            read(a.out, device, up);
        task t = kernel_task(request_.ctas, bench::TASK_BLOCK, block_ns(request_),
                             static_cast<uint32_t>(a.reads.size()) + !a.undeclared);
        t.device = device;
        const uint32_t k = append(t, up);
        for (uint32_t cell : a.reads)
            cells_[cell].readers.push_back(k);
        write(a.out, k);
    }

    program take()
    {
        finish_program(program_);
        return std::move(program_);
    }

private:
    struct cell_state {
        uint32_t writer = ACS_SIM_NONE;
        std::vector<uint32_t> readers;
        std::map<uint32_t, uint32_t> copies; /* by device: the copy that brought it there */
    };

    uint32_t owner(uint32_t cell) const
    {
        return static_cast<uint32_t>(uint64_t(cell % owners_) * request_.devices / owners_);
    }

    uint32_t append(const task &t, std::vector<uint32_t> &up)
    {
        std::sort(up.begin(), up.end());
        up.erase(std::unique(up.begin(), up.end()), up.end());
        program_.tasks.push_back(t);
        program_.dag.up.push_back(up);
        return static_cast<uint32_t>(program_.tasks.size()) - 1;
    }

    void read(uint32_t cell, uint32_t device, std::vector<uint32_t> &up)
    {
        cell_state &c = cells_[cell];
        if (c.writer == ACS_SIM_NONE)
            return;
        const uint32_t from = owner(cell);
        if (from == device) {
            up.push_back(c.writer);
            return;
        }
        const auto found = c.copies.find(device);
        if (found != c.copies.end()) {
            up.push_back(found->second);
            return;
        }
        task t = {};
        t.kind = COPY;
        t.direction = ACS_SIM_TO_PEER;
        t.device = from;
        t.peer = device;
        t.bytes = request_.halo_bytes;
        t.segments = 2;
        std::vector<uint32_t> before = {c.writer};
        const uint32_t k = append(t, before);
        c.copies[device] = k;
        c.readers.push_back(k);
        up.push_back(k);
    }

    void write(uint32_t cell, uint32_t k)
    {
        cell_state &c = cells_[cell];
        std::vector<uint32_t> &up = program_.dag.up[k];
        if (c.writer != ACS_SIM_NONE)
            up.push_back(c.writer);
        up.insert(up.end(), c.readers.begin(), c.readers.end());
        up.erase(std::remove(up.begin(), up.end(), k), up.end());
        std::sort(up.begin(), up.end());
        up.erase(std::unique(up.begin(), up.end()), up.end());
        c = cell_state();
        c.writer = k;
    }

    const program_request &request_;
    const uint32_t owners_; /* places that are dealt out */
    std::vector<cell_state> cells_;
    program program_;
};

} // namespace

/* As acs-bench has it: footprints of a program on one device, with the edges that the bench's own code finds. */
static program one_device(const program_request &q, const std::vector<bench::task_access> &tasks)
{
    std::vector<acs_segment> segments;
    bench::trace t;
    size_t count = 0;

    for (const bench::task_access &a : tasks)
        count += a.reads.size() + 1;
    segments.reserve(count);
    for (const bench::task_access &a : tasks) {
        bench::op o = {};
        o.kind = bench::OP_KERNEL;
        o.grid = q.ctas;
        o.block = bench::TASK_BLOCK;
        o.segments = segments.data() + segments.size();
        for (uint32_t cell : a.reads)
            segments.push_back(ACS_IN(reinterpret_cast<const void *>((cell + 1) * uintptr_t(4096)), 64));
        if (!a.undeclared) {
            const void *const out = reinterpret_cast<const void *>((a.out + 1) * uintptr_t(4096));
            segments.push_back(a.update ? ACS_INOUT(out, 64) : ACS_OUT(out, 64));
        }
        o.segment_count = static_cast<uint32_t>(segments.data() + segments.size() - o.segments);
        t.ops.push_back(o);
    }
    const uint64_t ns = block_ns(q);
    return from_trace(t, [ns](const bench::op &) { return ns; }, ACS_SIM_WITHIN, {});
}

/* Above this many ops only edges that are met are found, implied ones among them. */
static const size_t REDUCED_OPS = 20000;

program make_pattern(const program_request &q, const std::string &)
{
    uint32_t cells = 0;
    const std::vector<bench::task_access> tasks = bench::pattern_tasks(q.shape, &cells);
    program p;

    if (q.devices == 1 && tasks.size() <= REDUCED_OPS) {
        p = one_device(q, tasks);
    } else {
        const bool grid = cells % q.shape.width == 0 && q.shape.name.find(':') == std::string::npos;
        dealer d(q, cells, grid);
        for (const bench::task_access &a : tasks)
            d.add(a);
        p = d.take();
    }
    p.times = "given: every block takes as long";
    p.recurs = !bench::pattern_varies(q.shape.name);
    return p;
}

program make_recent(const program_request &q, const std::string &)
{
    const uint32_t last = q.shape.width, count = last * q.shape.steps;
    std::vector<bench::task_access> tasks;

    for (uint32_t k = 0; k < count; k++) {
        const uint32_t from = std::min(k, last);
        bench::task_access a = {k, false, false, {}};
        for (uint64_t read = 0; read < std::min(2u, from); read++)
            a.reads.push_back(k - 1 - static_cast<uint32_t>(bench::random_unit(q.shape.seed, 2 * k + read) * from));
        std::sort(a.reads.begin(), a.reads.end());
        a.reads.erase(std::unique(a.reads.begin(), a.reads.end()), a.reads.end());
        tasks.push_back(a);
    }
    program p = one_device(q, tasks);
    p.times = "given: every block takes as long";
    return p;
}

} // namespace design

/*
 * Owns programs as data: how a recorded run becomes one, and what bounds its time. Called by generators and reports.
 * Issues nothing.
 */
#include "program.h"

#include <algorithm>
#include <map>

namespace design {

/*
 * What kernels are taken to use; the papers do not say. No kernel of the programs asks for dynamic shared memory.
 */
static const uint32_t REGISTERS_PER_THREAD = 32;

task kernel_task(uint32_t ctas, uint32_t threads, uint64_t cta_ns, uint32_t segments)
{
    task t = {};
    t.kind = KERNEL;
    t.kernel.ctas = ctas;
    t.kernel.threads = threads;
    t.kernel.registers = threads * REGISTERS_PER_THREAD;
    t.kernel.cta_ns = cta_ns;
    t.segments = segments;
    return t;
}

acs_sim_kernel copy_kernel(const acs_sim_gpu &gpu, const task &t)
{
    const uint32_t mbps = t.direction == ACS_SIM_WITHIN    ? gpu.memory_mbps
                          : t.direction == ACS_SIM_TO_PEER ? gpu.peer_mbps
                                                           : gpu.host_mbps;
    acs_sim_kernel k = {};
    k.ctas = k.threads = 1;
    k.cta_ns = gpu.device.copy_latency + t.bytes * 1000 / std::max(mbps, 1u);
    return k;
}

uint64_t resident(const acs_sim_gpu &gpu, const acs_sim_kernel &k)
{
    uint64_t most = std::min<uint64_t>(gpu.sm_ctas, gpu.sm_threads / k.threads);
    if (k.registers)
        most = std::min<uint64_t>(most, gpu.sm_registers / k.registers);
    if (k.shared_bytes)
        most = std::min<uint64_t>(most, gpu.sm_shared_bytes / k.shared_bytes);
    return std::max<uint64_t>(most, 1) * gpu.sms;
}

limits limits_of(const acs_sim_gpu &gpu, const program &p)
{
    std::vector<uint64_t> end(p.tasks.size());
    std::vector<double> work(p.devices);
    limits l = {0, 0};

    for (size_t k = 0; k < p.tasks.size(); k++) {
        const task &t = p.tasks[k];
        for (uint32_t u : p.dag.up[k])
            end[k] = std::max(end[k], end[u]);
        if (t.kind == KERNEL) {
            const uint64_t room = resident(gpu, t.kernel);
            end[k] += (t.kernel.ctas + room - 1) / room * t.kernel.cta_ns;
            work[t.device] += static_cast<double>(t.kernel.ctas * t.kernel.cta_ns) / static_cast<double>(room);
        }
        l.critical = std::max(l.critical, end[k]);
    }
    l.work = static_cast<uint64_t>(*std::max_element(work.begin(), work.end()));
    return l;
}

void finish_program(program &p)
{
    std::vector<uint32_t> level(p.tasks.size(), 1);

    p.dag.edges = 0;
    p.dag.depth = 0;
    p.kernels = 0;
    for (size_t k = 0; k < p.tasks.size(); k++) {
        for (uint32_t u : p.dag.up[k])
            level[k] = std::max(level[k], level[u] + 1);
        p.dag.edges += p.dag.up[k].size();
        p.dag.depth = std::max(p.dag.depth, level[k]);
        p.kernels += p.tasks[k].kind == KERNEL;
    }
}

void set_block_time(program &p, uint64_t ns)
{
    for (task &t : p.tasks)
        t.kernel.cta_ns = t.kind == KERNEL ? ns : 0;
    p.times = "given: every block takes as long";
}

std::vector<bench::op> planned_ops(const program &p)
{
    std::vector<bench::op> ops;
    for (const task &t : p.tasks) {
        bench::op o = {};
        o.kind = t.kind == KERNEL ? bench::OP_KERNEL : t.kind == COPY ? bench::OP_COPY : bench::OP_READ;
        /* Zero would mean unknown. */
        o.us = std::max(0.01f, static_cast<float>(t.kernel.cta_ns) / 1000);
        ops.push_back(o);
    }
    return ops;
}

/* Numbers for kernels, in the order of first sight; copies are one more. */
static uint32_t type_of(std::map<std::pair<const void *, uint32_t>, uint32_t> &types, const bench::op &o)
{
    return types.emplace(std::make_pair(o.kernel, o.kernel ? o.block : 0), types.size()).first->second;
}

static task copy_task(acs_sim_copy_kind direction, uint64_t bytes)
{
    task t = {};
    t.kind = COPY;
    t.direction = direction;
    t.bytes = bytes;
    t.segments = 2;
    return t;
}

static task task_of(const bench::op &o, const block_time &time, acs_sim_copy_kind copies)
{
    if (o.kind == bench::OP_KERNEL || o.kind == bench::OP_CALL) {
        const uint32_t ctas = std::max(o.grid, 1u), threads = std::max(o.block, 1u);
        return kernel_task(ctas, threads, time(o), o.segment_count);
    }
    return copy_task(o.kind == bench::OP_READ ? ACS_SIM_TO_HOST : copies, o.bytes);
}

static void add_wait(program &p, uint32_t up)
{
    task wait = {};
    wait.kind = WAIT;
    p.tasks.push_back(wait);
    p.dag.up.push_back({up});
}

program from_trace(const bench::trace &t, block_time time, acs_sim_copy_kind copies, const std::vector<trace_wait> &waits)
{
    const bench::dag found = bench::find_dag(t);
    std::vector<uint32_t> place(t.ops.size());
    std::map<std::pair<const void *, uint32_t>, uint32_t> types;
    size_t next_wait = 0;
    program p;

    for (size_t k = 0; k < t.ops.size(); k++) {
        std::vector<uint32_t> up;
        for (uint32_t u : found.up[k])
            up.push_back(place[u]);
        for (; next_wait < waits.size() && waits[next_wait].before == k; next_wait++)
            add_wait(p, place[waits[next_wait].copy]);
        place[k] = static_cast<uint32_t>(p.tasks.size());
        p.tasks.push_back(task_of(t.ops[k], time, copies));
        p.tasks.back().type = type_of(types, t.ops[k]);
        p.dag.up.push_back(up);
        if (t.ops[k].kind == bench::OP_READ)
            add_wait(p, place[k]);
    }
    finish_program(p);
    return p;
}

} // namespace design

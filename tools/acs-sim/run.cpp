/*
 * Owns the play of one program on the machine. Called by the measurement; vehicles add threads and decide what they do.
 * Knows no way to issue.
 */
#include "run.h"

#include <algorithm>

#include "memory.h"
#include "vehicle.h"

namespace design {

uint64_t thread::start(uint64_t now)
{
    action &a = actions_.front();
    uint64_t begin = now;

    acting_ = true;
    if (a.device != ACS_SIM_NONE) {
        const uint32_t others = run_.launching_[a.device]++;
        a.ns += a.ns * run_.gpu.host.thread_slowdown * others / 1000;
    }
    if (a.held) {
        begin = std::max(begin, a.held->free_at);
        a.held->free_at = begin + a.ns;
    }
    busy_ += a.ns;
    return begin + a.ns;
}

/* Ends the action in hand, then begins the next one. Returns when that ends, or never. */
uint64_t thread::step(uint64_t now)
{
    if (acting_) {
        const action a = actions_.front();
        actions_.pop_front();
        acting_ = false;
        if (a.device != ACS_SIM_NONE)
            run_.launching_[a.device]--;
        if (a.then)
            a.then(now);
    }
    while (actions_.empty())
        if (!decide(now))
            return ACS_SIM_NEVER;
    return start(now);
}

void thread::handed_over(uint64_t now)
{
    if (!handed_over_)
        run_.submit_ = std::max(run_.submit_, now);
    handed_over_ = true;
}

run::run(const acs_sim_gpu &g, const program &p)
    : gpu(g), prog(p), machine(acs_sim_create(&g, p.devices, told, this)), link_ns(g.device.launch_latency),
      moments_(p.tasks.size()), launching_(p.devices)
{
    bench::require(machine != nullptr, "no memory for the machine");
}

run::~run()
{
    acs_sim_destroy(machine);
}

void run::push(uint64_t at, thread *who, uint32_t task, bool seen)
{
    events_.push({at, number_++, who, task, seen});
}

void run::told(void *owner, void *user, bool ended, uint64_t when)
{
    run &r = *static_cast<run *>(owner);
    moment &m = *static_cast<moment *>(user);

    if (!ended) {
        m.start = when;
        return;
    }
    const uint32_t k = static_cast<uint32_t>(&m - r.moments_.data());
    m.end = when;
    r.push(when, nullptr, k);
    r.push(when + r.gpu.device.host_visible, nullptr, k, true);
}

void run::wake(thread &t, uint64_t at)
{
    at = std::max(at, now_);
    if (t.acting_ || t.due_ <= at)
        return;
    t.due_ = at;
    push(at, &t);
}

void run::handle(const event &e, vehicle &v)
{
    now_ = e.at;
    total_ = std::max(total_, now_);
    if (!e.who && !e.seen) {
        v.ended(e.task, now_);
        return;
    }
    if (!e.who) {
        moments_[e.task].seen = true;
        v.seen(e.task, now_);
        return;
    }
    if (e.who->due_ != e.at)
        return; /* it was woken earlier */
    e.who->due_ = ACS_SIM_NEVER;
    const uint64_t next = e.who->step(now_);
    if (next == ACS_SIM_NEVER)
        return;
    e.who->due_ = next;
    push(next, e.who);
}

void run::play(vehicle &v)
{
    v.begin(*this);
    for (;;) {
        const uint64_t device = acs_sim_next(machine);
        const uint64_t host = events_.empty() ? ACS_SIM_NEVER : events_.top().at;
        if (device == ACS_SIM_NEVER && host == ACS_SIM_NEVER)
            break;
        if (device <= host) {
            acs_sim_advance(machine, device);
            continue;
        }
        acs_sim_advance(machine, host);
        const event e = events_.top();
        events_.pop();
        handle(e, v);
    }
    bench::require(!acs_sim_failed(machine), "no memory for the machine");
}

void run::issue(uint64_t now, uint32_t k, uint32_t stream)
{
    const task &t = prog.tasks[k];
    if (t.kind == KERNEL)
        acs_sim_launch(machine, now, stream, &t.kernel, user(k));
    else if (t.kind == COPY)
        acs_sim_copy(machine, now, stream, t.direction, t.peer, t.bytes, user(k));
}

uint32_t run::node(uint32_t graph, uint32_t k, acs_sim_node_kind kind)
{
    const task &t = prog.tasks[k];
    if (t.kind == KERNEL)
        return acs_sim_graph_node(machine, graph, &t.kernel, kind, user(k));
    const acs_sim_kernel copy = copy_kernel(gpu, t);
    return acs_sim_graph_node(machine, graph, &copy, kind, user(k));
}

void run::issue_graph1(uint64_t now, uint32_t k, uint32_t stream)
{
    if (prog.tasks[k].kind != KERNEL) {
        issue(now, k, stream);
        return;
    }
    const uint32_t graph = acs_sim_graph(machine, prog.tasks[k].device);
    node(graph, k);
    acs_sim_graph_launch(machine, now, stream, graph);
}

bool run::all_seen(const std::vector<uint32_t> &list) const
{
    return std::all_of(list.begin(), list.end(),
                       [this](uint32_t k) { return prog.tasks[k].kind == WAIT || moments_[k].seen; });
}

std::string run::wrong() const
{
    uint64_t awaited = 0; /* when what the program has waited for had ended */

    for (size_t k = 0; k < prog.tasks.size(); k++) {
        const moment &m = moments_[k];
        const bool wait = prog.tasks[k].kind == WAIT;
        if (!wait && (m.start == ACS_SIM_NEVER || m.end == ACS_SIM_NEVER))
            return "task " + std::to_string(k) + " did not run";
        if (!wait && m.start < awaited)
            return "task " + std::to_string(k) + " began before something that the program had waited for ended";
        for (uint32_t u : prog.dag.up[k]) {
            if (prog.tasks[u].kind == WAIT)
                continue;
            if (wait)
                awaited = std::max(awaited, moments_[u].end);
            else if (m.start < moments_[u].end)
                return "task " + std::to_string(k) + " began before task " + std::to_string(u) + " ended";
        }
    }
    return "";
}

} // namespace design

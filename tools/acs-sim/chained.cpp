/*
 * Owns our core's way as a model: ops enter a bounded window, are ready when what they depend on has been issued, are
 * placed in slots and ordered on the device by streams and events; the host learns of completion to retire ops only.
 * Called through the list of vehicles. One worker does all of that, or windows and issuing threads are several.
 */
#include "chained.h"

#include <algorithm>

namespace design {

namespace {

/* As in the library: its defaults of FIFO and window, its slots. */
enum { FIFO = 1024, WINDOW = 256, FIRST_SLOTS = 4, DEEP = 12, SLACK = 8, READY = 8, SUBMISSIONS = 8 };
/* Above so many slots in all, only the order within slots is used to drop waits. */
enum { CLOCKS = 64 };

} // namespace

bool chained_caller::decide(uint64_t now)
{
    window_part &w = all_.windows[part_];
    if (next_ == w.program.size()) {
        handed_over(now);
        return false;
    }
    const uint32_t k = w.program[next_];
    if (run_.prog.tasks[k].kind == WAIT) {
        if (!run_.all_seen(run_.prog.dag.up[k]))
            return false;
        next_++;
        return true;
    }
    if (w.fifo.size() >= FIFO)
        return false;
    next_++;
    spend(costs.push, [this, k](uint64_t at) { all_.pushed(part_, k, at); });
    return true;
}

bool chained_worker::may_insert() const
{
    if (inserts_ == ACS_SIM_NONE)
        return false;
    const window_part &w = all_.windows[inserts_];
    return !w.fifo.empty() && w.taken < WINDOW;
}

void chained_worker::insert()
{
    window_part &w = all_.windows[inserts_];
    const uint32_t k = w.fifo.front();

    w.fifo.pop_front();
    w.taken++;
    spend(costs.fifo + costs.insert, [this, k](uint64_t at) { all_.inserted(k, at); });
    all_.wake_callers();
}

/* A query per slot in which something ended, and what each retired op costs. */
void chained_worker::retire()
{
    window_part &w = all_.windows[inserts_];
    const size_t count = w.ended.size();
    std::vector<uint32_t> list, polled;

    since_poll_ = 0;
    list.swap(w.ended);
    for (uint32_t k : list)
        polled.push_back(all_.slot_of(k));
    std::sort(polled.begin(), polled.end());
    const auto slots = std::unique(polled.begin(), polled.end()) - polled.begin();
    spend(run_.gpu.host.query * static_cast<uint64_t>(slots) + uint64_t(costs.record) * count, [this, list](uint64_t at) {
        all_.retired(inserts_, list, at);
    });
}

uint32_t chained_worker::ready_device() const
{
    for (uint32_t d = first_; d < end_; d++)
        if (!all_.devices[d].ready.empty())
            return d;
    return ACS_SIM_NONE;
}

bool chained_worker::decide(uint64_t)
{
    const uint32_t device = ready_device();
    const bool ended = inserts_ != ACS_SIM_NONE && !all_.windows[inserts_].ended.empty();

    if (ended && (since_poll_ >= SUBMISSIONS || all_.windows[inserts_].taken == WINDOW)) {
        retire();
        return true;
    }
    if (may_insert() && (device == ACS_SIM_NONE || all_.devices[device].ready.size() < READY)) {
        insert();
        return true;
    }
    if (device != ACS_SIM_NONE) {
        issue(device);
        since_poll_++;
        return true;
    }
    if (ended) {
        retire();
        return true;
    }
    return false;
}

void chained_worker::issue(uint32_t device)
{
    device_part &d = all_.devices[device];
    const acs_sim_host_costs &h = run_.gpu.host;
    const uint32_t k = d.ready.front();
    d.ready.pop_front();
    const task &t = run_.prog.tasks[k];
    const uint32_t slot = all_.place(device, k);

    for (uint32_t u : all_.keep(slot, k))
        record(u);
    for (uint32_t u : all_.waits(slot, k)) {
        const uint32_t event = all_.recorded(u) ? all_.event_of(u) : record(u);
        spend(h.wait, [this, event, slot](uint64_t at) {
            acs_sim_wait(run_.machine, at, all_.slots[slot].stream, event);
        });
    }
    all_.placed(slot, k);
    launching(device, t.kind == COPY ? h.copy : h.launch, [this, k, slot](uint64_t at) {
        run_.issue(at, k, all_.slots[slot].stream);
        all_.issued(k, at);
    });
}

/* Behind the newest op of u's slot: u itself, unless another thread is just about to record an event for it. */
uint32_t chained_worker::record(uint32_t u)
{
    const uint32_t event = all_.make_event(u), stream = all_.slots[all_.slot_of(u)].stream;
    spend(run_.gpu.host.record, [this, u, event, stream](uint64_t at) {
        acs_sim_record(run_.machine, at, stream, event);
        all_.note_recorded(u, event);
    });
    return event;
}

void chained::begin(run &r)
{
    const size_t n = r.prog.tasks.size();
    run_ = &r;
    down_.resize(n);
    left_.assign(n, 0);
    slot_.assign(n, ACS_SIM_NONE);
    event_.assign(n, ACS_SIM_NONE);
    is_recorded_.resize(n);
    position_.assign(n, 0);
    is_inserted_.resize(n);
    is_issued_.resize(n);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t u : r.prog.dag.up[k])
            if (r.prog.tasks[u].kind != WAIT) {
                down_[u].push_back(k);
                left_[k]++;
            }
    make_parts();
    make_threads();
}

void chained::make_parts()
{
    const uint32_t parts = mode_ == EACH_WINDOW ? run_->prog.devices : 1;

    devices.resize(run_->prog.devices);
    windows.resize(parts);
    for (uint32_t d = 0; d < run_->prog.devices; d++) {
        devices[d].first_slot = static_cast<uint32_t>(slots.size());
        devices[d].active = FIRST_SLOTS;
        for (uint32_t s = 0; s < run_->gpu.queues; s++)
            slots.push_back({acs_sim_stream(run_->machine, d), ACS_SIM_NONE, 0, 0});
        windows[d % parts].devices.push_back(d);
    }
    for (uint32_t k = 0; k < run_->prog.tasks.size(); k++)
        windows[run_->prog.tasks[k].device % parts].program.push_back(k);
    if (slots.size() <= CLOCKS) {
        slot_clock_.assign(slots.size(), std::vector<uint32_t>(slots.size()));
        op_clock_.resize(run_->prog.tasks.size());
    }
}

void chained::make_threads()
{
    const uint32_t n = run_->prog.devices;

    for (uint32_t w = 0; w < windows.size(); w++)
        callers_.push_back(std::make_unique<chained_caller>(*run_, *this, w));
    for (uint32_t w = 0; w < windows.size(); w++)
        if (mode_ == ONE_WORKER)
            workers_.push_back(std::make_unique<chained_worker>(*run_, *this, w, 0, n));
        else if (mode_ == EACH_WINDOW)
            workers_.push_back(std::make_unique<chained_worker>(*run_, *this, w, w, w + 1));
        else
            workers_.push_back(std::make_unique<chained_worker>(*run_, *this, w, 0, 0));
    for (uint32_t d = 0; mode_ == EACH_ISSUER && d < n; d++)
        workers_.push_back(std::make_unique<chained_worker>(*run_, *this, ACS_SIM_NONE, d, d + 1));
    wake_callers();
}

void chained::wake_callers()
{
    for (auto &c : callers_)
        run_->wake(*c, run_->now());
}

/* Of the window with this number, and of this device. */
void chained::wake_worker(uint32_t window, uint32_t device)
{
    run_->wake(*workers_[window], run_->now());
    if (mode_ == EACH_ISSUER)
        run_->wake(*workers_[1 + device], run_->now());
}

void chained::pushed(uint32_t part, uint32_t k, uint64_t)
{
    windows[part].fifo.push_back(k);
    wake_worker(part, run_->prog.tasks[k].device);
}

void chained::inserted(uint32_t k, uint64_t)
{
    is_inserted_[k] = true;
    if (left_[k] == 0)
        make_ready(k);
}

void chained::make_ready(uint32_t k)
{
    const uint32_t d = run_->prog.tasks[k].device;
    devices[d].ready.push_back(k);
    wake_worker(part_of(d), d);
}

void chained::issued(uint32_t k, uint64_t)
{
    is_issued_[k] = true;
    for (uint32_t d : down_[k])
        if (--left_[d] == 0 && is_inserted_[d])
            make_ready(d);
}

void chained::seen(uint32_t k, uint64_t)
{
    const uint32_t d = run_->prog.tasks[k].device;
    windows[part_of(d)].ended.push_back(k);
    wake_worker(part_of(d), d);
    run_->wake(*callers_[part_of(d)], run_->now());
}

void chained::retired(uint32_t part, const std::vector<uint32_t> &list, uint64_t)
{
    window_part &w = windows[part];
    w.taken -= static_cast<uint32_t>(list.size());
    for (uint32_t k : list)
        slots[slot_[k]].out--;
    for (uint32_t d : w.devices)
        adapt(devices[d]);
    wake_worker(part, w.devices[0]);
    wake_callers();
}

/* Where every queue is deep, up to twice as many slots are active; where one is empty, one less. */
void chained::adapt(device_part &d)
{
    uint32_t fewest = UINT32_MAX;
    for (uint32_t s = 0; s < d.active; s++)
        fewest = std::min(fewest, slots[d.first_slot + s].out);
    if (fewest >= DEEP)
        d.active = std::min(d.active * 2, run_->gpu.queues);
    else if (fewest == 0 && d.active > FIRST_SLOTS)
        d.active--;
    highest_ = std::max(highest_, d.active);
}

uint32_t chained::place(uint32_t device, uint32_t k) const
{
    const device_part &d = devices[device];
    uint32_t least = d.first_slot, behind = ACS_SIM_NONE;

    for (uint32_t s = d.first_slot; s < d.first_slot + d.active; s++)
        if (slots[s].out < slots[least].out)
            least = s;
    for (uint32_t u : run_->prog.dag.up[k]) {
        if (slot_[u] == ACS_SIM_NONE || run_->prog.tasks[u].device != device || slots[slot_[u]].last != u || run_->seen(u))
            continue;
        if (behind == ACS_SIM_NONE || slots[slot_[u]].out < slots[behind].out)
            behind = slot_[u];
    }
    if (behind == ACS_SIM_NONE || slots[behind].out > slots[least].out + SLACK)
        return least;
    return behind;
}

/* The last op of the slot, if somebody else may still wait for it: it is about to be hidden. */
std::vector<uint32_t> chained::keep(uint32_t slot, uint32_t k) const
{
    const uint32_t u = slots[slot].last;
    if (u == ACS_SIM_NONE || event_[u] != ACS_SIM_NONE || run_->seen(u))
        return {};
    for (uint32_t d : down_[u])
        if (d != k && !is_issued_[d] && slot_[d] == ACS_SIM_NONE)
            return {u};
    return {};
}

/* Upstream ops that the slot's order, completion or the clocks do not imply. */
std::vector<uint32_t> chained::waits(uint32_t slot, uint32_t k) const
{
    std::vector<uint32_t> list;

    for (uint32_t u : run_->prog.dag.up[k]) {
        if (slot_[u] == ACS_SIM_NONE || slot_[u] == slot || run_->seen(u))
            continue;
        if (!slot_clock_.empty() && slot_clock_[slot][slot_[u]] >= position_[u])
            continue;
        list.push_back(u);
    }
    return list;
}

void chained::placed(uint32_t slot, uint32_t k)
{
    slot_part &s = slots[slot];
    s.last = k;
    s.out++;
    slot_[k] = slot;
    position_[k] = ++s.length;
    if (slot_clock_.empty())
        return;
    std::vector<uint32_t> &now = slot_clock_[slot];
    for (uint32_t u : run_->prog.dag.up[k])
        for (size_t i = 0; i < now.size() && !op_clock_[u].empty(); i++)
            now[i] = std::max(now[i], op_clock_[u][i]);
    now[slot] = position_[k];
    op_clock_[k] = now;
}

uint32_t chained::make_event(uint32_t u)
{
    return event_[u] = acs_sim_event(run_->machine);
}

void chained::note_recorded(uint32_t u, uint32_t event)
{
    event_[u] = event;
    is_recorded_[u] = true;
}

uint64_t chained::host_busy() const
{
    return std::max(busiest(workers_), busiest(callers_));
}

/* Who was busiest: what would have to be faster. */
std::string chained::note() const
{
    uint64_t window = 0, issuer = 0, caller = 0;
    for (size_t k = 0; k < workers_.size(); k++)
        (mode_ == EACH_ISSUER && k > 0 ? issuer : window) =
            std::max(mode_ == EACH_ISSUER && k > 0 ? issuer : window, workers_[k]->busy());
    for (const auto &t : callers_)
        caller = std::max(caller, t->busy());
    const auto share = [this](uint64_t busy) {
        return std::to_string(run_->total() ? busy * 100 / run_->total() : 0) + " %";
    };
    std::string text = "caller " + share(caller) + (mode_ == EACH_ISSUER ? ", window " : ", worker ") + share(window);
    if (mode_ == EACH_ISSUER)
        text += ", issuer " + share(issuer);
    return text;
}

void add_chained(std::vector<vehicle_kind> &list)
{
    const auto add = [&list](const char *name, const char *about, chained_mode mode) {
        list.push_back({name, about, bench::OURS, 1,
                        [mode](const program &, int) { return std::make_unique<chained>(mode); }, nullptr, false, true});
    };
    add("chained", "our core's way, modelled: chained by streams and events; one window, one worker", ONE_WORKER);
    add("chained-issuers", "the same with the window in a thread of its own and an issuing thread per device", EACH_ISSUER);
    add("chained-windows", "the same with a program thread, a window and a worker per device", EACH_WINDOW);
}

} // namespace design

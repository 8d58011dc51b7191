/*
 * Owns the order and the timing of passes. Called by the program; all ways get the same trace in the same order, the same
 * calls around it, and the same synchronisation behind it.
 */
#include "passes.h"

#include "progress.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

namespace bench {

namespace {

using clock_type = std::chrono::steady_clock;

/* Warm passes of each way: one, and more while this time holds, for what learns as it goes. */
const int WARM_PASSES = 24;
const double WARM_US = 20000;

double us_between(clock_type::time_point begin, clock_type::time_point end)
{
    return std::chrono::duration<double, std::micro>(end - begin).count();
}

/* Adds up pieces of time; each is too long by one reading of the clock. */
class stopwatch {
public:
    void start() { begin_ = clock_type::now(); }
    double stop()
    {
        const double us = std::max(us_between(begin_, clock_type::now()) - clock_cost_us(), 0.0);
        sum_us_ += us;
        return us;
    }
    double us() const { return sum_us_; }

private:
    clock_type::time_point begin_;
    double sum_us_ = 0;
};

/* Do blocks that are live at once lie apart? */
class block_map {
public:
    std::string add(const void *block, uint64_t bytes)
    {
        const uintptr_t begin = reinterpret_cast<uintptr_t>(block);
        const auto next = blocks_.lower_bound(begin);
        const bool bad = (next != blocks_.end() && next->first < begin + bytes) ||
                         (next != blocks_.begin() && std::prev(next)->second > begin);
        blocks_[begin] = begin + bytes;
        return bad ? "a block lies in one that has not been freed" : "";
    }
    void remove(const void *block) { blocks_.erase(reinterpret_cast<uintptr_t>(block)); }

private:
    std::map<uintptr_t, uintptr_t> blocks_; /* begin and end */
};

/* What a pass does beside playing the trace. */
enum pass_kind {
    PASS_WARM,  /* nothing */
    PASS_CHECK, /* looks whether blocks lie apart */
    PASS_TIMED, /* reads the clock around calls that follow each other, so that little of its cost is in the figures */
    PASS_SINGLE /* reads the clock around each call, for the percentiles */
};

class player {
public:
    player(const allocation_trace &t, bool use) : trace_(t), use_(use), blocks_(t.pairs()) {}

    double calls_us = 0, total_us = 0;       /* of the latest pass */
    std::vector<double> malloc_us, free_us; /* of the passes that time single calls */

    /* @return empty, or what was not as it must be; then the way is not to be used further. */
    std::string play(way &w, pass_kind kind)
    {
        std::string wrong;

        w.ready();
        const auto begin = clock_type::now();
        if (kind == PASS_SINGLE)
            wrong = single(w);
        else if (kind == PASS_CHECK)
            wrong = checked(w);
        else
            wrong = use_ ? used(w) : untouched(w);
        const std::string failed = w.finish();
        total_us = us_between(begin, clock_type::now());
        for (uint32_t block = 0; !wrong.empty() && block < blocks_.size(); block++) /* where a pass broke off */
            if (blocks_[block])
                give(w, block);
        return failed.empty() ? wrong : failed;
    }

private:
    bool take(way &w, uint32_t block) { return (blocks_[block] = w.take(trace_.bytes[block])) != nullptr; }
    void give(way &w, uint32_t block) { w.give(std::exchange(blocks_[block], nullptr)); }
    void use(way &w, uint32_t block) { w.use(blocks_[block], std::min<uint64_t>(trace_.bytes[block], USED_BYTES)); }

    std::string refused(uint32_t block) const
    {
        return "block " + std::to_string(block) + " of " + std::to_string(trace_.bytes[block]) + " bytes was refused";
    }

    /* All calls follow each other: the clock is read twice. */
    std::string untouched(way &w)
    {
        stopwatch watch;
        watch.start();
        for (const allocation_event &e : trace_.events) {
            if (!e.is_malloc)
                give(w, e.block);
            else if (!take(w, e.block))
                return refused(e.block);
        }
        watch.stop();
        calls_us = watch.us();
        return "";
    }

    /*
     * What queueing the ops takes is no matter of the allocator's, so the clock stands still meanwhile. (To play the ops
     * alone and subtract would not do: where ACS is, frees change how ops are issued, and the difference is noise.) What
     * the allocator makes ops wait, and leaves to other threads, is in total_us.
     */
    std::string used(way &w)
    {
        stopwatch watch;
        watch.start();
        for (const allocation_event &e : trace_.events) {
            if (!e.is_malloc) {
                give(w, e.block);
                continue;
            }
            if (!take(w, e.block))
                return refused(e.block);
            watch.stop();
            use(w, e.block);
            watch.start();
        }
        watch.stop();
        calls_us = watch.us();
        return "";
    }

    std::string single(way &w)
    {
        stopwatch watch;
        for (const allocation_event &e : trace_.events) {
            watch.start();
            if (!e.is_malloc) {
                give(w, e.block);
                free_us.push_back(watch.stop());
                continue;
            }
            if (!take(w, e.block))
                return refused(e.block);
            malloc_us.push_back(watch.stop());
            if (use_)
                use(w, e.block);
        }
        return "";
    }

    std::string checked(way &w)
    {
        block_map live;
        std::string wrong;
        for (const allocation_event &e : trace_.events) {
            if (!e.is_malloc) {
                live.remove(blocks_[e.block]);
                give(w, e.block);
                continue;
            }
            if (!take(w, e.block))
                return refused(e.block);
            const std::string bad = live.add(blocks_[e.block], trace_.bytes[e.block]);
            wrong = wrong.empty() ? bad : wrong;
            if (use_)
                use(w, e.block);
        }
        return wrong;
    }

    const allocation_trace &trace_;
    const bool use_;
    std::vector<void *> blocks_;
};

/* A way and what is known of it so far. */
struct contender {
    allocation_trace trace;
    player hand;
    way_outcome result;

    contender(const way_kind &k, const allocation_trace &t, const pass_settings &s)
        : trace(s.where.gpu && k.most_pairs_gpu ? shortened(t, k.most_pairs_gpu) : t), hand(trace, s.use)
    {
        result.kind = &k;
        result.left_out = why_left_out(k, s.where.gpu);
        result.pairs = trace.pairs();
        result.live_bytes = peak_live_bytes(trace);
        if (trace.pairs() < t.pairs())
            result.note = "the first " + std::to_string(trace.pairs()) + " pairs, as each call is one of the driver";
    }
    contender(const contender &) = delete; /* the hand refers to the trace */
    contender &operator=(const contender &) = delete;

    void repetition(const pass_settings &s)
    {
        if (!result.left_out.empty() || !result.wrong.empty())
            return;
        const std::unique_ptr<way> w = result.kind->make(s.where);
        if (!pass(*w, PASS_TIMED))
            return;
        result.cold_us.push_back(hand.calls_us);
        const auto begin = clock_type::now();
        bool ok = pass(*w, PASS_CHECK);
        for (int n = 1; ok && n < WARM_PASSES && us_between(begin, clock_type::now()) < WARM_US; n++)
            ok = pass(*w, PASS_WARM);
        if (!ok || !pass(*w, PASS_TIMED))
            return;
        result.calls_us.push_back(hand.calls_us);
        result.total_us.push_back(hand.total_us);
        if (pass(*w, PASS_SINGLE))
            result.reserved_bytes = std::max(result.reserved_bytes, w->reserved_bytes());
    }

private:
    bool pass(way &w, pass_kind kind)
    {
        result.wrong = hand.play(w, kind);
        return result.wrong.empty();
    }
};

} // namespace

double clock_cost_us()
{
    static const double least = [] {
        double us = 1e9;
        for (int k = 0; k < 1000; k++) {
            const auto begin = clock_type::now();
            us = std::min(us, us_between(begin, clock_type::now()));
        }
        return us;
    }();
    return least;
}

double quantile_of(std::vector<double> &values, double share)
{
    if (values.empty())
        return 0;
    const size_t place = std::min(static_cast<size_t>(share * static_cast<double>(values.size())), values.size() - 1);
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(place), values.end());
    return values[place];
}

std::string why_left_out(const way_kind &k, bool gpu)
{
    if (gpu ? k.gpu : k.host)
        return k.lacking ? k.lacking() : "";
    return gpu ? "on the CPU only" : "needs a GPU";
}

std::vector<way_outcome> play(const allocation_trace &t, const std::vector<const way_kind *> &ways, const pass_settings &s)
{
    std::vector<std::unique_ptr<contender>> all;
    std::vector<way_outcome> results;

    for (const way_kind *k : ways)
        all.emplace_back(new contender(*k, t, s));
    for (int repetition = 0; repetition < s.repetitions && !bench_interrupted(); repetition++)
        for (size_t turn = 0; turn < all.size(); turn++) {
            /* Each repetition begins with another way, and every second one goes backwards. */
            const size_t place = repetition % 2 ? all.size() - 1 - turn : turn;
            all[(place + static_cast<size_t>(repetition)) % all.size()]->repetition(s);
            const double done = repetition + static_cast<double>(turn + 1) / static_cast<double>(all.size());
            bench_progress_part(done / s.repetitions, t.name.c_str());
        }
    for (const auto &c : all) {
        if (bench_interrupted() && c->result.calls_us.empty() && c->result.left_out.empty() && c->result.wrong.empty())
            c->result.left_out = "interrupted";
        c->result.malloc_p99_us = quantile_of(c->hand.malloc_us, 0.99);
        c->result.free_p99_us = quantile_of(c->hand.free_us, 0.99);
        results.push_back(std::move(c->result));
    }
    return results;
}

} // namespace bench

/*
 * Owns the planning of runs on streams. Called by runners when they prepare, outside timed regions. Makes no CUDA call,
 * so that it is tested without a GPU.
 */
#include "plan.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace bench {

std::vector<size_t> stretches(const std::vector<op> &ops)
{
    std::vector<size_t> ends;
    for (size_t k = 0; k < ops.size(); k++)
        if (ops[k].kind == OP_READ)
            ends.push_back(k + 1);
    ends.push_back(ops.size());
    return ends;
}

namespace {

/* Paths below a read count as longer than any other in its stretch: the whole rest of the program waits for it. */
const double READ_RANK = 1e9, LATER_RANK_MOST = 1e8;
const uint32_t NO_OP = UINT32_MAX;

/* What is known to be complete: per stream the number of ops from its start. */
typedef std::vector<uint32_t> clocks;

void merge(clocks &into, const uint32_t *from)
{
    for (size_t s = 0; s < into.size(); s++)
        into[s] = std::max(into[s], from[s]);
}

class planner {
public:
    planner(const std::vector<op> &ops, const dag &d, int streams, int threads, const plan_costs &costs)
        : ops_(ops), dag_(d), costs_(costs), lanes_(static_cast<size_t>(streams) + 1), place_(ops.size()),
          down_(ops.size()), rank_(ops.size()), stream_clock_(lanes_, clocks(lanes_)), host_clock_(lanes_),
          op_clock_(ops.size() * lanes_), free_us_(lanes_), tail_(lanes_, NO_OP), length_(lanes_),
          host_us_(static_cast<size_t>(threads))
    {
        plan_.streams = streams;
        plan_.threads = threads;
        for (uint32_t k = 0; k < ops.size(); k++)
            for (uint32_t u : d.up[k]) {
                down_[u].push_back(k);
                place_[u].missed++;
            }
    }

    plan run()
    {
        const std::vector<size_t> ends = stretches(ops_);
        size_t first = 0;

        number_stretches(ends);
        find_ranks();
        for (size_t end : ends) {
            schedule(first, end);
            plan_.stretch_end.push_back(plan_.steps.size());
            if (end > first && ops_[end - 1].kind == OP_READ)
                host_waits_for(static_cast<uint32_t>(end - 1));
            first = end;
        }
        return std::move(plan_);
    }

private:
    struct place {
        uint32_t stretch = 0, step = 0, position = 0; /* position: from 1, in its stream */
        uint16_t stream = 0;
        double ready_us = 0, end_us = 0; /* when its inputs are there; when it is over */
        uint32_t missing = 0;            /* upstream ops of its stretch that are not issued */
        uint32_t missed = 0;             /* downstream ops that are not issued */
    };
    /* Ops to choose from: by when they can start, or by the path below them. */
    typedef std::pair<double, uint32_t> entry;

    double us(uint32_t k) const { return ops_[k].us > 0 ? static_cast<double>(ops_[k].us) : costs_.op_us; }

    void number_stretches(const std::vector<size_t> &ends)
    {
        uint32_t stretch = 0;
        for (size_t k = 0; k < ops_.size(); k++) {
            if (k == ends[stretch])
                stretch++;
            place_[k].stretch = stretch;
        }
    }

    void find_ranks()
    {
        for (size_t k = ops_.size(); k-- > 0;) {
            double below = ops_[k].kind == OP_READ ? READ_RANK : 0;
            for (uint32_t d : down_[k]) {
                const bool later = place_[d].stretch != place_[k].stretch;
                below = std::max(below, (later ? std::min(rank_[d], LATER_RANK_MOST) : rank_[d]) + costs_.other_us);
            }
            rank_[k] = below + us(static_cast<uint32_t>(k));
        }
    }

    void schedule(size_t first, size_t end)
    {
        for (size_t k = first; k < end; k++) {
            for (uint32_t u : dag_.up[k])
                if (u >= first)
                    place_[k].missing++;
                else
                    arrive(place_[k], u);
            if (place_[k].missing == 0)
                waiting_.push({place_[k].ready_us, static_cast<uint32_t>(k)});
        }
        for (size_t left = end - first; left > 0; left--)
            issue(next());
    }

    void arrive(place &p, uint32_t up) { p.ready_us = std::max(p.ready_us, place_[up].end_us + costs_.other_us); }

    uint32_t next()
    {
        const double now = *std::min_element(host_us_.begin(), host_us_.end()) + costs_.launch_us;
        while (!waiting_.empty() && (startable_.empty() || waiting_.top().first <= now)) {
            const uint32_t k = waiting_.top().second;
            if (startable_.empty() && waiting_.top().first > now) {
                waiting_.pop();
                return k;
            }
            waiting_.pop();
            startable_.push({rank_[k], ~k});
        }
        const uint32_t k = ~startable_.top().second; /* the earlier one in program order where ranks are equal */
        startable_.pop();
        return k;
    }

    /* A read is issued by the program's own thread, which waits for it. */
    bool may_take(uint32_t k, size_t s) const
    {
        return ops_[k].kind != OP_READ || plan_.thread_of(static_cast<int>(s)) == 0;
    }

    size_t choose_stream(uint32_t k) const
    {
        size_t best = lanes_;
        for (uint32_t u : dag_.up[k]) {
            const size_t s = place_[u].stream;
            if (tail_[s] == u && may_take(k, s) && s + 1 < lanes_ && (best == lanes_ || free_us_[s] > free_us_[best]))
                best = s;
        }
        if (best < lanes_)
            return best;
        if (ops_[k].kind == OP_READ)
            return lanes_ - 1;
        best = 0;
        for (size_t s = 1; s + 1 < lanes_; s++)
            if (start_us(s) < start_us(best) || (start_us(s) <= start_us(best) && awaited(best) && !awaited(s)))
                best = s;
        return best;
    }

    /* Whether an op is still to come that could stay behind the last one of a stream: leave that to it. */
    bool awaited(size_t s) const { return tail_[s] != NO_OP && place_[tail_[s]].missed > 0; }

    double start_us(size_t s) const
    {
        const double host = host_us_[static_cast<size_t>(plan_.thread_of(static_cast<int>(s)))] + costs_.launch_us;
        return std::max(host, tail_[s] == NO_OP ? 0 : free_us_[s] + costs_.same_us);
    }

    void issue(uint32_t k)
    {
        const size_t s = choose_stream(k);
        place &p = place_[k];
        plan_step step = {k, static_cast<uint16_t>(s), ops_[k].kind == OP_READ,
                          static_cast<uint32_t>(plan_.waits.size()), 0};

        p.stream = static_cast<uint16_t>(s);
        p.step = static_cast<uint32_t>(plan_.steps.size());
        p.position = ++length_[s];
        send_waits(k, s);
        step.wait_count = static_cast<uint32_t>(plan_.waits.size()) - step.first_wait;
        plan_.steps.push_back(step);

        double &host = host_us_[static_cast<size_t>(plan_.thread_of(static_cast<int>(s)))];
        p.end_us = std::max(start_us(s), p.ready_us) + us(k);
        host += costs_.launch_us + costs_.event_us * step.wait_count;
        free_us_[s] = p.end_us;
        tail_[s] = k;
        plan_.end_us = std::max(plan_.end_us, p.end_us);
        release(k);
    }

    void release(uint32_t k)
    {
        for (uint32_t u : dag_.up[k])
            place_[u].missed--;
        for (uint32_t d : down_[k]) {
            if (place_[d].stretch != place_[k].stretch)
                continue;
            arrive(place_[d], k);
            if (--place_[d].missing == 0)
                waiting_.push({place_[d].ready_us, d});
        }
    }

    /*
     * Latest issued first: an op can be behind ops that were issued earlier only, so a wait that was sent is never implied
     * by one that is sent after it.
     */
    void send_waits(uint32_t k, size_t s)
    {
        std::vector<uint32_t> up = dag_.up[k];
        clocks &now = stream_clock_[s];

        std::sort(up.begin(), up.end(), [this](uint32_t a, uint32_t b) { return place_[a].step > place_[b].step; });
        merge(now, host_clock_.data());
        for (uint32_t u : up) {
            const place &p = place_[u];
            if (now[p.stream] >= p.position)
                continue;
            plan_.waits.push_back(u);
            plan_.steps[p.step].record = true;
            merge(now, &op_clock_[u * lanes_]);
        }
        now[s] = place_[k].position;
        std::copy(now.begin(), now.end(), op_clock_.begin() + static_cast<std::ptrdiff_t>(k * lanes_));
    }

    void host_waits_for(uint32_t read)
    {
        const double done = place_[read].end_us + costs_.other_us;
        merge(host_clock_, &op_clock_[read * lanes_]);
        for (double &h : host_us_)
            h = std::max(h, done);
    }

    const std::vector<op> &ops_;
    const dag &dag_;
    const plan_costs &costs_;
    const size_t lanes_; /* streams, and the one for reads */
    std::vector<place> place_;
    std::vector<std::vector<uint32_t>> down_;
    std::vector<double> rank_;
    std::vector<clocks> stream_clock_; /* what is complete when the next op of a stream runs */
    clocks host_clock_;                /* ... when the host issues the next op */
    std::vector<uint32_t> op_clock_;   /* ... when an op is over; a row per op */
    std::vector<double> free_us_;
    std::vector<uint32_t> tail_, length_;
    std::vector<double> host_us_;
    std::priority_queue<entry, std::vector<entry>, std::greater<entry>> waiting_;
    std::priority_queue<entry> startable_;
    plan plan_;
};

} // namespace

plan make_plan(const std::vector<op> &ops, const dag &d, int streams, int threads, const plan_costs &costs)
{
    return planner(ops, d, streams, threads, costs).run();
}

} // namespace bench

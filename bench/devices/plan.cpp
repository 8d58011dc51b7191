/*
 * Makes plans: a walk through the task's ops that keeps, for each piece of each block, which places hold it and which steps
 * made and use it there. Called before runs.
 */
#include "plan.h"

#include <algorithm>
#include <map>

namespace bench {

namespace {

enum { STREAMS_OF_A_DEVICE = 8, NOBODY = -1 };

/* What one place has of a piece of a block; the host is the place behind the devices. */
struct copy_of_piece {
    bool valid = false;
    long made = NOBODY;        /* the step that made it */
    std::vector<size_t> users; /* steps that read it since */
};

struct piece {
    size_t from, to;
    std::vector<copy_of_piece> at;
};

class planner {
public:
    planner(const task &t, unsigned devices) : t_(t), devices_(devices)
    {
        p_.devices = devices;
        p_.streams = devices * STREAMS_OF_A_DEVICE;
        behind_.assign(p_.streams, std::vector<long>(p_.streams, NOBODY));
        tail_.assign(p_.streams, NOBODY);
        turn_.assign(devices, 0);
        cut_blocks();
    }

    plan make(const assignment &where)
    {
        for (size_t k = 0; k < t_.kernels(); k++) {
            add_op(k, where(k, devices_));
            for (size_t b = 0; b < t_.blocks().size(); b++)
                if (t_.blocks()[b].out && t_.blocks()[b].last == k)
                    copy_out(b);
        }
        return std::move(p_);
    }

private:
    /* No op names a part of a piece. */
    void cut_blocks()
    {
        for (size_t b = 0; b < t_.blocks().size(); b++) {
            std::vector<size_t> cuts = {0, t_.blocks()[b].bytes};
            for (size_t k = 0; k < t_.kernels(); k++)
                for (const task_part &part : t_.parts(k))
                    if (part.block == b) {
                        cuts.push_back(part.from);
                        cuts.push_back(part.to);
                    }
            std::sort(cuts.begin(), cuts.end());
            cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
            pieces_.emplace_back();
            for (size_t i = 0; i + 1 < cuts.size(); i++) {
                pieces_.back().push_back({cuts[i], cuts[i + 1], std::vector<copy_of_piece>(devices_ + 1)});
                pieces_.back().back().at[devices_].valid = t_.blocks()[b].in || t_.blocks()[b].zero;
            }
        }
    }

    template <class F> void each_piece(size_t block, size_t from, size_t to, F body)
    {
        for (piece &q : pieces_[block])
            if (q.from >= from && q.to <= to)
                body(q);
    }

    /* Behind the last step of a stream that it waits for, where nothing else came; else the device's next stream. */
    unsigned stream_for(unsigned device, const std::vector<size_t> &behind)
    {
        for (size_t step : behind)
            if (p_.steps[step].device == device && tail_[p_.steps[step].stream] == static_cast<long>(step))
                return p_.steps[step].stream;
        return device + devices_ * (turn_[device]++ % STREAMS_OF_A_DEVICE);
    }

    /* What a stream waits for already, by itself or by what it waited for, it does not wait for again. */
    size_t add(plan_step step, std::vector<size_t> behind)
    {
        std::sort(behind.rbegin(), behind.rend()); /* the latest first: they imply others */
        step.stream = stream_for(step.device, behind);
        std::vector<long> &clock = behind_[step.stream];
        const size_t number = p_.steps.size();
        for (size_t other : behind) {
            const unsigned from = p_.steps[other].stream;
            if (from == step.stream || clock[from] >= static_cast<long>(other))
                continue;
            step.waits.push_back(other);
            p_.steps[other].awaited = true;
            for (unsigned s = 0; s < p_.streams; s++)
                clock[s] = std::max(clock[s], clocks_[other][s]);
            clock[from] = std::max(clock[from], static_cast<long>(other));
        }
        clock[step.stream] = static_cast<long>(number);
        clocks_.push_back(clock);
        tail_[step.stream] = static_cast<long>(number);
        p_.steps.push_back(std::move(step));
        return number;
    }

    /* From a device where there is one, else from the host. */
    int source_of(const piece &q) const
    {
        for (unsigned d = 0; d < devices_; d++)
            if (q.at[d].valid)
                return static_cast<int>(d);
        return q.at[devices_].valid ? -1 : -2;
    }

    unsigned place_of(int device) const { return device < 0 ? devices_ : static_cast<unsigned>(device); }

    void copy(size_t block, size_t first, size_t end, int from, int to)
    {
        std::vector<size_t> behind;
        each_piece(block, first, end, [&](piece &q) {
            after(behind, q.at[place_of(from)].made);
            after(behind, q.at[place_of(to)].made);
            behind.insert(behind.end(), q.at[place_of(to)].users.begin(), q.at[place_of(to)].users.end());
        });
        const unsigned device = place_of(to < 0 ? from : to);
        const size_t number =
            add({plan_step::COPY, device, 0, {}, false, 0, block, first, end - first, from, to}, behind);
        p_.copied += end - first;
        each_piece(block, first, end, [&](piece &q) {
            q.at[place_of(from)].users.push_back(number);
            q.at[place_of(to)] = {true, static_cast<long>(number), {}};
        });
    }

    static void after(std::vector<size_t> &behind, long step)
    {
        if (step != NOBODY)
            behind.push_back(static_cast<size_t>(step));
    }

    /* Pieces beside each other that come from one place come in one copy. */
    void bring(size_t block, size_t from, size_t to, int target)
    {
        size_t first = 0, end = 0;
        int source = -2;
        for (const piece &q : std::vector<piece>(pieces_[block])) {
            if (q.from < from || q.to > to)
                continue;
            const int here = q.at[place_of(target)].valid ? -2 : source_of(q);
            if (here == source && q.from == end) {
                end = q.to;
                continue;
            }
            if (source != -2)
                copy(block, first, end, source, target);
            first = q.from;
            end = q.to;
            source = here;
        }
        if (source != -2)
            copy(block, first, end, source, target);
    }

    void add_op(size_t k, unsigned device)
    {
        const std::vector<task_part> parts = t_.parts(k);
        std::vector<size_t> behind;
        for (const task_part &part : parts)
            if (part.reads)
                bring(part.block, part.from, part.to, static_cast<int>(device));
        for (const task_part &part : parts)
            each_piece(part.block, part.from, part.to, [&](const piece &q) {
                after(behind, q.at[device].made);
                if (part.writes)
                    behind.insert(behind.end(), q.at[device].users.begin(), q.at[device].users.end());
            });
        const bool read = t_.is_read(k);
        const size_t number = add({read ? plan_step::READ : plan_step::OP, device, 0, {}, false, k, 0, 0, 0, 0, 0}, behind);
        for (const task_part &part : parts)
            each_piece(part.block, part.from, part.to, [&](piece &q) {
                if (!part.writes) {
                    q.at[device].users.push_back(number);
                    return;
                }
                for (copy_of_piece &c : q.at)
                    c.valid = false;
                q.at[device].valid = true;
                q.at[device].made = static_cast<long>(number);
                q.at[device].users.clear();
            });
    }

    void copy_out(size_t block)
    {
        for (piece &q : pieces_[block])
            q.at[devices_] = copy_of_piece{}; /* another place than the input's */
        bring(block, 0, t_.blocks()[block].bytes, -1);
    }

    const task &t_;
    const unsigned devices_;
    plan p_;
    std::vector<std::vector<piece>> pieces_;       /* of each block */
    std::vector<std::vector<long>> behind_;        /* of each stream: the latest step of each other that it is behind */
    std::vector<std::vector<long>> clocks_;        /* the same of each step, when it was added */
    std::vector<long> tail_;                       /* last step of each stream */
    std::vector<unsigned> turn_;
};

} // namespace

plan make_plan(const task &t, unsigned devices, const assignment &where)
{
    return planner(t, devices).make(where);
}

} // namespace bench

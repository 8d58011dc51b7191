/*
 * Owns the independent look at dependencies: what a run's footprints say must be ordered. Called outside timed regions,
 * for planners, bounds and the tests of oracles. Simple on purpose and shares no code with the library: every byte that
 * an op touches belongs to one interval of a map, which knows its last writer and the readers since.
 */
#include "dag.h"

#include <algorithm>
#include <map>

#include "memory.h"

namespace bench {

namespace {

struct history {
    uint64_t end; /* first byte behind the interval */
    int64_t writer;
    std::vector<uint32_t> readers;
};

/* Disjoint intervals by their first byte. Tokens have a map of their own: their keys are no addresses. */
class bytes_map {
public:
    void touch(uint64_t first, uint64_t bytes, bool write, uint32_t op, std::vector<uint32_t> &up)
    {
        const uint64_t end = first + bytes;
        split(first);
        split(end);
        uint64_t place = first;
        for (auto it = map_.lower_bound(first); place < end;) {
            if (it == map_.end() || it->first >= end) {
                insert(place, end, write, op);
                break;
            }
            if (it->first > place)
                insert(place, it->first, write, op);
            meet(it->second, write, op, up);
            place = it->second.end;
            ++it;
        }
    }

    void meet_all(bool write, uint32_t op, std::vector<uint32_t> &up)
    {
        for (auto &entry : map_)
            meet(entry.second, write, op, up);
    }

private:
    void split(uint64_t at)
    {
        auto it = map_.upper_bound(at);
        if (it == map_.begin())
            return;
        --it;
        if (it->first == at || it->second.end <= at)
            return;
        history tail = it->second;
        it->second.end = at;
        map_.emplace(at, std::move(tail));
    }

    void insert(uint64_t first, uint64_t end, bool write, uint32_t op)
    {
        history h = {end, -1, {}};
        if (write)
            h.writer = op;
        else
            h.readers.push_back(op);
        map_.emplace(first, std::move(h));
    }

    static void meet(history &h, bool write, uint32_t op, std::vector<uint32_t> &up)
    {
        if (h.writer >= 0 && h.writer != static_cast<int64_t>(op))
            up.push_back(static_cast<uint32_t>(h.writer));
        if (!write) {
            if (h.readers.empty() || h.readers.back() != op)
                h.readers.push_back(op);
            return;
        }
        for (uint32_t r : h.readers)
            if (r != op)
                up.push_back(r);
        h.readers.clear();
        h.writer = op;
    }

    std::map<uint64_t, history> map_;
};

/* Finds direct conflicts, op by op in program order. */
class finder {
public:
    void add(uint32_t op, const acs_segment *segments, uint32_t count, std::vector<uint32_t> &up)
    {
        /* Reads first: an op does not wait for itself where it reads what it also writes. */
        for (int write = 0; write < 2; write++)
            for (uint32_t k = 0; k < count; k++)
                if ((segments[k].access != ACS_READ) == (write == 1))
                    touch(op, segments[k], write == 1, up);
        std::sort(up.begin(), up.end());
        up.erase(std::unique(up.begin(), up.end()), up.end());
    }

private:
    void touch(uint32_t op, const acs_segment &s, bool write, std::vector<uint32_t> &up)
    {
        if (s.extent == ACS_EXTENT_ALL) {
            everything(op, write, up);
            return;
        }
        if (s.extent == ACS_EXTENT_TOKEN) {
            tokens_.touch(s.base, 1, write, op, up);
        } else {
            for (uint64_t row = 0; row < s.rows && s.row_bytes > 0; row++)
                bytes_.touch(s.base + row * s.pitch_bytes, s.row_bytes, write, op, up);
        }
        all_reader_or_writer(write, op, up);
        (write ? touched_writers_ : touched_readers_).push_back(op);
    }

    /* An op that touches all memory follows all that touched anything since the last such op, and precedes the rest. */
    void everything(uint32_t op, bool write, std::vector<uint32_t> &up)
    {
        up.insert(up.end(), touched_writers_.begin(), touched_writers_.end());
        if (write)
            up.insert(up.end(), touched_readers_.begin(), touched_readers_.end());
        all_reader_or_writer(write, op, up);
        (write ? all_writers_ : all_readers_).push_back(op);
        up.erase(std::remove(up.begin(), up.end(), op), up.end());
    }

    void all_reader_or_writer(bool write, uint32_t op, std::vector<uint32_t> &up)
    {
        for (uint32_t w : all_writers_)
            if (w != op)
                up.push_back(w);
        if (write)
            for (uint32_t r : all_readers_)
                if (r != op)
                    up.push_back(r);
    }

    bytes_map bytes_, tokens_;
    std::vector<uint32_t> touched_writers_, touched_readers_, all_writers_, all_readers_;
};

/* One bit per op: which ones a given op is behind. */
typedef std::vector<uint64_t> bits;
const size_t CLOSURE_MOST = 20000;

bool has(const bits &b, uint32_t k)
{
    return (b[k / 64] >> (k % 64)) & 1;
}

/* Drops upstream ops that another one is behind already; `behind[k]` becomes all that op k is behind. */
void reduce(dag &d, std::vector<bits> &behind)
{
    const size_t n = d.up.size(), words = (n + 63) / 64;

    behind.assign(n, bits());
    for (size_t k = 0; k < n; k++) {
        bits &mine = behind[k];
        std::vector<uint32_t> kept;
        mine.assign(words, 0);
        /* Latest first: an op that implies another one comes later in program order. */
        for (size_t i = d.up[k].size(); i-- > 0;) {
            const uint32_t u = d.up[k][i];
            if (has(mine, u))
                continue;
            kept.push_back(u);
            mine[u / 64] |= uint64_t(1) << (u % 64);
            for (size_t w = 0; w <= u / 64; w++)
                mine[w] |= behind[u][w];
        }
        std::reverse(kept.begin(), kept.end());
        d.up[k] = std::move(kept);
    }
}

/* Kuhn's augmenting paths over the closure, without recursion deeper than a path. */
class matching {
public:
    explicit matching(const std::vector<bits> &behind)
        : behind_(behind), match_(behind.size(), -1), seen_(behind.size(), 0)
    {
    }

    size_t size()
    {
        size_t pairs = 0;
        for (size_t k = 0; k < behind_.size(); k++) {
            stamp_++;
            pairs += augment(static_cast<uint32_t>(k)) ? 1 : 0;
        }
        return pairs;
    }

private:
    bool augment(uint32_t k)
    {
        for (size_t w = 0; w < behind_[k].size(); w++)
            for (uint64_t left = behind_[k][w]; left; left &= left - 1) {
                const uint32_t u = static_cast<uint32_t>(w * 64) + static_cast<uint32_t>(__builtin_ctzll(left));
                if (seen_[u] == stamp_)
                    continue;
                seen_[u] = stamp_;
                if (match_[u] < 0 || augment(static_cast<uint32_t>(match_[u]))) {
                    match_[u] = static_cast<int32_t>(k);
                    return true;
                }
            }
        return false;
    }

    const std::vector<bits> &behind_;
    std::vector<int32_t> match_;
    std::vector<uint32_t> seen_;
    uint32_t stamp_ = 0;
};

uint32_t longest(const dag &d)
{
    std::vector<uint32_t> level(d.up.size(), 1);
    uint32_t most = 0;
    for (size_t k = 0; k < d.up.size(); k++) {
        for (uint32_t u : d.up[k])
            level[k] = std::max(level[k], level[u] + 1);
        most = std::max(most, level[k]);
    }
    return most;
}

} // namespace

dag find_dag(const trace &t)
{
    dag d;
    finder f;
    std::vector<bits> behind;

    d.up.resize(t.ops.size());
    for (size_t k = 0; k < t.ops.size(); k++)
        f.add(static_cast<uint32_t>(k), t.ops[k].segments, t.ops[k].segment_count, d.up[k]);
    if (t.ops.size() <= CLOSURE_MOST)
        reduce(d, behind);
    for (const auto &up : d.up)
        d.edges += up.size();
    d.depth = longest(d);
    return d;
}

uint32_t dag_width(const dag &d)
{
    dag copy = d;
    std::vector<bits> behind;

    require(d.up.size() <= CLOSURE_MOST, "too many ops to compute the width of");
    reduce(copy, behind);
    return static_cast<uint32_t>(d.up.size() - matching(behind).size());
}

double dag_critical_us(const dag &d, const std::vector<double> &us, double hop_us)
{
    std::vector<double> end(d.up.size(), 0);
    double last = 0;
    for (size_t k = 0; k < d.up.size(); k++) {
        double start = 0;
        for (uint32_t u : d.up[k])
            start = std::max(start, end[u] + hop_us);
        end[k] = start + us[k];
        last = std::max(last, end[k]);
    }
    return last;
}

std::vector<uint32_t> order_without(const dag &d, uint32_t from, uint32_t to)
{
    /* Everything that `to` still needs, then `to`, then the rest: `from` is among the rest, for the edge is essential. */
    std::vector<char> needed(d.up.size(), 0);
    std::vector<uint32_t> order;

    needed[to] = 1;
    for (size_t k = to + 1; k-- > 0;)
        if (needed[k])
            for (uint32_t u : d.up[k])
                if (k != to || u != from)
                    needed[u] = 1;
    require(!needed[from], "order_without: the edge is implied by others");
    for (uint32_t k = 0; k < d.up.size(); k++)
        if (needed[k])
            order.push_back(k);
    for (uint32_t k = 0; k < d.up.size(); k++)
        if (!needed[k])
            order.push_back(k);
    return order;
}

} // namespace bench

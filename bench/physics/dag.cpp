/*
 * Owns the comparison of footprints with one another. Called by drivers that build graphs, once for each sequence of
 * footprints that they see, and for the bound that tables print. Shares no code with ACS: it is another opinion.
 */
#include "dag.h"

#include <algorithm>

namespace {

/* Bytes low .. high - 1. */
struct bytes {
    uint64_t low, high;
    bool write;
};

bytes bytes_of(const void *p, size_t count, bool write)
{
    const uint64_t low = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(p));
    return {low, low + count, write};
}

std::vector<bytes> accesses(const op &o)
{
    std::vector<bytes> found;

    if (!o.kernel) {
        found.push_back(bytes_of(o.source, o.bytes, false));
        found.push_back(bytes_of(o.target, o.bytes, true));
    }
    for (uint32_t k = 0; k < o.segments; k++) {
        const acs_segment &s = o.segment[k];
        found.push_back({s.base, s.base + s.row_bytes, (s.access & ACS_WRITE) != 0});
    }
    return found;
}

bool conflict(const std::vector<bytes> &a, const std::vector<bytes> &b)
{
    for (const bytes &x : a)
        for (const bytes &y : b)
            if ((x.write || y.write) && x.low < y.high && y.low < x.high)
                return true;
    return false;
}

} // namespace

dag dag_of(const std::vector<op> &ops)
{
    const size_t n = ops.size();
    std::vector<std::vector<bytes>> touched;
    std::vector<std::vector<bool>> behind(n, std::vector<bool>(n, false)); /* [op][every op that it comes after] */
    std::vector<int> level(n, 1);
    dag d = {std::vector<std::vector<int>>(n), 0, 0, HASH_START};

    for (const op &o : ops)
        touched.push_back(accesses(o));
    for (size_t i = 0; i < n; i++) {
        /* Backwards: whatever an edge implies is known before it is looked at. */
        for (size_t j = i; j-- > 0;) {
            if (behind[i][j] || !conflict(touched[j], touched[i]))
                continue;
            d.after[i].push_back(static_cast<int>(j));
            for (size_t k = 0; k < j; k++)
                behind[i][k] = behind[i][k] || behind[j][k];
            behind[i][j] = true;
            level[i] = std::max(level[i], level[j] + 1);
        }
        d.edges += d.after[i].size();
        d.depth = std::max(d.depth, level[i]);
        d.shape = hash_add(d.shape, reinterpret_cast<uintptr_t>(ops[i].kernel));
        for (const int j : d.after[i])
            d.shape = hash_add(d.shape, i * n + static_cast<size_t>(j));
    }
    return d;
}

uint64_t dag_key(const std::vector<op> &ops)
{
    uint64_t key = HASH_START;

    for (const op &o : ops) {
        key = hash_add(key, reinterpret_cast<uintptr_t>(o.kernel));
        key = hash_add(key, o.kernel ? o.segments : reinterpret_cast<uintptr_t>(o.source));
        for (uint32_t k = 0; k < o.segments; k++)
            key = hash_add(key, o.segment[k].base ^ o.segment[k].row_bytes << 40 ^
                                    static_cast<uint64_t>(o.segment[k].access) << 62);
    }
    return key;
}

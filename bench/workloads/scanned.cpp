/*
 * Finds the footprints (scanned.h) in the header that acs-scan makes when this is built. On the CPU a kernel has no name
 * that a compiler gave it, so it is looked up by its own: acs_dual.hpp calls the kernel of `name` for the GPU `name_gpu`.
 */
#include "scanned.h"

#include <algorithm>
#include <map>
#include <string>

#include "workloads_footprints.h"

namespace bench {

namespace {

/* Bytes, by where runs begin and end; they are apart. */
class byte_set {
public:
    void add(uint64_t first, uint64_t end)
    {
        auto at = runs_.upper_bound(first);
        if (at != runs_.begin() && std::prev(at)->second >= first)
            at = std::prev(at);
        while (at != runs_.end() && at->first <= end) {
            first = std::min(first, at->first);
            end = std::max(end, at->second);
            at = runs_.erase(at);
        }
        runs_[first] = end;
    }

    bool operator==(const byte_set &other) const { return runs_ == other.runs_; }

    bool holds(const byte_set &other) const
    {
        return std::all_of(other.runs_.begin(), other.runs_.end(), [this](const std::pair<const uint64_t, uint64_t> &run) {
            auto at = runs_.upper_bound(run.first);
            return at != runs_.begin() && std::prev(at)->second >= run.second;
        });
    }

private:
    std::map<uint64_t, uint64_t> runs_;
};

struct named_bytes {
    byte_set touched, written;
    bool whole = false;

    void add(const acs_segment &s)
    {
        if (s.extent != ACS_EXTENT_BYTES || s.row_bytes == ACS_WHOLE_AT)
            whole = true;
        for (uint64_t row = 0; !whole && s.row_bytes && row < s.rows; row++) {
            const uint64_t first = s.base + row * s.pitch_bytes;
            touched.add(first, first + s.row_bytes);
            if (s.access != ACS_READ)
                written.add(first, first + s.row_bytes);
        }
    }
};

named_bytes scanned_bytes(const op &o, acs_footprint footprint)
{
    std::vector<acs_segment> list(256);
    void *const args[1] = {const_cast<void *>(o.args)};
    acs_footprint_input in = {};
    named_bytes named;
    in.name = o.kernel->code.name;
    in.grid[0] = o.grid;
    in.block[0] = o.block;
    in.grid[1] = in.grid[2] = in.block[1] = in.block[2] = 1;
    in.args = args;
    in.arg_bytes = &o.arg_bytes;
    in.arg_count = 1;
    list.resize(std::min<size_t>(footprint(&in, list.data(), list.size()), list.size()));
    for (const acs_segment &s : list)
        named.add(s);
    return named;
}

} // namespace

acs_footprint scanned_footprint(const char *name)
{
    const std::string gpu = std::string(name) + "_gpu", mangled = std::to_string(gpu.size()) + gpu;
    for (const acs_scan_entry *e = acs_scan_entries; e->name; e++)
        if (std::string(e->name).find(mangled) != std::string::npos)
            return e->footprint;
    return nullptr;
}

scanned_launches compare_scanned(const std::vector<op> &ops)
{
    scanned_launches counts;
    for (const op &o : ops) {
        const acs_footprint footprint = o.kind == OP_KERNEL ? scanned_footprint(o.kernel->code.name) : nullptr;
        if (!footprint)
            continue;
        named_bytes hand;
        for (uint32_t i = 0; i < o.segment_count; i++)
            hand.add(o.segments[i]);
        const named_bytes found = scanned_bytes(o, footprint);
        if (found.whole)
            counts.whole++;
        else if (found.touched == hand.touched && found.written == hand.written)
            counts.same++;
        else if (found.touched.holds(hand.touched) && found.written.holds(hand.written))
            counts.more++;
        else
            counts.less++;
    }
    return counts;
}

} // namespace bench

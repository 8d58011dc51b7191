/*
 * Owns the judgement whether a run's footprints are whole objects. Called when OpenMP's and StarPU's runners prepare.
 */
#include "objects.h"

#include <algorithm>
#include <map>

namespace bench {

/* Do any two segments with different first bytes share a byte? */
static bool objects_overlap(const std::map<uint64_t, uint64_t> &end)
{
    uint64_t last = 0;
    for (const auto &object : end) {
        if (object.first < last)
            return true;
        last = object.second;
    }
    return false;
}

std::string why_not_objects(const trace &t, uint32_t most)
{
    std::map<uint64_t, uint64_t> end;
    for (const op &o : t.ops) {
        if (o.kind != OP_KERNEL)
            return "runs kernels only";
        if (o.segment_count > most)
            return "an op has too many segments";
        for (uint32_t k = 0; k < o.segment_count; k++) {
            const acs_segment &s = o.segments[k];
            if (s.extent != ACS_EXTENT_BYTES || s.rows != 1)
                return "footprints are not whole objects";
            end[s.base] = std::max(end[s.base], s.base + s.row_bytes);
        }
    }
    return objects_overlap(end) ? "footprints overlap in part" : "";
}

} // namespace bench

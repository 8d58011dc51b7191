/*
 * Owns what can be said of a trace without playing it. Called by the program before anything is measured, and by tests.
 */
#include "allocation_trace.h"

#include <algorithm>

namespace bench {

uint32_t allocation_trace::add_malloc(uint64_t block_bytes)
{
    const uint32_t block = static_cast<uint32_t>(bytes.size());
    bytes.push_back(block_bytes);
    events.push_back({true, block});
    return block;
}

uint64_t peak_live_bytes(const allocation_trace &t)
{
    uint64_t live = 0, peak = 0;
    for (const allocation_event &e : t.events) {
        live = e.is_malloc ? live + t.bytes[e.block] : live - t.bytes[e.block];
        peak = std::max(peak, live);
    }
    return peak;
}

allocation_trace shortened(const allocation_trace &t, size_t pairs)
{
    if (pairs >= t.pairs())
        return t;
    allocation_trace part;
    part.name = t.name;
    part.note = t.note;
    std::vector<bool> live(pairs);
    for (const allocation_event &e : t.events) {
        if (e.is_malloc && part.pairs() == pairs)
            break;
        if (e.is_malloc)
            part.add_malloc(t.bytes[e.block]);
        else
            part.add_free(e.block);
        live[e.block] = e.is_malloc;
    }
    for (uint32_t block = 0; block < pairs; block++)
        if (live[block])
            part.add_free(block);
    return part;
}

} // namespace bench

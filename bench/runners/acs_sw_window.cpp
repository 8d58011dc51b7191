/*
 * Owns the window and the dependency check of the ACS-SW rival. Called by the runner's threads under its mutex. Issues
 * nothing; shares no code with the library that it is compared with.
 */
#include "acs_sw_window.h"

namespace bench {

/* Whether two sets of equal rows have a byte in common: both are walked in the order of their addresses. */
static bool rows_meet(const acs_segment &a, const acs_segment &b)
{
    uint64_t i = 0, j = 0;

    if (a.row_bytes == 0 || b.row_bytes == 0)
        return false;
    while (i < a.rows && j < b.rows) {
        const uint64_t x = a.base + i * a.pitch_bytes, y = b.base + j * b.pitch_bytes;
        if (x + a.row_bytes <= y)
            i++;
        else if (y + b.row_bytes <= x)
            j++;
        else
            return true;
    }
    return false;
}

static bool touches(const acs_segment &s)
{
    return s.extent != ACS_EXTENT_BYTES || (s.row_bytes > 0 && s.rows > 0);
}

static bool segments_conflict(const acs_segment &a, const acs_segment &b)
{
    if (a.access == ACS_READ && b.access == ACS_READ)
        return false;
    if (a.extent == ACS_EXTENT_ALL || b.extent == ACS_EXTENT_ALL)
        return touches(a) && touches(b);
    if (a.extent != b.extent)
        return false;
    return a.extent == ACS_EXTENT_TOKEN ? a.base == b.base : rows_meet(a, b);
}

bool conflicts(const op &a, const op &b)
{
    for (uint32_t i = 0; i < a.segment_count; i++)
        for (uint32_t j = 0; j < b.segment_count; j++)
            if (segments_conflict(a.segments[i], b.segments[j]))
                return true;
    return false;
}

void sw_window::insert(const op *o)
{
    int vacant = -1;
    uint32_t upstream = 0;

    for (int k = 0; k < SIZE; k++) {
        if (entries_[k].now == VACANT)
            vacant = vacant < 0 ? k : vacant;
        else if (conflicts(*entries_[k].o, *o))
            upstream |= uint32_t(1) << k;
    }
    entries_[vacant].o = o;
    entries_[vacant].upstream = upstream;
    entries_[vacant].now = WAITING;
    count_++;
}

int sw_window::take()
{
    for (int k = 0; k < SIZE; k++)
        if (entries_[k].now == WAITING && entries_[k].upstream == 0) {
            entries_[k].now = EXECUTING;
            return k;
        }
    return -1;
}

void sw_window::remove(int entry)
{
    entries_[entry].now = VACANT;
    count_--;
    for (slot_entry &e : entries_)
        e.upstream &= ~(uint32_t(1) << entry);
}

} // namespace bench

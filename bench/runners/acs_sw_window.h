/*
 * The scheduling window of ACS-SW as published (ACS, section IV-B): up to 32 ops, each with the list of those in the
 * window that it must follow, found by comparing its segments with those of every op in the window. Where the paper
 * compares a new kernel's writes alone, its reads are compared with earlier writes too; without that results are wrong.
 */
#ifndef BENCH_ACS_SW_WINDOW_H
#define BENCH_ACS_SW_WINDOW_H

#include <cstdint>

#include "op.h"

namespace bench {

/** Whether one op writes what the other touches. */
bool conflicts(const op &a, const op &b);

/* One thread at a time: the runner's mutex guards it. */
class sw_window {
public:
    enum { SIZE = 32 };

    bool full() const { return count_ == SIZE; }
    bool empty() const { return count_ == 0; }
    /** Takes the next op of the program into a vacant entry; there must be one. */
    void insert(const op *o);
    /** An op with no upstream op left, now executing: the first by entry. @return its entry, or -1. */
    int take();
    const op *at(int entry) const { return entries_[entry].o; }
    /** The op of an executing entry is complete: it leaves the window and all upstream lists. */
    void remove(int entry);

private:
    enum state : uint8_t { VACANT, WAITING, EXECUTING }; /* waiting with an empty list is what the paper calls ready */
    struct slot_entry {
        const op *o = nullptr;
        uint32_t upstream = 0; /* the list, as a set of entries */
        state now = VACANT;
    };
    slot_entry entries_[SIZE];
    int count_ = 0;
};

} // namespace bench

#endif

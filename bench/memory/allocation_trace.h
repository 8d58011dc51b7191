/*
 * A trace of allocations: in which order a program asks for blocks of device memory and gives them back. Made from a seed
 * (synthetic.cpp), or read from a log that was recorded (trace_file.cpp). The same trace is played by every allocator.
 */
#ifndef BENCH_ALLOCATION_TRACE_H
#define BENCH_ALLOCATION_TRACE_H

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/** One call: malloc of a block that was not there yet, or its free. */
struct allocation_event {
    bool is_malloc;
    uint32_t block; /* place in allocation_trace::bytes */
};

struct allocation_trace {
    std::string name;
    std::vector<uint64_t> bytes; /* of each block, in the order of their mallocs: a block is one malloc and one free */
    std::vector<allocation_event> events;
    std::string note; /* what a reader of the figures should know: "3 blocks were never freed"; may be empty */

    size_t pairs() const { return bytes.size(); }
    uint32_t add_malloc(uint64_t block_bytes);
    void add_free(uint32_t block) { events.push_back({false, block}); }
};

/** The most bytes that are live at once, as they were asked for. */
uint64_t peak_live_bytes(const allocation_trace &t);
/** The trace up to its malloc number `pairs`; what is live then is freed in the order of the mallocs. */
allocation_trace shortened(const allocation_trace &t, size_t pairs);

/** What a synthetic trace is made from. */
struct synthetic_settings {
    uint64_t seed = 1;
    uint32_t pairs = 4096; /* of malloc and free, about: whole steps and jobs, and fewer of large blocks */
    uint32_t live = 256;   /* blocks that `random` keeps */
};

struct synthetic_kind {
    const char *name, *about;
    allocation_trace (*make)(const synthetic_settings &s);
};

/** Every synthetic trace, in the order of reports. The same settings give the same trace on every machine. */
const std::vector<synthetic_kind> &synthetic_kinds();

/**
 * Reads a recorded log, CSV with the header `event,block,bytes,memory,op,file,line`.
 * Blocks of host memory are checked as others are, and left out; blocks that are never freed are freed at the end.
 * @return empty, or what is wrong, with the file and the line; then `t` is as it was.
 */
std::string read_trace(const std::string &path, allocation_trace *t);
/** Writes a trace in that form. @return empty, or why it cannot be written. */
std::string write_trace(const std::string &path, const allocation_trace &t);

} // namespace bench

#endif

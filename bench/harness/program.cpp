/*
 * Owns a program's buffers and the memory that its ops lie in while they run. Called by workloads, from the thread that
 * runs them. Launches nothing of its own and knows no runner.
 */
#include "program.h"

#include <cstring>

namespace bench {

/* Larger than any op with its arguments and segments; a longer one stops the program with a message. */
static const size_t PAGE_BYTES = 1u << 20;

program::~program()
{
    for (const buffer &b : buffers_)
        memory_.release(b.place);
}

void *program::add(size_t bytes, contents what)
{
    buffer b = {};
    b.place = memory_.allocate(bytes);
    b.bytes = bytes;
    b.what = what;
    buffers_.push_back(b);
    return b.place;
}

void program::mark_result(const void *p)
{
    for (buffer &b : buffers_)
        if (b.place == p) {
            b.result = true;
            return;
        }
    require(false, "mark_result: not the start of a buffer of this program");
}

void program::reset()
{
    for (const buffer &b : buffers_)
        switch (b.what) {
        case CONTENTS_NONE: memory_.fill(b.place, 0xff, b.bytes); break;
        case CONTENTS_ZERO: memory_.fill(b.place, 0, b.bytes); break;
        case CONTENTS_VALUES: memory_.upload(b.place, b.first.data(), b.bytes); break;
        case CONTENTS_FLOAT:
            memory_.random(static_cast<float *>(b.place), b.bytes / sizeof(float), b.seed, static_cast<float>(b.low),
                           static_cast<float>(b.high));
            break;
        case CONTENTS_DOUBLE:
            memory_.random(static_cast<double *>(b.place), b.bytes / sizeof(double), b.seed, b.low, b.high);
            break;
        }
    memory_.wait();
}

std::vector<program::buffer_facts> program::buffers() const
{
    std::vector<buffer_facts> facts;
    for (const buffer &b : buffers_)
        facts.push_back({b.place, b.bytes, b.what != CONTENTS_NONE, b.what == CONTENTS_ZERO, b.result});
    return facts;
}

std::vector<char> program::result() const
{
    size_t bytes = 0, place = 0;
    for (const buffer &b : buffers_)
        bytes += b.result ? b.bytes : 0;
    std::vector<char> all(bytes);
    for (const buffer &b : buffers_)
        if (b.result) {
            memory_.download(all.data() + place, b.place, b.bytes);
            place += b.bytes;
        }
    return all;
}

void *program::keep(const void *bytes, size_t count)
{
    const size_t wanted = (count + 15) / 16 * 16;
    require(wanted <= PAGE_BYTES, "an op's arguments or segments are too large");
    if (!pages_.empty() && used_ + wanted > PAGE_BYTES) {
        page_++;
        used_ = 0;
    }
    if (page_ == pages_.size())
        pages_.emplace_back(new char[PAGE_BYTES]);
    void *const place = pages_[page_].get() + used_;
    used_ += wanted;
    if (count > 0)
        memcpy(place, bytes, count);
    return place;
}

void program::send(sink &s, op &o, const acs_segment *segments, size_t count)
{
    o.segments = static_cast<const acs_segment *>(keep(segments, count * sizeof *segments));
    o.segment_count = static_cast<uint32_t>(count);
    s.launch(*static_cast<const op *>(keep(&o, sizeof o)));
}

void program::copy(sink &s, void *to, const void *from, size_t bytes)
{
    const acs_segment uses[2] = {ACS_IN(from, bytes), ACS_OUT(to, bytes)};
    op o = {};
    o.kind = OP_COPY;
    o.to = to;
    o.from = from;
    o.bytes = bytes;
    send(s, o, uses, 2);
}

void program::fill(sink &s, void *to, int value, size_t bytes)
{
    const acs_segment uses[1] = {ACS_OUT(to, bytes)};
    op o = {};
    o.kind = OP_FILL;
    o.to = to;
    o.bytes = bytes;
    o.value = value;
    send(s, o, uses, 1);
}

void program::call(sink &s, const acs_call_params &call, float us)
{
    acs_call_params kept = call;
    op o = {};
    if (call.closure_bytes > 0)
        kept.closure = keep(call.closure, call.closure_bytes);
    o.kind = OP_CALL;
    o.call = static_cast<const acs_call_params *>(keep(&kept, sizeof kept));
    o.us = us;
    send(s, o, call.uses.segments, call.uses.count);
}

} // namespace bench

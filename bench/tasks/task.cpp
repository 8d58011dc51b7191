/*
 * Owns a task's ops and its host buffers. Called by the program between runs, and by ways during one for the next kernel.
 * Launches nothing but the one serial run that it learns from.
 */
#include "task.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace bench {

static bool touches(const acs_segment &s, const program::buffer_facts &b)
{
    const uint64_t base = reinterpret_cast<uintptr_t>(b.place);
    return s.extent == ACS_EXTENT_BYTES && s.base >= base && s.base < base + b.bytes;
}

/* A result that nobody reads after it was written for the last time. */
bool task::is_output(const trace &t, const program::buffer_facts &b) const
{
    bool written = false, read = false;
    for (const op &o : t.ops)
        for (uint32_t i = 0; i < o.segment_count; i++)
            if (touches(o.segments[i], b)) {
                const bool writes = o.segments[i].access & ACS_WRITE;
                read = writes ? false : true;
                written = written || writes;
            }
    return b.result && written && !read;
}

void task::add_block(memory &m, const program::buffer_facts &b, bool wanted)
{
    task_block block = {b.bytes, b.given && b.zero, nullptr, nullptr, {}, SIZE_MAX, 0};
    if (b.given && !b.zero) {
        block.in = static_cast<char *>(pinned_allocate(gpu_, b.bytes));
        m.download(block.in, b.place, b.bytes);
    }
    if (wanted && outputs_)
        block.out = static_cast<char *>(pinned_allocate(gpu_, b.bytes));
    old_.push_back(reinterpret_cast<uintptr_t>(b.place));
    blocks_.push_back(std::move(block));
}

void task::learn(const trace &t)
{
    for (const op &o : t.ops) {
        require(o.kind != OP_CALL, "a task has no library calls");
        const char *const args = static_cast<const char *>(o.args);
        args_.emplace_back(args, args + o.arg_bytes);
        segments_.emplace_back(o.segments, o.segments + o.segment_count);
        uint64_t bytes = 0;
        for (size_t b = 0; b < blocks_.size(); b++) {
            const auto in_block = [&](const acs_segment &s) {
                return s.extent == ACS_EXTENT_BYTES && s.base - old_[b] < blocks_[b].bytes;
            };
            if (std::none_of(segments_.back().begin(), segments_.back().end(), in_block))
                continue;
            bytes += blocks_[b].bytes;
            blocks_[b].first = std::min(blocks_[b].first, ops_.size());
            blocks_[b].last = std::max(blocks_[b].last, ops_.size());
        }
        kernel_bytes_ = std::max(kernel_bytes_, bytes);
        ops_.push_back(o);
    }
}

namespace {

/* Keeps arguments, and runs nothing. */
class collector : public sink {
public:
    void launch(const op &o) override
    {
        const char *const from = static_cast<const char *>(o.args);
        args.emplace_back(from, from + o.arg_bytes);
    }
    /* Whatever was read changes numbers alone. */
    void read(void *to, const void *, size_t bytes) override
    {
        memset(to, 0, bytes);
        args.emplace_back();
    }
    std::vector<std::vector<char>> args;
};

uint64_t word_of(const std::vector<char> &bytes, size_t word)
{
    uint64_t value;
    memcpy(&value, &bytes[word * sizeof value], sizeof value);
    return value;
}

} // namespace

/*
 * What points into a block in this program, and to the same place of the same block in another one that lies elsewhere: an
 * address that is one by chance, in the padding of a struct, does not.
 */
void task::find_pointers(const workload &w, const sizes &s)
{
    memory m(gpu_);
    const std::unique_ptr<program> other = w.make(m, s);
    const std::vector<program::buffer_facts> facts = other->buffers();
    collector c;
    other->run(c);
    require(c.args.size() == ops_.size(), "a program that launches other ops each time is no task");
    for (size_t k = 0; k < ops_.size(); k++) {
        pointers_.emplace_back(args_[k].size() / sizeof(uint64_t), false);
        for (size_t i = 0; i < pointers_[k].size(); i++)
            for (size_t b = 0; b < blocks_.size(); b++) {
                const uint64_t offset = word_of(args_[k], i) - old_[b];
                const uint64_t there = word_of(c.args[k], i) - reinterpret_cast<uintptr_t>(facts[b].place);
                pointers_[k][i] = pointers_[k][i] || (offset < blocks_[b].bytes && offset == there);
            }
    }
}

uint32_t task::argument_type(size_t k) const
{
    uint32_t type = ACS_ARG_POINTERS;
    for (unsigned i = 0; i < pointers_[k].size(); i++)
        if (pointers_[k][i])
            type |= ACS_POINTER_AT(i);
    return type;
}

task::task(const workload &w, const sizes &s, bool gpu, bool check, bool outputs) : gpu_(gpu), outputs_(outputs)
{
    memory m(gpu);
    const std::unique_ptr<program> p = w.make(m, s);
    p->reset();
    const trace t = record(*p);
    if (check)
        wrong_ = p->check();
    std::vector<bool> wanted;
    for (const program::buffer_facts &b : p->buffers())
        wanted.push_back(is_output(t, b));
    std::vector<std::vector<char>> right(wanted.size());
    for (size_t b = 0; b < wanted.size(); b++)
        if (wanted[b]) {
            right[b].resize(p->buffers()[b].bytes);
            m.download(right[b].data(), p->buffers()[b].place, right[b].size());
        }
    p->reset(); /* for what goes in */
    for (size_t b = 0; b < wanted.size(); b++) {
        add_block(m, p->buffers()[b], wanted[b]);
        blocks_[b].right = std::move(right[b]);
    }
    learn(t);
    find_pointers(w, s); /* while the first program has its buffers */
}

task::~task()
{
    for (const task_block &b : blocks_) {
        if (b.in)
            pinned_release(gpu_, b.in);
        if (b.out)
            pinned_release(gpu_, b.out);
    }
}

const op &task::kernel(size_t k, const std::vector<void *> &places, moved_op &room) const
{
    const auto move = [&](uint64_t &address) {
        for (size_t b = 0; b < blocks_.size(); b++)
            if (address - old_[b] < blocks_[b].bytes) {
                address += reinterpret_cast<uintptr_t>(places[b]) - old_[b];
                return;
            }
    };
    op &o = room.what = ops_[k];
    room.args = args_[k];
    room.segments = segments_[k];
    for (size_t i = 0; i < pointers_[k].size(); i++)
        if (pointers_[k][i]) {
            uint64_t word = word_of(room.args, i);
            move(word);
            memcpy(&room.args[i * sizeof word], &word, sizeof word);
        }
    for (acs_segment &s : room.segments)
        if (s.extent == ACS_EXTENT_BYTES)
            move(s.base);
    uint64_t to = reinterpret_cast<uintptr_t>(o.to), from = reinterpret_cast<uintptr_t>(o.from);
    move(to);
    move(from);
    o.to = o.kind == OP_READ ? room.read : reinterpret_cast<void *>(to);
    o.from = reinterpret_cast<const void *>(from);
    o.args = room.args.data();
    o.segments = room.segments.data();
    return o;
}

std::vector<task_part> task::parts(size_t k) const
{
    std::vector<task_part> list;
    for (const acs_segment &s : segments_[k])
        for (size_t b = 0; b < blocks_.size(); b++)
            if (s.extent == ACS_EXTENT_BYTES && s.rows && s.row_bytes && s.base - old_[b] < blocks_[b].bytes) {
                const size_t from = s.base - old_[b], to = from + (s.rows - 1) * s.pitch_bytes + s.row_bytes;
                list.push_back({b, from, to, (s.access & ACS_READ) != 0, (s.access & ACS_WRITE) != 0});
            }
    return list;
}

uint64_t task::bytes() const
{
    uint64_t all = 0;
    for (const task_block &b : blocks_)
        all += b.bytes;
    return all;
}

uint64_t task::kernel_bytes() const
{
    return kernel_bytes_;
}

/* Calls part(from, to) for parts of [0, bytes) on several threads: results are gigabytes. */
template <class F> static void in_parts(size_t bytes, F part)
{
    const size_t parts = bytes < (1u << 20) ? 1 : 8, share = (bytes + parts - 1) / parts;
    std::vector<std::thread> threads;
    for (size_t from = share; from < bytes; from += share)
        threads.emplace_back(part, from, std::min(bytes, from + share));
    part(size_t{0}, std::min(bytes, share));
    for (std::thread &t : threads)
        t.join();
}

void spoil(char *bytes, size_t count)
{
    in_parts(count, [&](size_t from, size_t to) { memset(bytes + from, 0xff, to - from); });
}

bool are_same(const char *a, const char *b, size_t count)
{
    std::atomic<bool> same{true};
    in_parts(count, [&](size_t from, size_t to) {
        if (memcmp(a + from, b + from, to - from) != 0)
            same = false;
    });
    return same;
}

void task::reset()
{
    for (const task_block &b : blocks_)
        if (b.out)
            spoil(b.out, b.bytes);
}

bool task::is_right() const
{
    return std::all_of(blocks_.begin(), blocks_.end(),
                       [](const task_block &b) { return !b.out || are_same(b.out, b.right.data(), b.bytes); });
}

} // namespace bench

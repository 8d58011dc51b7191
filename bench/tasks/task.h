/*
 * A task, as HuntKTm means the word: a whole program with its memory. It allocates all of its blocks, copies its input in,
 * runs its kernels, copies its results out and frees the blocks, in this order, as a program is written that does not think
 * about memory.
 */
#ifndef BENCH_TASK_H
#define BENCH_TASK_H

#include <string>
#include <vector>

#include "workload.h"

namespace bench {

struct task_block {
    size_t bytes;
    bool zero;             /* filled with zeros at first */
    char *in, *out;        /* pinned: its first contents, where its last go; null: none, not wanted */
    std::vector<char> right; /* what is to come out */
    size_t first, last;    /* its first and its last kernel */
};

/** Bytes of a block that an op names; of a tile from its first to its last. */
struct task_part {
    size_t block, from, to;
    bool reads, writes;
};

/** An op whose blocks were put somewhere, and what it points to. Of one thread at a time. */
struct moved_op {
    op what = {};
    std::vector<char> args;
    std::vector<acs_segment> segments;
    char read[READ_BYTES]; /* what reads bring, which nobody looks at */
};

/** A program's run as data, with pointers into blocks that can be put where a way wants them. */
class task {
public:
    /**
     * Runs the workload once, serially, to learn what it does. `check`: its oracle looks at that.
     * `outputs`: it has buffers for what comes out; without them its jobs (job.h) bring theirs.
     */
    task(const workload &w, const sizes &s, bool gpu, bool check, bool outputs = true);
    ~task();
    task(const task &) = delete;
    task &operator=(const task &) = delete;

    /** What the oracle says; empty: nothing is wrong. */
    const std::string &wrong() const { return wrong_; }
    const std::vector<task_block> &blocks() const { return blocks_; }
    size_t kernels() const { return ops_.size(); }
    /** Kernel `k` with its blocks at these places. What it points to lasts until the next call. */
    const op &kernel(size_t k, const std::vector<void *> &places) { return kernel(k, places, own_); }
    /** The same for several threads, each with a room of its own. */
    const op &kernel(size_t k, const std::vector<void *> &places, moved_op &room) const;
    /** The type of that kernel's argument, for ACS: a struct with pointers. */
    uint32_t argument_type(size_t k) const;
    std::vector<task_part> parts(size_t k) const;
    /** It is a read of the host's, which waits for it before it goes on; what it brings is the task's. */
    bool is_read(size_t k) const { return ops_[k].kind == OP_READ; }
    /** Bytes of all blocks; of those that one kernel uses, at most. */
    uint64_t bytes() const;
    uint64_t kernel_bytes() const;
    bool gpu() const { return gpu_; }
    /** Overwrites what came out; says whether it is right, bit for bit. */
    void reset();
    bool is_right() const;

private:
    void learn(const trace &t);
    void find_pointers(const workload &w, const sizes &s);
    void add_block(memory &m, const program::buffer_facts &facts, bool wanted);
    bool is_output(const trace &t, const program::buffer_facts &facts) const;

    bool gpu_, outputs_;
    std::string wrong_;
    std::vector<task_block> blocks_;
    uint64_t kernel_bytes_ = 0;
    std::vector<uint64_t> old_;          /* where the blocks were when the ops were recorded */
    std::vector<op> ops_;                /* kernels, copies and fills between blocks */
    std::vector<std::vector<char>> args_;
    std::vector<std::vector<bool>> pointers_; /* which words of them are */
    std::vector<std::vector<acs_segment>> segments_;
    moved_op own_;
};

/** Overwrites results with bytes that are none; says whether two are the same. By several threads: it is gigabytes. */
void spoil(char *bytes, size_t count);
bool are_same(const char *a, const char *b, size_t count);

} // namespace bench

#endif

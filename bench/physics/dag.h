/*
 * The dependencies among ops of one scene, from their footprints: the edges that a graph of them needs, no more.
 */
#ifndef PHYSICS_BENCH_DAG_H
#define PHYSICS_BENCH_DAG_H

#include "program.h"

struct dag {
    std::vector<std::vector<int>> after; /* [op]: the ops that it must follow directly; those implied are left out */
    size_t edges;
    int depth;      /* ops on the longest path */
    uint64_t shape; /* of kernels and edges: equal where one graph can be updated to become the other */
};

/** Ops in program order, with footprints. */
dag dag_of(const std::vector<op> &ops);

/** A number that stands for the ops' kernels and footprints: where it is equal, so are the edges. */
uint64_t dag_key(const std::vector<op> &ops);

/** Adds `value` to a hash (FNV-1a over words). */
inline uint64_t hash_add(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

enum : uint64_t { HASH_START = 0xcbf29ce484222325u };

#endif

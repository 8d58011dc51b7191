/*
 * A GPU that is none: the functions of the CUDA runtime that bench/runners call, over host memory. Work in streams and
 * graphs is kept as a graph of what must precede what, and run only when somebody waits, in a random order that respects
 * nothing but streams, events and edges. A dependency that a runner forgot therefore gives a wrong result here.
 */
#ifndef FAKE_GPU_H
#define FAKE_GPU_H

#include <cstddef>
#include <cstdint>
#include <vector>

/** Orders of execution from now on. */
void fake_gpu_seed(uint64_t seed);
/** A kernel's function is its host body; launches copy `arg_bytes` of its only argument. */
void fake_gpu_kernel(const void *function, size_t arg_bytes);
/** The same for a kernel of several arguments. */
void fake_gpu_kernel(const void *function, const std::vector<size_t> &arg_bytes);
/** The call number `count` (from 1) of this function fails with cudaErrorInvalidValue, once. */
void fake_gpu_fail(const char *function, int count);
/** How often a function was called since the last fake_gpu_seed(). */
int fake_gpu_calls(const char *function);
/** Bytes that the device's memory pool has reserved. */
uint64_t fake_gpu_pool_reserved();
/** Streams, events, graphs and allocations that were not destroyed. */
int fake_gpu_live();
/** Frees the allocations whose free has failed, where nothing else is left. @return how many those are. */
int fake_gpu_free_lost();

#endif

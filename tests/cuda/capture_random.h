/*
 * What tests of random programs inside captures share: kernels that touch random pieces of a buffer, and the comparison
 * with the bytes of serial execution.
 */
#ifndef CAPTURE_RANDOM_H
#define CAPTURE_RANDOM_H

#include "capture_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t g_random;

static inline uint32_t below(uint32_t n)
{
    g_random = g_random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((g_random >> 33) % n);
}

static inline mix_piece random_piece(uint32_t buffer_bytes)
{
    uint32_t rows = 1 + below(3), bytes = 8 * (1 + below(4)), pitch = bytes + 8 * below(5);
    uint32_t span = (rows - 1) * pitch + bytes;
    mix_piece piece = {.base = 8 * below((buffer_bytes - span) / 8 + 1), .row_bytes = bytes, .rows = rows, .pitch = pitch,
                       .access = below(5) ? 1 + below(3) : ACS_COMMUTE};
    return piece;
}

/* Pieces are offsets into a buffer of so many bytes. */
static inline work random_work(uint32_t id, uint32_t buffer_bytes)
{
    work w = {.head = {.id = id, .pieces = 1 + below(4)}};
    for (uint32_t i = 0; i < w.head.pieces; i++)
        w.pieces[i] = random_piece(buffer_bytes);
    return w;
}

/* The same on a buffer that lies there. */
static inline work placed(const work *w, unsigned char *memory)
{
    work at = *w;
    for (uint32_t i = 0; i < w->head.pieces; i++)
        at.pieces[i].base += (uint64_t)(uintptr_t)memory;
    return at;
}

static inline void compare_bytes(uint64_t seed, const unsigned char *is, const unsigned char *expected, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (is[i] != expected[i])
            fail_msg("seed %llu: byte %u is %u, not %u", (unsigned long long)seed, i, is[i], expected[i]);
}

static inline void graph_free(CUgraph graph)
{
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

#endif

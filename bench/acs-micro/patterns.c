/*
 * The footprints that insertion is measured with: shapes that recur and shapes that never do, contiguous ranges and
 * tiles of one pitch, apart from each other and overlapping at random. Pure functions of the op's number.
 */
#include "patterns.h"

enum { BLOCK = 4096 };
enum { TILE_ROW = 256, TILE_ROWS = 64, PITCH = 65536, TILES_PER_ROW = PITCH / TILE_ROW };
#define BASE UINT64_C(0x100000000)

/* Four are read, one is updated, one is written. */
static acs_segment contiguous(int which, uint64_t base, uint64_t bytes)
{
    acs_access access = which < 4 ? ACS_READ : which == 4 ? ACS_UPDATE : ACS_WRITE;
    return acs_make_segment(ACS_EXTENT_BYTES, access, BASE + base, bytes, 1, 0);
}

static acs_segment tile(int which, uint64_t base)
{
    acs_segment s = contiguous(which, base, TILE_ROW);
    s.rows = TILE_ROWS;
    s.pitch_bytes = PITCH;
    return s;
}

static uint64_t random_of(uint64_t op, int which, uint64_t below)
{
    return acs_hash64(op * SEGMENTS + (uint64_t)which + 1) % below;
}

/* Blocks of 4 KiB side by side, the same ones again and again. */
static void disjoint(uint64_t op, uint32_t period, acs_segment *s)
{
    for (int i = 0; i < SEGMENTS; i++)
        s[i] = contiguous(i, (op % period * SEGMENTS + (uint64_t)i) * BLOCK, BLOCK);
}

/* Ranges of up to 8 KiB anywhere in 16 MiB: hardly one recurs. */
static void overlapping(uint64_t op, uint32_t period, acs_segment *s)
{
    (void)period;
    for (int i = 0; i < SEGMENTS; i++)
        s[i] = contiguous(i, random_of(op, i, (16 << 20) / 64) * 64, 64 + random_of(op, i + 100, 128) * 64);
}

static uint64_t tile_place(uint64_t number)
{
    return number / TILES_PER_ROW * TILE_ROWS * PITCH + number % TILES_PER_ROW * TILE_ROW;
}

/* Tiles of one matrix side by side, the same ones again and again. */
static void tiles(uint64_t op, uint32_t period, acs_segment *s)
{
    for (int i = 0; i < SEGMENTS; i++)
        s[i] = tile(i, tile_place(op % period * SEGMENTS + (uint64_t)i));
}

/* Tiles of one matrix anywhere in it, not on a grid: hardly one recurs. */
static void tiles_overlapping(uint64_t op, uint32_t period, acs_segment *s)
{
    (void)period;
    for (int i = 0; i < SEGMENTS; i++)
        s[i] = tile(i, random_of(op, i, 16384) * PITCH + random_of(op, i + 100, (PITCH - TILE_ROW) / 64) * 64);
}

/* Blocks side by side that never recur. */
static void fresh(uint64_t op, uint32_t period, acs_segment *s)
{
    (void)period;
    for (int i = 0; i < SEGMENTS; i++)
        s[i] = contiguous(i, (op * SEGMENTS + (uint64_t)i) * BLOCK, BLOCK);
}

/* Tiles of one pitch side by side that never recur. */
static void tiles_fresh(uint64_t op, uint32_t period, acs_segment *s)
{
    (void)period;
    for (int i = 0; i < SEGMENTS; i++)
        s[i] = tile(i, tile_place(op * SEGMENTS + (uint64_t)i));
}

const pattern micro_patterns[] = {
    {"disjoint", disjoint},
    {"overlapping", overlapping},
    {"tiles", tiles},
    {"tiles overlapping", tiles_overlapping},
    {"fresh", fresh},
    {"tiles fresh", tiles_fresh},
};
const uint32_t micro_pattern_count = sizeof micro_patterns / sizeof *micro_patterns;

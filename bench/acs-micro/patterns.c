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

/* ------------------------------------------------------------------------------------- ranges that overlap in part */

enum { SIDE = 1024, ROW = SIDE * 4 }; /* a matrix of 4-byte numbers */

/* One is read, one is updated; the others are elsewhere. */
static void pair(acs_segment *s, acs_segment in, acs_segment out)
{
    s[0] = in;
    s[1] = out;
    for (int i = 2; i < SEGMENTS; i++)
        s[i] = contiguous(0, (UINT64_C(1) << 40) + (uint64_t)i, 1);
}

static acs_segment range(acs_access access, uint64_t base, uint64_t bytes)
{
    return acs_make_segment(ACS_EXTENT_BYTES, access, BASE + base, bytes, 1, 0);
}

static acs_segment part(acs_access access, uint64_t row, uint64_t column, uint64_t rows, uint64_t columns)
{
    return acs_make_segment(ACS_EXTENT_BYTES, access, BASE + row * ROW + column * 4, columns * 4, rows, ROW);
}

/* Gaussian elimination: a column is read, and the tile to its right and below it is updated. */
static void shrinking(uint64_t op, uint32_t period, acs_segment *s)
{
    const uint64_t k = op % (SIDE - 1);
    (void)period;
    pair(s, part(ACS_READ, k, k, SIDE - k, 1), part(ACS_UPDATE, k + 1, k + 1, SIDE - k - 1, SIDE - k - 1));
}

/* All that came before is read, and some of it updated: a prefix that grows. */
static void growing(uint64_t op, uint32_t period, acs_segment *s)
{
    const uint64_t k = op % SIDE;
    (void)period;
    pair(s, range(ACS_READ, 0, (k + 1) * 64), range(ACS_UPDATE, 0, (k + 2) * 64));
}

/* A window of 32 blocks moves by one block, over an input and over a result. */
static void sliding(uint64_t op, uint32_t period, acs_segment *s)
{
    const uint64_t k = op % (64 * SIDE);
    (void)period;
    pair(s, range(ACS_READ, k * 64, 32 * 64), range(ACS_UPDATE, (1 << 30) + k * 64, 32 * 64));
}

/* LU by rows: the end of row i is updated from the end of row k, for each i below k. */
static void triangular(uint64_t op, uint32_t period, acs_segment *s)
{
    const uint64_t rows = 64, at = op % (rows * rows), k = at / rows, i = k + 1 + at % rows % (rows - k);
    (void)period;
    pair(s, range(ACS_READ, k * ROW + k * 64, ROW - k * 64), range(ACS_UPDATE, i * ROW + k * 64, ROW - k * 64));
}

/* Ranges of any length anywhere in 1 MiB. */
static void random_ranges(uint64_t op, uint32_t period, acs_segment *s)
{
    uint64_t at[2], blocks[2];
    (void)period;
    for (int i = 0; i < 2; i++) {
        at[i] = random_of(op, i, 16384);
        blocks[i] = 1 + random_of(op, i + 100, 16384 - at[i]);
    }
    pair(s, range(ACS_READ, at[0] * 64, blocks[0] * 64), range(ACS_UPDATE, at[1] * 64, blocks[1] * 64));
}

/* Tiles of any size anywhere in a matrix. */
static void random_tiles(uint64_t op, uint32_t period, acs_segment *s)
{
    acs_segment made[2];
    (void)period;
    for (int i = 0; i < 2; i++) {
        const uint64_t row = random_of(op, i, SIDE), column = random_of(op, i + 200, SIDE);
        made[i] = part(i ? ACS_UPDATE : ACS_READ, row, column, 1 + random_of(op, i + 300, SIDE - row),
                       1 + random_of(op, i + 400, SIDE - column));
    }
    pair(s, made[0], made[1]);
}

const pattern micro_patterns[] = {
    {"disjoint", SEGMENTS, disjoint},
    {"overlapping", SEGMENTS, overlapping},
    {"tiles", SEGMENTS, tiles},
    {"tiles overlapping", SEGMENTS, tiles_overlapping},
    {"fresh", SEGMENTS, fresh},
    {"tiles fresh", SEGMENTS, tiles_fresh},
    {"shrinking tiles", 2, shrinking},
    {"growing ranges", 2, growing},
    {"sliding ranges", 2, sliding},
    {"triangular ranges", 2, triangular},
    {"random ranges", 2, random_ranges},
    {"random tiles", 2, random_tiles},
};
const uint32_t micro_pattern_count = sizeof micro_patterns / sizeof *micro_patterns;

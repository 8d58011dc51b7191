/*
 * What every op of a random program computes, for CPU and GPU. It reads all its input bytes into a hash, together with
 * its id and argument bytes, and its number of blocks if it is to. Then it writes every output byte from the hash and
 * the byte's position (and the old byte where the access is inout). To bytes that it commutes on it adds, atomically
 * and without a look at them. So a result depends on the order of ops, not only on their set. Terms are summed over
 * positions, so that GPU lanes may share the reading; the sum is mixed again before it is used.
 */
#ifndef RANDOM_MIX_H
#define RANDOM_MIX_H

#include <stdint.h>

#ifdef __CUDACC__
#define MIX_FN static __host__ __device__ inline
#else
#define MIX_FN static inline
#endif

enum { MIX_EXTRAS = 23, MIX_PIECES = 40 };
enum { MIX_READ = 1, MIX_WRITE = 2, MIX_UPDATE = 3, MIX_COMMUTE = 7 }; /* as acs_access */

/* Bytes that the op really touches: rows of a tile, contiguous where rows is 1. */
typedef struct mix_piece {
    uint64_t base;
    uint32_t row_bytes, rows, pitch;
    uint32_t access;
    uint64_t reserved; /* size a multiple of 16, so that no padding depends on what follows */
} mix_piece;

/* Argument 0 of every kernel that has arguments; its pieces follow directly. */
typedef struct mix_head {
    uint32_t id, pieces, extras;
    uint16_t spin;                        /* work to waste, so that ops last unlike times */
    uint16_t counts_blocks;               /* whether the result depends on the number of blocks */
    uint16_t extra_bytes[MIX_EXTRAS + 1]; /* size of each further argument */
} mix_head;

/* Types of further arguments. */
typedef uint8_t mix_u1;
typedef uint16_t mix_u2;
typedef uint32_t mix_u4;
typedef uint64_t mix_u8;
typedef struct mix_b12 {
    uint8_t b[12];
} mix_b12;
typedef struct mix_b24 {
    uint8_t b[24];
} mix_b24;
typedef struct mix_b100 {
    uint8_t b[100];
} mix_b100;
typedef struct mix_b4000 {
    uint8_t b[4000];
} mix_b4000;
/* With a head and one piece: exactly the 32764 bytes that an op may have. */
typedef struct mix_bmax {
    uint8_t b[32764 - 64 - 32];
} mix_bmax;

/* Kernel signatures: X(pieces that fit into argument 0, S(type of argument 1) S(type of argument 2) ...). */
#define MIX_SIGNATURES(X, S)                                                                                           \
    X(1, )                                                                                                             \
    X(6, )                                                                                                             \
    X(6, S(mix_u4))                                                                                                    \
    X(6, S(mix_u8) S(mix_u1) S(mix_u2))                                                                                \
    X(6, S(mix_u1) S(mix_b12) S(mix_u8) S(mix_u2) S(mix_b24) S(mix_u4) S(mix_u1))                                      \
    X(6, S(mix_u4) S(mix_u8) S(mix_u4) S(mix_u1) S(mix_u8) S(mix_u8) S(mix_u2) S(mix_b12) S(mix_u4) S(mix_u4)          \
             S(mix_u8) S(mix_u4) S(mix_u1) S(mix_u1) S(mix_u8) S(mix_b24) S(mix_u4) S(mix_u4) S(mix_u8) S(mix_u2)      \
             S(mix_u4) S(mix_u8) S(mix_u1))                                                                            \
    X(16, S(mix_u8) S(mix_u8) S(mix_b12))                                                                              \
    X(40, )                                                                                                            \
    X(40, S(mix_b100) S(mix_u4))                                                                                       \
    X(6, S(mix_b4000))                                                                                                 \
    X(16, S(mix_b24) S(mix_b12) S(mix_u1) S(mix_b4000) S(mix_b4000))                                                   \
    X(1, S(mix_bmax))
enum { MIX_SIGNATURE_COUNT = 12, MIX_SIGNATURE_BIG = 9 /* the first with kilobytes of arguments */ };

MIX_FN uint64_t mix_hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Byte k of further argument j of op `id`. */
MIX_FN uint8_t mix_extra_byte(uint32_t id, uint32_t j, uint32_t k)
{
    return (uint8_t)(id * 31u + j * 7u + k * 13u + (k >> 8));
}

/* Position of a byte: which piece, row and column; addresses stay out, so that the oracle gets the same hash. */
MIX_FN uint64_t mix_position(uint32_t piece, uint32_t row, uint32_t column)
{
    return ((uint64_t)piece << 48) ^ ((uint64_t)row << 24) ^ column;
}

MIX_FN uint64_t mix_term(uint64_t position, uint8_t byte)
{
    return mix_hash(position * 257u + byte);
}

/* This lane's share of the sum over all input bytes. */
MIX_FN uint64_t mix_gather(const mix_head *head, const mix_piece *pieces, const unsigned char *const *extras,
                           uint32_t lane, uint32_t lanes)
{
    uint64_t sum = 0;
    for (uint32_t j = 0; j < head->extras; j++)
        for (uint32_t k = lane; k < head->extra_bytes[j]; k += lanes)
            sum += mix_term(mix_position(1000 + j, 0, k), extras[j][k]);
    for (uint32_t p = 0; p < head->pieces; p++) {
        if (!(pieces[p].access & MIX_READ) || pieces[p].access == MIX_COMMUTE)
            continue;
        for (uint32_t r = 0; r < pieces[p].rows; r++) {
            const unsigned char *row = (const unsigned char *)(uintptr_t)(pieces[p].base + (uint64_t)r * pieces[p].pitch);
            for (uint32_t c = lane; c < pieces[p].row_bytes; c += lanes)
                sum += mix_term(mix_position(p, r, c), row[c]);
        }
    }
    return sum;
}

/* The hash that the written bytes come from. */
MIX_FN uint64_t mix_finish(const mix_head *head, uint64_t sum, uint32_t blocks)
{
    uint64_t h = mix_hash(sum ^ ((uint64_t)head->id << 32) ^ (head->counts_blocks ? blocks : 0));
    uint64_t waste = h;
    for (uint32_t i = 0; i < head->spin; i++)
        waste = mix_hash(waste);
    return h ^ (waste == 0x1234567u); /* keeps the loop from being removed */
}

/* Add to a byte, without a carry into others. */
MIX_FN void mix_add(unsigned char *to, uint8_t by)
{
#ifdef __CUDA_ARCH__
    unsigned *word = (unsigned *)((uintptr_t)to & ~(uintptr_t)3);
    const unsigned shift = 8 * (unsigned)((uintptr_t)to & 3);
    unsigned was = *(volatile unsigned *)word, seen;
    do {
        seen = was;
        const unsigned sum = ((seen >> shift) + by) & 255u;
        was = atomicCAS(word, seen, (seen & ~(255u << shift)) | sum << shift);
    } while (was != seen);
#else
    __atomic_fetch_add(to, by, __ATOMIC_RELAXED);
#endif
}

/* Write one row. Rows of one piece may overlap, so GPU lanes meet between rows. */
MIX_FN void mix_row(const mix_piece *piece, uint32_t p, uint32_t r, uint64_t hash, uint32_t lane, uint32_t lanes)
{
    unsigned char *row = (unsigned char *)(uintptr_t)(piece->base + (uint64_t)r * piece->pitch);
    for (uint32_t c = lane; c < piece->row_bytes; c += lanes) {
        uint8_t old = piece->access == MIX_UPDATE ? row[c] : 0;
        if (piece->access == MIX_COMMUTE) {
            mix_add(&row[c], (uint8_t)(mix_term(hash ^ mix_position(p, r, c), 0) >> 17));
            continue;
        }
        row[c] = (uint8_t)(mix_term(hash ^ mix_position(p, r, c), old) >> 17);
    }
}

/* The whole op on one CPU thread. `blocks`: of its grid; 1 if it is no kernel. */
MIX_FN void mix_run(const mix_head *head, const mix_piece *pieces, const unsigned char *const *extras, uint32_t blocks)
{
    uint64_t hash = mix_finish(head, mix_gather(head, pieces, extras, 0, 1), blocks);
    for (uint32_t p = 0; p < head->pieces; p++)
        for (uint32_t r = 0; (pieces[p].access & MIX_WRITE) && r < pieces[p].rows; r++)
            mix_row(&pieces[p], p, r, hash, 0, 1);
}

#endif

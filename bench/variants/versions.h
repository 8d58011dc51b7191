/*
 * The space that versions are taken from, one line each; the first of a family is "base". As lists of macros, since the
 * kernels (.cu) and the shapes (shapes.cpp, which also is built without nvcc) must agree.
 */
#ifndef VARIANTS_VERSIONS_H
#define VARIANTS_VERSIONS_H

/*
 * Tiles of a product. X(bm, bn, bk, tm, tn, split, unroll): a block computes bm x bn outputs, bk of the sum at a time; a
 * thread tm x tn of them. `split` groups of threads each take every split-th bk, and add their sums in shared memory, in a
 * fixed order. Large tiles read less and need fewer blocks; small and split ones fill an idle GPU.
 */
#define VARIANTS_CONV(X)                                                                                               \
    X(64, 64, 16, 4, 4, 1, 8)                                                                                          \
    X(128, 64, 16, 8, 4, 1, 8)                                                                                         \
    X(64, 64, 8, 8, 4, 1, 8)                                                                                           \
    X(64, 32, 16, 4, 4, 1, 8)                                                                                          \
    X(32, 64, 16, 4, 4, 2, 8)                                                                                          \
    X(64, 64, 16, 8, 4, 4, 8)                                                                                          \
    X(32, 32, 16, 4, 4, 1, 8)                                                                                          \
    X(32, 32, 16, 4, 4, 4, 8)                                                                                          \
    X(32, 32, 16, 4, 4, 8, 8)                                                                                          \
    X(32, 16, 16, 4, 2, 4, 8)                                                                                          \
    X(16, 16, 16, 2, 2, 2, 8)                                                                                          \
    X(16, 16, 16, 2, 2, 8, 8)

#define VARIANTS_MATMUL(X)                                                                                             \
    X(64, 64, 16, 4, 4, 1, 8)                                                                                          \
    X(128, 64, 16, 8, 4, 1, 8)                                                                                         \
    X(128, 128, 8, 8, 8, 1, 4)                                                                                         \
    X(64, 64, 8, 8, 4, 1, 8)                                                                                           \
    X(64, 32, 16, 4, 4, 4, 8)                                                                                          \
    X(32, 32, 16, 4, 4, 1, 8)                                                                                          \
    X(32, 32, 16, 4, 4, 4, 8)                                                                                          \
    X(32, 16, 16, 4, 2, 4, 8)                                                                                          \
    X(16, 16, 16, 2, 2, 1, 8)                                                                                          \
    X(16, 16, 16, 2, 2, 4, 8)

/* Products of a vector and a matrix, for few rows. X(outputs, threads): a block computes `outputs`, `threads` for each. */
#define VARIANTS_VECTOR(X)                                                                                             \
    X(1, 256)                                                                                                          \
    X(1, 128)                                                                                                          \
    X(2, 128)                                                                                                          \
    X(4, 64)                                                                                                           \
    X(4, 32)                                                                                                           \
    X(16, 32)

/* Outputs of pools, and elements. X(threads, items): a thread computes `items`. */
#define VARIANTS_POOL(X)                                                                                               \
    X(256, 1)                                                                                                          \
    X(64, 1)                                                                                                           \
    X(128, 2)                                                                                                          \
    X(256, 4)                                                                                                          \
    X(512, 8)
#define VARIANTS_ELEMENTS(X)                                                                                           \
    X(256, 1)                                                                                                          \
    X(128, 1)                                                                                                          \
    X(128, 4)                                                                                                          \
    X(256, 4)                                                                                                          \
    X(512, 8)

/* Rows to be reduced. X(threads, rows): a block takes `rows` rows, `threads` for each. */
#define VARIANTS_AVERAGE(X)                                                                                            \
    X(32, 4)                                                                                                           \
    X(32, 1)                                                                                                           \
    X(32, 8)                                                                                                           \
    X(64, 2)
#define VARIANTS_SOFTMAX(X)                                                                                            \
    X(32, 4)                                                                                                           \
    X(32, 1)                                                                                                           \
    X(32, 8)                                                                                                           \
    X(64, 2)                                                                                                           \
    X(128, 1)                                                                                                          \
    X(256, 1)
#define VARIANTS_LAYER_NORM(X)                                                                                         \
    X(128, 1)                                                                                                          \
    X(32, 4)                                                                                                           \
    X(32, 8)                                                                                                           \
    X(64, 2)                                                                                                           \
    X(256, 1)

/* Bags of embeddings. X(threads, width, bags): `threads` for each bag, each `width` neighbours at a time. */
#define VARIANTS_EMBEDDING(X)                                                                                          \
    X(64, 1, 4)                                                                                                        \
    X(32, 2, 8)                                                                                                        \
    X(16, 4, 8)                                                                                                        \
    X(16, 4, 32)                                                                                                       \
    X(8, 4, 8)

/* X(threads, samples): a block takes `samples`, `threads` for each. */
#define VARIANTS_INTERACTION(X)                                                                                        \
    X(128, 1)                                                                                                          \
    X(64, 1)                                                                                                           \
    X(256, 1)                                                                                                          \
    X(128, 2)                                                                                                          \
    X(128, 4)

/* Floats behind each row of a tile in shared memory: writers of a column meet fewer banks, and rows stay aligned to 16. */
#define VARIANTS_TILE_PAD 4

#endif

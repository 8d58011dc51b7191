/*
 * Adds operators to an instance of a network, one by one. Used by networks.cpp and by the tests.
 */
#ifndef VARIANTS_BUILDER_H
#define VARIANTS_BUILDER_H

#include <string>

#include "networks.h"

namespace variants {

/** A tensor of channels, rows and columns. */
struct image {
    float *data;
    int32_t channels, height, width;
    size_t count() const { return static_cast<size_t>(channels) * static_cast<size_t>(height * width); }
};

/** What follows a sum. */
struct after {
    int32_t flags, act;
    const float *add;
};

class builder {
public:
    /** @param to  NULL: operators get no number */
    builder(network *to, tensors &where, instance &in) : network_(to), where_(where), instance_(in) {}

    tensors &where() { return where_; }
    /** Weights from [-limit, limit), shared among the network's instances. */
    float *weights(size_t count, float limit);
    float *affine(size_t count);

    image conv(image x, int32_t channels, int32_t window, int32_t stride, int32_t pad, after then);
    image pool(image x, int32_t window, int32_t stride, int32_t pad, after then);
    image average(image x);
    image elements(image x, after then);
    /** y[m][n] = x[m][k] * weights[n][k]. @param y_row  distance between rows of y; 0: n. @param to  NULL: new room. */
    float *dense(const float *x, int32_t m, int32_t k, int32_t n, after then, float *to = nullptr, int32_t y_row = 0);
    /** p.m, p.n, p.k, p.batch and the strides are set. */
    float *products(const std::string &name, const problem &p, const float *a, size_t a_count, const float *b,
                    size_t b_count, size_t y_count);
    float *softmax(const float *x, int32_t rows, int32_t columns);
    float *layer_norm(const float *x, int32_t rows, int32_t columns, const float *add);
    /** Into `to`, whose rows are y_row apart. */
    void embedding(const float *index, int32_t rows, int32_t tables, int32_t table_rows, int32_t lookups, int32_t columns,
                   float *to, int32_t y_row);
    float *interaction(const float *x, int32_t rows, int32_t features, int32_t columns);
    void output(float *p, size_t count);

private:
    operation &push(family_id family, const std::string &name, const problem &p);
    void finish(operation &o, int32_t channels, after then, size_t add_count);
    float *shared(float *(*make)(tensors &, size_t, float), size_t count, float limit);

    network *network_;
    tensors &where_;
    instance &instance_;
    size_t cursor_ = 0; /* of the network's weights */
};

} // namespace variants

#endif

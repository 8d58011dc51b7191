/*
 * Makes operations: their sizes, memory and footprints.
 */
#include "builder.h"

#include <cmath>
#include <cstring>

namespace variants {

static uint64_t bytes_of(size_t count)
{
    return count * sizeof(float);
}

float *builder::shared(float *(*make)(tensors &, size_t, float), size_t count, float limit)
{
    if (!network_)
        return make(where_, count, limit);
    if (cursor_ == network_->weights_.size())
        network_->weights_.push_back(make(where_, count, limit));
    return network_->weights_[cursor_++];
}

float *builder::weights(size_t count, float limit)
{
    return shared([](tensors &t, size_t n, float l) { return t.random(n, -l, l); }, count, limit);
}

float *builder::affine(size_t count)
{
    return shared([](tensors &t, size_t n, float) { return t.affine(n); }, count, 0);
}

operation &builder::push(family_id family, const std::string &name, const problem &p)
{
    operation o = {name, family, p, nullptr, nullptr, nullptr, nullptr, nullptr, {}, 0};

    if (network_) {
        std::vector<network::seen> &seen = network_->problems_;
        size_t place = 0;
        while (place < seen.size() && (seen[place].family != family || memcmp(&seen[place].p, &p, sizeof p) != 0))
            place++;
        if (place == seen.size())
            seen.push_back({family, p});
        o.number = static_cast<unsigned>(place + 1);
    }
    instance_.ops.push_back(o);
    return instance_.ops.back();
}

/* Operands of what follows the sum, and their segments. */
void builder::finish(operation &o, int32_t channels, after then, size_t add_count)
{
    const size_t n = static_cast<size_t>(channels);

    if (then.flags & WITH_AFFINE) {
        o.bias = affine(n);
        o.segments.push_back(ACS_IN(o.bias, bytes_of(2 * n)));
    } else if (then.flags & WITH_BIAS) {
        o.bias = weights(n, 0.1f);
        o.segments.push_back(ACS_IN(o.bias, bytes_of(n)));
    }
    if (then.flags & WITH_ADD) {
        o.add = then.add;
        o.segments.push_back(ACS_IN(o.add, bytes_of(add_count)));
    }
}

/* The limit of weights whose sums over k inputs are about as large as the inputs. */
static float limit_of(int32_t k, int32_t act)
{
    return std::sqrt((act == ACT_RELU ? 6.0f : 3.0f) / static_cast<float>(k));
}

static std::string tail_of(after then)
{
    static const char *const acts[] = {"", " relu", " gelu", " tanh"};
    return std::string(then.flags & WITH_ADD ? " add" : "") + (then.flags & WITH_AFFINE ? " norm" : "") + acts[then.act];
}

static problem windows(image x, int32_t channels, int32_t window, int32_t stride, int32_t pad, after then)
{
    problem p = no_problem();
    p.channels = channels;
    p.height = x.height;
    p.width = x.width;
    p.out_height = (x.height + 2 * pad - window) / stride + 1;
    p.out_width = (x.width + 2 * pad - window) / stride + 1;
    p.window_rows = p.window_columns = window;
    p.stride = stride;
    p.pad = pad;
    p.window_magic = magic_of(window * window);
    p.column_magic = magic_of(window);
    p.flags = then.flags;
    p.act = then.act;
    return p;
}

static std::string text_of(image x, int32_t channels, int32_t window, int32_t stride, after then)
{
    return std::to_string(x.channels) + ">" + std::to_string(channels) + " " + std::to_string(window) + "x" +
           std::to_string(window) + "/" + std::to_string(stride) + " @" + std::to_string(x.height) + tail_of(then);
}

image builder::conv(image x, int32_t channels, int32_t window, int32_t stride, int32_t pad, after then)
{
    problem p = windows(x, x.channels, window, stride, pad, then);
    p.m = channels;
    p.n = p.out_height * p.out_width;
    p.k = p.a_row = x.channels * window * window;
    p.y_row = p.add_row = p.n;
    const image y = {nullptr, channels, p.out_height, p.out_width};
    const size_t weight_count = static_cast<size_t>(p.m) * static_cast<size_t>(p.k);
    operation &o = push(CONV, "conv " + text_of(x, channels, window, stride, then), p);

    o.x = x.data;
    o.w = weights(weight_count, limit_of(p.k, then.act));
    o.y = where_.room(y.count());
    o.segments = {ACS_IN(o.x, bytes_of(x.count())), ACS_IN(o.w, bytes_of(weight_count)), ACS_OUT(o.y, bytes_of(y.count()))};
    finish(o, channels, then, y.count());
    return {o.y, channels, p.out_height, p.out_width};
}

image builder::pool(image x, int32_t window, int32_t stride, int32_t pad, after then)
{
    const problem p = windows(x, x.channels, window, stride, pad, then);
    const image y = {where_.room(static_cast<size_t>(x.channels) * static_cast<size_t>(p.out_height * p.out_width)),
                     x.channels, p.out_height, p.out_width};
    operation &o = push(POOL, "pool " + text_of(x, x.channels, window, stride, then), p);

    o.x = x.data;
    o.y = y.data;
    o.segments = {ACS_IN(o.x, bytes_of(x.count())), ACS_OUT(o.y, bytes_of(y.count()))};
    finish(o, x.channels, then, y.count());
    return y;
}

image builder::average(image x)
{
    problem p = no_problem();
    p.rows = x.channels;
    p.columns = x.height * x.width;
    p.scale = 1.0f / static_cast<float>(p.columns);
    const image y = {where_.room(static_cast<size_t>(x.channels)), x.channels, 1, 1};
    operation &o = push(AVERAGE, "average " + std::to_string(p.rows) + " of " + std::to_string(p.columns), p);

    o.x = x.data;
    o.y = y.data;
    o.segments = {ACS_IN(o.x, bytes_of(x.count())), ACS_OUT(o.y, bytes_of(y.count()))};
    return y;
}

image builder::elements(image x, after then)
{
    problem p = no_problem();
    p.rows = x.channels;
    p.columns = x.height * x.width;
    p.flags = then.flags;
    p.act = then.act;
    const image y = {where_.room(x.count()), x.channels, x.height, x.width};
    operation &o = push(ELEMENTS, "elements " + std::to_string(p.rows) + "x" + std::to_string(p.columns) + tail_of(then), p);

    o.x = x.data;
    o.y = y.data;
    o.segments = {ACS_IN(o.x, bytes_of(x.count())), ACS_OUT(o.y, bytes_of(y.count()))};
    finish(o, x.channels, then, x.count());
    return y;
}

float *builder::dense(const float *x, int32_t m, int32_t k, int32_t n, after then, float *to, int32_t y_row)
{
    problem p = no_problem();
    p.m = m;
    p.n = n;
    p.k = p.a_row = p.b_n = k;
    p.b_k = 1;
    p.y_row = y_row ? y_row : n;
    p.add_row = n;
    p.flags = then.flags;
    p.act = then.act;
    const size_t rows = static_cast<size_t>(m), depth = static_cast<size_t>(k), columns = static_cast<size_t>(n);
    operation &o = push(MATMUL, "dense " + std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n) +
                                    tail_of(then), p);

    o.x = x;
    o.w = weights(depth * columns, limit_of(k, then.act));
    o.y = to ? to : where_.room(rows * columns);
    o.segments = {ACS_IN(o.x, bytes_of(rows * depth)), ACS_IN(o.w, bytes_of(depth * columns)),
                  ACS_TILE_OUT(o.y, bytes_of(columns), rows, bytes_of(static_cast<size_t>(p.y_row)))};
    finish(o, n, then, rows * columns);
    return o.y;
}

float *builder::products(const std::string &name, const problem &p, const float *a, size_t a_count, const float *b,
                         size_t b_count, size_t y_count)
{
    operation &o = push(MATMUL, name, p);

    o.x = a;
    o.w = b;
    o.y = where_.room(y_count);
    o.segments = {ACS_IN(a, bytes_of(a_count)), ACS_IN(b, bytes_of(b_count)), ACS_OUT(o.y, bytes_of(y_count))};
    return o.y;
}

float *builder::softmax(const float *x, int32_t rows, int32_t columns)
{
    problem p = no_problem();
    p.rows = rows;
    p.columns = columns;
    const size_t count = static_cast<size_t>(rows) * static_cast<size_t>(columns);
    operation &o = push(SOFTMAX, "softmax " + std::to_string(rows) + "x" + std::to_string(columns), p);

    o.x = x;
    o.y = where_.room(count);
    o.segments = {ACS_IN(x, bytes_of(count)), ACS_OUT(o.y, bytes_of(count))};
    return o.y;
}

float *builder::layer_norm(const float *x, int32_t rows, int32_t columns, const float *add)
{
    problem p = no_problem();
    p.rows = rows;
    p.columns = columns;
    p.flags = WITH_AFFINE | (add ? WITH_ADD : 0);
    const size_t count = static_cast<size_t>(rows) * static_cast<size_t>(columns);
    operation &o = push(LAYER_NORM, "layer norm " + std::to_string(rows) + "x" + std::to_string(columns), p);

    o.x = x;
    o.y = where_.room(count);
    o.segments = {ACS_IN(x, bytes_of(count)), ACS_OUT(o.y, bytes_of(count))};
    finish(o, columns, {p.flags, ACT_NONE, add}, count);
    return o.y;
}

void builder::embedding(const float *index, int32_t rows, int32_t tables, int32_t table_rows, int32_t lookups,
                        int32_t columns, float *to, int32_t y_row)
{
    problem p = no_problem();
    p.rows = rows;
    p.columns = columns;
    p.tables = tables;
    p.table_rows = table_rows;
    p.lookups = lookups;
    p.y_row = y_row;
    const size_t bags = static_cast<size_t>(rows) * static_cast<size_t>(tables);
    const size_t wide = static_cast<size_t>(columns), all = static_cast<size_t>(tables) * static_cast<size_t>(table_rows);
    operation &o = push(EMBEDDING, "embedding " + std::to_string(rows) + " of " + std::to_string(tables) + "x" +
                                       std::to_string(table_rows), p);

    o.x = index;
    o.w = weights(all * wide, 1);
    o.y = to;
    o.segments = {ACS_IN(index, bytes_of(bags * static_cast<size_t>(lookups))), ACS_IN(o.w, bytes_of(all * wide)),
                  ACS_TILE_OUT(to, bytes_of(static_cast<size_t>(tables) * wide), static_cast<size_t>(rows),
                               bytes_of(static_cast<size_t>(y_row)))};
}

float *builder::interaction(const float *x, int32_t rows, int32_t features, int32_t columns)
{
    problem p = no_problem();
    p.rows = rows;
    p.tables = features;
    p.columns = columns;
    p.y_row = columns + features * (features - 1) / 2;
    const size_t samples = static_cast<size_t>(rows);
    operation &o = push(INTERACTION, "interaction " + std::to_string(rows) + "x" + std::to_string(features) + "x" +
                                         std::to_string(columns), p);

    o.x = x;
    o.y = where_.room(samples * static_cast<size_t>(p.y_row));
    o.segments = {ACS_IN(x, bytes_of(samples * static_cast<size_t>(features * columns))),
                  ACS_OUT(o.y, bytes_of(samples * static_cast<size_t>(p.y_row)))};
    return o.y;
}

void builder::output(float *p, size_t count)
{
    instance_.output = p;
    instance_.outputs = count;
}

} // namespace variants

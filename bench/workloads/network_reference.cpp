/*
 * Owns the oracle of networks: each layer as its definition reads, in double precision, one after another, on maps that
 * know their borders. Called by network::check, once per program; never launches anything.
 */
#include "network_reference.h"

#include <algorithm>
#include <cmath>

#include "check.h"

namespace bench {

namespace {

/* A feature map that answers for every place; outside of it there are zeros. */
struct map {
    int c, h, w;
    std::vector<double> v;

    map(const tensor &t, std::vector<double> values) : c(t.c), h(t.h), w(t.w), v(std::move(values)) {}
    explicit map(const tensor &t) : map(t, std::vector<double>(static_cast<size_t>(t.size()))) {}
    bool inside(int y, int x) const { return y >= 0 && y < h && x >= 0 && x < w; }
    double &at(int k, int y, int x) { return v[static_cast<size_t>((k * h + y) * w + x)]; }
    double get(int k, int y, int x) const { return inside(y, x) ? v[static_cast<size_t>((k * h + y) * w + x)] : 0; }
};

double act_of(activation act, double v)
{
    if (act == RELU)
        return std::max(v, 0.0);
    if (act == SIGMOID)
        return 1 / (1 + std::exp(-v));
    return act == TANH ? std::tanh(v) : v;
}

/* One output of one filter over the channels [first, end); w(channel, row, column) is the filter. */
template <class W> double window_sum(const map &x, int first, int end, int oy, int ox, int kernel, int stride, W w)
{
    const int reach = kernel / 2;
    double sum = 0;
    for (int c = first; c < end; c++)
        for (int dy = -reach; dy <= reach; dy++)
            for (int dx = -reach; dx <= reach; dx++)
                sum += x.get(c, oy * stride + dy, ox * stride + dx) * w(c, dy + reach, dx + reach);
    return sum;
}

} // namespace

void reference::run(const model &m)
{
    restart();
    m.forward(*this);
}

void reference::make(const tensor &t)
{
    data_[t.key].assign(static_cast<size_t>(t.size()), NAN);
}

std::vector<double> reference::contents(const tensor &t) const
{
    const auto from = data_.at(t.key).begin() + t.first;
    return std::vector<double>(from, from + t.size());
}

void reference::store(const tensor &t, const std::vector<double> &v)
{
    std::copy(v.begin(), v.end(), data_.at(t.key).begin() + t.first);
}

std::vector<double> reference::weights(const drawn &d) const
{
    return random_contents(static_cast<size_t>(d.count), weight_seed(seed_, d.key), d.low, d.high);
}

void reference::take_image(const tensor &y, uint32_t image)
{
    const std::vector<float> pixels = image_pixels(y, image);
    store(y, std::vector<double>(pixels.begin(), pixels.end()));
}

void reference::take(const conv_layer &l)
{
    const std::vector<double> w = l.weights ? contents(*l.weights) : weights(l.w);
    const std::vector<float> fold = fold_values(l.w.key, l.y.c);
    const map x(l.x, contents(l.x)), add(l.y, l.add ? contents(*l.add) : std::vector<double>());
    const int k = l.kernel;
    map y(l.y);

    for (int o = 0; o < y.c; o++)
        for (int oy = 0; oy < y.h; oy++)
            for (int ox = 0; ox < y.w; ox++) {
                double v = l.depthwise ? window_sum(x, o, o + 1, oy, ox, k, l.stride,
                                                    [&](int c, int r, int q) {
                                                        return w[static_cast<size_t>((c * k + r) * k + q)];
                                                    })
                                       : window_sum(x, 0, x.c, oy, ox, k, l.stride, [&](int c, int r, int q) {
                                             return w[static_cast<size_t>(((c * k + r) * k + q) * y.c + o)];
                                         });
                v = v * fold[static_cast<size_t>(o)] + fold[static_cast<size_t>(y.c + o)];
                y.at(o, oy, ox) = act_of(l.act, l.add ? v + add.get(o, oy, ox) : v);
            }
    store(l.y, y.v);
}

void reference::take(const pool_layer &l)
{
    const map x(l.x, contents(l.x));
    map y(l.y);

    for (int c = 0; c < y.c; c++)
        for (int oy = 0; oy < y.h; oy++)
            for (int ox = 0; ox < y.w; ox++) {
                std::vector<double> seen;
                for (int n = 0; n < 9; n++)
                    if (x.inside(oy * l.stride + n / 3 - 1, ox * l.stride + n % 3 - 1))
                        seen.push_back(x.get(c, oy * l.stride + n / 3 - 1, ox * l.stride + n % 3 - 1));
                double total = 0;
                for (double v : seen)
                    total += v;
                y.at(c, oy, ox) = l.largest ? *std::max_element(seen.begin(), seen.end())
                                            : total / static_cast<double>(seen.size());
            }
    store(l.y, y.v);
}

void reference::take(const sum_layer &l)
{
    const std::vector<double> drawn_factors = l.draws ? weights(l.w) : std::vector<double>();
    std::vector<double> y(static_cast<size_t>(l.y.size()), 0.0);

    for (size_t k = 0; k < l.terms.size(); k++) {
        const term &t = l.terms[k];
        const double factor = t.weighted ? contents(t.factor)[0] : (l.draws ? drawn_factors[k] : 1.0);
        const std::vector<double> x = contents(t.x);
        for (size_t i = 0; i < y.size(); i++)
            y[i] += factor * x[i];
    }
    for (double &v : y)
        v = act_of(l.act, v * static_cast<double>(l.scale));
    store(l.y, y);
}

void reference::take(const rows_layer &l)
{
    const std::vector<double> x = contents(l.x), w = weights(l.w);
    const size_t rows = static_cast<size_t>(l.y.size()), length = x.size() / (l.w.count ? 1 : rows);
    std::vector<double> y(rows, 0.0);
    double squares = 0;

    for (double v : x)
        squares += v * v;
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < length; i++)
            y[r] += l.w.count ? x[i] * w[r * length + i] : x[r * length + i] / static_cast<double>(length);
        y[r] = act_of(l.act, l.normalized ? y[r] / std::sqrt(squares / static_cast<double>(length)) : y[r]);
    }
    store(l.y, y);
}

void reference::take(const mix_layer &l)
{
    const std::vector<double> routing = contents(l.routing), experts = weights(l.experts);
    std::vector<double> y(static_cast<size_t>(l.y.size()), 0.0);

    for (size_t e = 0; e < routing.size(); e++)
        for (size_t i = 0; i < y.size(); i++)
            y[i] += routing[e] * experts[e * y.size() + i];
    store(l.y, y);
}

void reference::take_scale(const tensor &x, const tensor &factors, const tensor &y)
{
    const std::vector<double> factor = contents(factors);
    map scaled(x, contents(x));

    for (int c = 0; c < scaled.c; c++)
        for (int oy = 0; oy < scaled.h; oy++)
            for (int ox = 0; ox < scaled.w; ox++)
                scaled.at(c, oy, ox) *= factor[static_cast<size_t>(c)];
    store(y, scaled.v);
}

void reference::take_enlarge(const tensor &x, const tensor &y, int times)
{
    const map small(x, contents(x));
    map large(y);

    for (int c = 0; c < large.c; c++)
        for (int oy = 0; oy < large.h; oy++)
            for (int ox = 0; ox < large.w; ox++)
                large.at(c, oy, ox) = small.get(c, oy / times, ox / times);
    store(y, large.v);
}

void reference::take_softmax(const tensor &x, const tensor &y)
{
    std::vector<double> v = contents(x);
    const double largest = *std::max_element(v.begin(), v.end());
    double total = 0;

    for (double &p : v)
        total += p = std::exp(p - largest);
    for (double &p : v)
        p /= total;
    store(y, v);
}

} // namespace bench

/*
 * Owns DL of HuntKTm's suite: two convolutional towers whose features meet in one product. Called by huntktm.cu.
 *
 * A picture is [channel][row][column]. Tower: convolution 3x3, stride 2, 1 to 8 channels; maximum over 2x2; convolution
 * 3x3, stride 2, 8 to 16 channels. With both towers that comes to 8.5 pictures, near the published peak of memory.
 */
#include "huntktm.h"

#include "check.h"
#include "reduce.h"

namespace bench {

namespace {

enum { BLOCK = 256, FIRST = 8, SECOND = 16 };

/* conv(x, weights -> y), zero outside of the picture, then the positive part */
struct conv_args {
    unsigned threads;
    int from_channels, from, to; /* channels of x; widths of x and y */
    const float *x, *weights;
    float *y;
};

ACS_DUAL void conv_thread(const conv_args &a, unsigned i)
{
    const int to = a.to, column = static_cast<int>(i) % to, row = static_cast<int>(i) / to % to;
    const int channel = static_cast<int>(i / static_cast<unsigned>(to * to));
    float sum = 0;

    for (int c = 0; c < a.from_channels; c++)
        for (int k = 0; k < 9; k++) {
            const int y = 2 * row + k / 3 - 1, x = 2 * column + k % 3 - 1;
            if (y >= 0 && x >= 0 && y < a.from && x < a.from)
                sum += a.weights[(channel * a.from_channels + c) * 9 + k] *
                       a.x[(static_cast<size_t>(c) * a.from + y) * a.from + x];
        }
    a.y[i] = sum > 0 ? sum : 0.0f;
}

ACS_DUAL_KERNEL(conv, conv_args, BLOCK)

/* pool(x -> y): the greatest of two by two */
struct pool_args {
    unsigned threads;
    unsigned to; /* width of y; x has twice that */
    const float *x;
    float *y;
};

ACS_DUAL void pool_thread(const pool_args &a, unsigned i)
{
    /* Rows of all channels in one count: a row pair of x is one row of y. */
    const size_t row = i / a.to, column = i % a.to, from = 2 * static_cast<size_t>(a.to);
    const float *const p = a.x + 2 * row * from + 2 * column;
    a.y[i] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[from], p[from + 1]));
}

ACS_DUAL_KERNEL(pool, pool_args, BLOCK)

/* concat(u, v -> z) */
struct concat_args {
    unsigned threads;
    const float *u, *v;
    float *z;
};

ACS_DUAL void concat_thread(const concat_args &a, unsigned i)
{
    const unsigned half = a.threads / 2;
    a.z[i] = i < half ? a.u[i] : a.v[i - half];
}

ACS_DUAL_KERNEL(concat, concat_args, BLOCK)

/* dot(z, w -> res), over all of z */
struct layer_dot_args {
    reduce_space<double> space;
    const float *z, *w;
    double *res;
};

struct layer_dot_of {
    typedef layer_dot_args args;
    typedef double value;
    ACS_DUAL double none() { return 0; }
    ACS_DUAL double term(const args &a, size_t i) { return static_cast<double>(a.z[i]) * static_cast<double>(a.w[i]); }
    ACS_DUAL double join(double x, double y) { return x + y; }
    ACS_DUAL void store(const args &a, double sum) { *a.res = sum; }
};

BENCH_REDUCE_KERNEL(layer_dot, layer_dot_of)

/* A tower's features by their definition, straight from the input, in double precision. */
class tower_oracle {
public:
    tower_oracle(int width, uint64_t seed) : width_(width), seed_(seed) {}

    double feature(size_t i) const
    {
        const int to = width_ / 8, from = width_ / 4;
        const int column = static_cast<int>(i) % to, row = static_cast<int>(i) / to % to;
        const size_t channel = i / static_cast<size_t>(to * to);
        double sum = 0;
        for (size_t c = 0; c < FIRST; c++)
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++) {
                    const int y = 2 * row + dy, x = 2 * column + dx;
                    const size_t k = (channel * FIRST + c) * 9 + static_cast<size_t>(3 * dy + dx + 4);
                    if (y >= 0 && x >= 0 && y < from && x < from)
                        sum += random_content(k, seed_ + 2, -0.4f, 0.6f) * pooled(c, y, x);
                }
        return std::max(0.0, sum);
    }

private:
    double pooled(size_t channel, int row, int column) const
    {
        double most = 0; /* nothing is below 0 behind the first convolution */
        for (int k = 0; k < 4; k++)
            most = std::max(most, first(channel, 2 * row + k / 2, 2 * column + k % 2));
        return most;
    }
    double first(size_t channel, int row, int column) const
    {
        double sum = 0;
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                const int y = 2 * row + dy, x = 2 * column + dx;
                const size_t k = channel * 9 + static_cast<size_t>(3 * dy + dx + 4);
                if (y >= 0 && x >= 0 && y < width_ && x < width_)
                    sum += random_content(k, seed_ + 1, -0.4f, 0.6f) *
                           random_content(static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x),
                                          seed_, -0.5f, 1.0f);
            }
        return sum;
    }

    int width_;
    uint64_t seed_;
};

struct tower {
    float *x, *weights1, *conv1, *pool, *weights2, *conv2;
    uint64_t seed;
};

class towers : public program {
public:
    towers(memory &m, const sizes &s) : program(m), width_(s["width"]), area_(width_ * width_)
    {
        require(width_ % 8 == 0 && width_ > 0, "dl: width must be a multiple of 8");
        features_ = area_ / 64 * SECOND;
        ctas_ = reduce_ctas(2 * features_);
        for (unsigned k = 0; k < 2; k++) {
            tower &t = tower_[k];
            t.seed = 810 + 10 * k;
            t.x = random<float>(area_, t.seed, -0.5f, 1);
            t.weights1 = random<float>(FIRST * 9, t.seed + 1, -0.4f, 0.6f);
            t.weights2 = random<float>(SECOND * FIRST * 9, t.seed + 2, -0.4f, 0.6f);
            mark_result(t.conv1 = scratch<float>(area_ / 4 * FIRST));
            mark_result(t.pool = scratch<float>(area_ / 16 * FIRST));
            mark_result(t.conv2 = scratch<float>(features_));
        }
        w_ = random<float>(2 * features_, 830, 0.5f, 1.5f);
        mark_result(z_ = scratch<float>(2 * features_));
        mark_result(res_ = scratch<double>(1));
        partial_ = scratch<double>(ctas_);
        tickets_ = zeros<unsigned>(1);
    }

    void run(sink &s) override
    {
        const size_t n = 2 * features_;
        const acs_segment uses[] = {in(z_, n), in(w_, n), out(res_, 1), out(partial_, ctas_), inout(tickets_, 1)};
        begin();
        for (const tower &t : tower_)
            convolve(s, 1, FIRST, width_, t.x, t.weights1, t.conv1);
        for (const tower &t : tower_) {
            const size_t to = area_ / 16 * FIRST;
            launch(s, kernel_pool, BLOCK,
                   pool_args{static_cast<unsigned>(to), static_cast<unsigned>(width_ / 4), t.conv1, t.pool},
                   {in(t.conv1, 4 * to), out(t.pool, to)});
        }
        for (const tower &t : tower_)
            convolve(s, FIRST, SECOND, width_ / 4, t.pool, t.weights2, t.conv2);
        launch(s, kernel_concat, BLOCK, concat_args{static_cast<unsigned>(n), tower_[0].conv2, tower_[1].conv2, z_},
               {in(tower_[0].conv2, features_), in(tower_[1].conv2, features_), out(z_, n)});
        launch_grid(s, kernel_layer_dot, ctas_, REDUCE_BLOCK, layer_dot_args{{n, ctas_, partial_, tickets_}, z_, w_, res_},
                    uses,
                    5);
    }

    std::string check() override
    {
        const std::vector<float> z = get(z_, 2 * features_);
        const int width = static_cast<int>(width_);
        const tower_oracle first(width, tower_[0].seed), second(width, tower_[1].seed);
        double sum = 0;
        for (size_t i = 0; i < z.size(); i++)
            sum += static_cast<double>(z[i]) * random_content(i, 830, 0.5f, 1.5f);
        /*
         * A feature has 72 terms below 1, each with 9 roundings before and one behind: 1e-5. The product is checked
         * over the z that is there, of which a sample is checked; it has positive terms only, in double precision.
         */
        return first_of({differs_where("z", z, [&](size_t i) {
                             return i < features_ ? first.feature(i) : second.feature(i - features_);
                         }, 1e-5, 1e-5, 4000),
                         differs("res", get(res_, 1)[0], sum, 1e-9)});
    }

private:
    void convolve(sink &s, unsigned from_channels, unsigned to_channels, size_t width, const float *x,
                  const float *weights, float *y)
    {
        const size_t cells = width * width, to = cells / 4 * to_channels;
        launch(s, kernel_conv, BLOCK,
               conv_args{static_cast<unsigned>(to), static_cast<int>(from_channels), static_cast<int>(width),
                         static_cast<int>(width / 2), x, weights, y},
               {in(x, cells * from_channels), in(weights, from_channels * to_channels * 9), out(y, to)});
    }

    size_t width_, area_, features_;
    unsigned ctas_;
    tower tower_[2];
    float *w_, *z_;
    double *res_, *partial_;
    unsigned *tickets_;
};

} // namespace

workload huntktm_deep()
{
    return {"dl", "two convolutional towers, joined and weighed", "HuntKTm",
            {{"width", "pixels in a row, and rows; a multiple of 8", 32, 2048, 14000}},
            [](const sizes &) { return shape{8, 7, 2, 5}; }, make_huntktm<towers>, false};
}

} // namespace bench

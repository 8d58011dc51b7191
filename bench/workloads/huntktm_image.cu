/*
 * Owns IMG of HuntKTm's suite: a picture sharpened at its edges and blurred elsewhere. Called by huntktm.cu.
 */
#include "huntktm.h"

#include <limits>

#include "check.h"
#include "reduce.h"

namespace bench {

namespace {

enum { BLOCK = 256 };

ACS_DUAL unsigned clamped(int at, unsigned size)
{
    return at < 0 ? 0 : (static_cast<unsigned>(at) >= size ? size - 1 : static_cast<unsigned>(at));
}

/* The pixel at (x + dx, y + dy); the border's pixels repeat outside. */
ACS_DUAL float pixel(const float *im, unsigned width, unsigned x, unsigned y, int dx, int dy)
{
    const size_t row = clamped(static_cast<int>(y) + dy, width);
    return im[row * width + clamped(static_cast<int>(x) + dx, width)];
}

/* blur(im, weights -> y), a square of 2 * radius + 1 */
struct blur_args {
    unsigned threads, width;
    const float *im, *weights;
    float *y;
};

template <int RADIUS> ACS_DUAL void blur(const blur_args &a, unsigned i)
{
    const unsigned x = i % a.width, y = i / a.width;
    float sum = 0;
    for (int dy = -RADIUS; dy <= RADIUS; dy++)
        for (int dx = -RADIUS; dx <= RADIUS; dx++)
            sum += a.weights[(dy + RADIUS) * (2 * RADIUS + 1) + dx + RADIUS] * pixel(a.im, a.width, x, y, dx, dy);
    a.y[i] = sum;
}

ACS_DUAL void blur3_thread(const blur_args &a, unsigned i)
{
    blur<1>(a, i);
}

ACS_DUAL_KERNEL(blur3, blur_args, BLOCK)

ACS_DUAL void blur5_thread(const blur_args &a, unsigned i)
{
    blur<2>(a, i);
}

ACS_DUAL_KERNEL(blur5, blur_args, BLOCK)

/* sobel(im -> y): length of the gradient. */
struct sobel_args {
    unsigned threads, width;
    const float *im;
    float *y;
};

ACS_DUAL void sobel_thread(const sobel_args &a, unsigned i)
{
    const unsigned x = i % a.width, y = i / a.width, w = a.width;
    const float *const im = a.im;
    const float left = pixel(im, w, x, y, -1, -1) + 2 * pixel(im, w, x, y, -1, 0) + pixel(im, w, x, y, -1, 1);
    const float right = pixel(im, w, x, y, 1, -1) + 2 * pixel(im, w, x, y, 1, 0) + pixel(im, w, x, y, 1, 1);
    const float above = pixel(im, w, x, y, -1, -1) + 2 * pixel(im, w, x, y, 0, -1) + pixel(im, w, x, y, 1, -1);
    const float below = pixel(im, w, x, y, -1, 1) + 2 * pixel(im, w, x, y, 0, 1) + pixel(im, w, x, y, 1, 1);
    a.y[i] = sqrtf((right - left) * (right - left) + (below - above) * (below - above));
}

ACS_DUAL_KERNEL(sobel, sobel_args, BLOCK)

/* max(im -> mx), min(im -> mn): exact, and from a neutral element that is none of the picture's values. */
struct extreme_args {
    reduce_space<float> space;
    const float *im;
    float *y;
};

struct greatest {
    typedef extreme_args args;
    typedef float value;
    ACS_DUAL float none() { return -3.4e38f; }
    ACS_DUAL float term(const args &a, size_t i) { return a.im[i]; }
    ACS_DUAL float join(float x, float y) { return x > y ? x : y; }
    ACS_DUAL void store(const args &a, float v) { *a.y = v; }
};

struct least : greatest {
    ACS_DUAL float none() { return 3.4e38f; }
    ACS_DUAL float join(float x, float y) { return x < y ? x : y; }
};

BENCH_REDUCE_KERNEL(max, greatest)
BENCH_REDUCE_KERNEL(min, least)

/* extend(mn, mx -> +im) */
struct extend_args {
    unsigned threads;
    const float *mn, *mx;
    float *im;
};

ACS_DUAL void extend_thread(const extend_args &a, unsigned i)
{
    const float v = 5 * (a.im[i] - *a.mn) / (*a.mx - *a.mn);
    a.im[i] = v < 1 ? v : 1.0f;
}

ACS_DUAL_KERNEL(extend, extend_args, BLOCK)

/* unsharpen(im, blurred -> y) */
struct unsharpen_args {
    unsigned threads;
    const float *im, *blurred;
    float *y;
};

ACS_DUAL void unsharpen_thread(const unsharpen_args &a, unsigned i)
{
    const float v = 1.5f * a.im[i] - 0.5f * a.blurred[i];
    a.y[i] = v < 0 ? 0.0f : (v > 1 ? 1.0f : v);
}

ACS_DUAL_KERNEL(unsharpen, unsharpen_args, BLOCK)

/* combine(u, v, mask -> y): u where the mask is 1, v where it is 0 */
struct combine_args {
    unsigned threads;
    const float *u, *v, *mask;
    float *y;
};

ACS_DUAL void combine_thread(const combine_args &a, unsigned i)
{
    a.y[i] = a.u[i] * a.mask[i] + a.v[i] * (1 - a.mask[i]);
}

ACS_DUAL_KERNEL(combine, combine_args, BLOCK)

std::vector<float> gaussian(int radius, double sigma)
{
    std::vector<float> weights;
    double sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int y = -radius; y <= radius; y++)
            for (int x = -radius; x <= radius; x++) {
                const double w = std::exp(-(x * x + y * y) / (2 * sigma * sigma));
                if (pass == 0)
                    sum += w;
                else
                    weights.push_back(static_cast<float>(w / sum));
            }
    return weights;
}

/* A pixel of each picture by its definition, in double precision, straight from the input. */
class image_oracle {
public:
    explicit image_oracle(size_t width) : width_(static_cast<int>(width)) {}

    double image(int x, int y) const
    {
        const int last = width_ - 1, row = std::min(std::max(y, 0), last), column = std::min(std::max(x, 0), last);
        return random_content(static_cast<size_t>(row) * static_cast<size_t>(width_) + static_cast<size_t>(column), 701,
                              0.0f, 1.0f);
    }
    double blurred(int x, int y, int radius, double sigma) const
    {
        /* Blurred pixels outside of the picture repeat those of its border, as sobel sees them. */
        x = std::min(std::max(x, 0), width_ - 1);
        y = std::min(std::max(y, 0), width_ - 1);
        double sum = 0, weights = 0;
        for (int dy = -radius; dy <= radius; dy++)
            for (int dx = -radius; dx <= radius; dx++) {
                const double w = std::exp(-(dx * dx + dy * dy) / (2 * sigma * sigma));
                sum += w * image(x + dx, y + dy);
                weights += w;
            }
        return sum / weights;
    }
    double edge(int x, int y, int radius, double sigma) const
    {
        double p[3][3];
        for (int dy = 0; dy < 3; dy++)
            for (int dx = 0; dx < 3; dx++)
                p[dy][dx] = blurred(x + dx - 1, y + dy - 1, radius, sigma);
        return std::hypot(p[0][2] + 2 * p[1][2] + p[2][2] - p[0][0] - 2 * p[1][0] - p[2][0],
                          p[2][0] + 2 * p[2][1] + p[2][2] - p[0][0] - 2 * p[0][1] - p[0][2]);
    }

private:
    int width_;
};

const double SMALL = 1, LARGE = 3, UNSHARP = 5; /* sigmas */

class image : public program {
public:
    image(memory &m, const sizes &s) : program(m), width_(s["width"]), n_(width_ * width_), oracle_(width_)
    {
        ctas_ = reduce_ctas(n_);
        im_ = random<float>(n_, 701, 0, 1);
        ks_ = values(gaussian(1, SMALL));
        kl_ = values(gaussian(2, LARGE));
        ku_ = values(gaussian(1, UNSHARP));
        for (float **p : {&bs_, &bl_, &bu_, &ms_, &ml_, &iu_, &i2_, &i3_})
            mark_result(*p = scratch<float>(n_));
        for (float **p : {&mx_, &mn_})
            mark_result(*p = scratch<float>(1));
        for (unsigned k = 0; k < 2; k++) {
            partial_[k] = scratch<float>(ctas_);
            tickets_[k] = zeros<unsigned>(1);
        }
    }

    void run(sink &s) override
    {
        const unsigned n = static_cast<unsigned>(n_), w = static_cast<unsigned>(width_);
        begin();
        launch(s, kernel_blur3, BLOCK, blur_args{n, w, im_, ks_, bs_}, {in(im_, n_), in(ks_, 9), out(bs_, n_)});
        launch(s, kernel_blur5, BLOCK, blur_args{n, w, im_, kl_, bl_}, {in(im_, n_), in(kl_, 25), out(bl_, n_)});
        launch(s, kernel_blur3, BLOCK, blur_args{n, w, im_, ku_, bu_}, {in(im_, n_), in(ku_, 9), out(bu_, n_)});
        launch(s, kernel_sobel, BLOCK, sobel_args{n, w, bs_, ms_}, {in(bs_, n_), out(ms_, n_)});
        launch(s, kernel_sobel, BLOCK, sobel_args{n, w, bl_, ml_}, {in(bl_, n_), out(ml_, n_)});
        extreme(s, kernel_max, 0, mx_);
        extreme(s, kernel_min, 1, mn_);
        launch(s, kernel_extend, BLOCK, extend_args{n, mn_, mx_, ml_}, {in(mn_, 1), in(mx_, 1), inout(ml_, n_)});
        launch(s, kernel_unsharpen, BLOCK, unsharpen_args{n, im_, bu_, iu_}, {in(im_, n_), in(bu_, n_), out(iu_, n_)});
        launch(s, kernel_combine, BLOCK, combine_args{n, iu_, bl_, ml_, i2_},
               {in(iu_, n_), in(bl_, n_), in(ml_, n_), out(i2_, n_)});
        launch(s, kernel_combine, BLOCK, combine_args{n, i2_, bs_, ms_, i3_},
               {in(i2_, n_), in(bs_, n_), in(ms_, n_), out(i3_, n_)});
    }

    /*
     * Pictures are sampled. The extremes would need every pixel: in pictures of more than 2^18 the program's own are
     * taken, after a look that no sampled pixel lies outside of them; a wrong one among them shows in the bits alone.
     */
    std::string check() override
    {
        const double mn = get(mn_, 1)[0], mx = get(mx_, 1)[0];
        std::string wrong = check_extremes(mn, mx);
        /* Blurs are means of numbers up to 1, with 25 roundings; edges are differences of some of them. */
        const double close = 2e-6;

        wrong = !wrong.empty() ? wrong : first_of({
            compare("bs", bs_, close, [&](int x, int y) { return small(x, y); }),
            compare("bl", bl_, close, [&](int x, int y) { return large(x, y); }),
            compare("bu", bu_, close, [&](int x, int y) { return oracle_.blurred(x, y, 1, UNSHARP); }),
            compare("ms", ms_, 10 * close, [&](int x, int y) { return small_edge(x, y); })});
        /* Extending divides by the range of the edges, about 1, and multiplies by 5. */
        return !wrong.empty() ? wrong : first_of({
            compare("ml", ml_, 100 * close, [&](int x, int y) { return mask(x, y, mn, mx); }),
            compare("iu", iu_, close, [&](int x, int y) { return unsharp(x, y); }),
            compare("i2", i2_, 100 * close, [&](int x, int y) { return inner(x, y, mn, mx); }),
            compare("i3", i3_, 200 * close, [&](int x, int y) {
                const double m = small_edge(x, y);
                return inner(x, y, mn, mx) * m + small(x, y) * (1 - m);
            })});
    }

private:
    void extreme(sink &s, const acs_dual_kernel &kernel, unsigned k, float *to)
    {
        const acs_segment uses[] = {in(ml_, n_), out(to, 1), out(partial_[k], ctas_), inout(tickets_[k], 1)};
        const extreme_args a = {{n_, ctas_, partial_[k], tickets_[k]}, ml_, to};
        launch_grid(s, kernel, ctas_, REDUCE_BLOCK, a, uses, 4);
    }

    double small(int x, int y) const { return oracle_.blurred(x, y, 1, SMALL); }
    double large(int x, int y) const { return oracle_.blurred(x, y, 2, LARGE); }
    double small_edge(int x, int y) const { return oracle_.edge(x, y, 1, SMALL); }
    double large_edge(int x, int y) const { return oracle_.edge(x, y, 2, LARGE); }
    double mask(int x, int y, double mn, double mx) const
    {
        return std::min(1.0, 5 * (large_edge(x, y) - mn) / (mx - mn));
    }
    double unsharp(int x, int y) const
    {
        const double v = oracle_.image(x, y) + 0.5 * (oracle_.image(x, y) - oracle_.blurred(x, y, 1, UNSHARP));
        return std::min(1.0, std::max(0.0, v));
    }
    double inner(int x, int y, double mn, double mx) const
    {
        const double m = mask(x, y, mn, mx);
        return unsharp(x, y) * m + large(x, y) * (1 - m);
    }

    std::string check_extremes(double mn, double mx)
    {
        const size_t step = n_ <= 1u << 18 ? 1 : (n_ / 20000) | 1;
        if (least_ > greatest_)
            for (size_t i = 0; i < n_; i += step) {
                const double v = large_edge(static_cast<int>(i % width_), static_cast<int>(i / width_));
                least_ = std::min(least_, v);
                greatest_ = std::max(greatest_, v);
            }
        if (step == 1)
            return first_of({differs("mn", mn, least_, 0, 2e-5), differs("mx", mx, greatest_, 0, 2e-5)});
        return mn <= least_ + 2e-5 && mx >= greatest_ - 2e-5 ? "" : "mn or mx lies inside of the range of the edges";
    }

    template <class W> std::string compare(const char *what, const float *p, double absolute, W want) const
    {
        return differs_where(what, get(p, n_), [&](size_t i) {
            return want(static_cast<int>(i % width_), static_cast<int>(i / width_));
        }, 0, absolute, 4000);
    }

    size_t width_, n_;
    unsigned ctas_;
    image_oracle oracle_;
    double least_ = std::numeric_limits<double>::infinity(), greatest_ = -least_;
    float *im_, *ks_, *kl_, *ku_, *bs_, *bl_, *bu_, *ms_, *ml_, *iu_, *i2_, *i3_, *mx_, *mn_, *partial_[2];
    unsigned *tickets_[2];
};

} // namespace

workload huntktm_image()
{
    return {"img", "a picture sharpened at its edges, blurred elsewhere", "HuntKTm",
            {{"width", "pixels in a row, and rows", 40, 2048, 17000}},
            [](const sizes &) { return shape{11, 11, 4, 6}; }, make_huntktm<image>, false};
}

} // namespace bench

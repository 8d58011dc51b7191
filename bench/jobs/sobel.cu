/*
 * Owns Sobel: an image is normalised, its edges found, smoothed and made binary, and the result blended with the image.
 * Called by acs-jobs.
 */
#include "work.h"

#include <cmath>

namespace bench {

ACS_DUAL int sobel_clamped(int at, int size)
{
    return at < 0 ? 0 : (at >= size ? size - 1 : at);
}

/* The pixel that is dx, dy from pixel i of a square image; the border's pixels repeat outside. */
ACS_DUAL float sobel_at(const float *im, unsigned width, unsigned i, int dx, int dy)
{
    const int w = static_cast<int>(width), x = static_cast<int>(i % width) + dx, y = static_cast<int>(i / width) + dy;
    return im[sobel_clamped(y, w) * w + sobel_clamped(x, w)];
}

/* normalise(in -> y) */
struct sobel_normalise {
    enum { BLOCK = 256 };
    ACS_DUAL void thread(unsigned i, unsigned count, const uint8_t *in, float *y)
    {
        if (i < count)
            y[i] = static_cast<float>(in[i]) / 255.0f;
    }
};

/* edges(im -> y): length of the gradient */
struct sobel_edges {
    enum { BLOCK = 256 };
    ACS_DUAL void thread(unsigned i, unsigned w, const float *im, float *y)
    {
        if (i >= w * w)
            return;
        const float left = sobel_at(im, w, i, -1, -1) + 2 * sobel_at(im, w, i, -1, 0) + sobel_at(im, w, i, -1, 1);
        const float right = sobel_at(im, w, i, 1, -1) + 2 * sobel_at(im, w, i, 1, 0) + sobel_at(im, w, i, 1, 1);
        const float above = sobel_at(im, w, i, -1, -1) + 2 * sobel_at(im, w, i, 0, -1) + sobel_at(im, w, i, 1, -1);
        const float below = sobel_at(im, w, i, -1, 1) + 2 * sobel_at(im, w, i, 0, 1) + sobel_at(im, w, i, 1, 1);
        y[i] = sqrtf((right - left) * (right - left) + (below - above) * (below - above));
    }
};

/* mean(im -> y), 3 by 3 */
struct sobel_mean {
    enum { BLOCK = 256 };
    ACS_DUAL void thread(unsigned i, unsigned width, const float *im, float *y)
    {
        float sum = 0;
        if (i >= width * width)
            return;
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++)
                sum += sobel_at(im, width, i, dx, dy);
        y[i] = sum / 9;
    }
};

/* threshold(im -> mask) */
struct sobel_threshold {
    enum { BLOCK = 256 };
    ACS_DUAL void thread(unsigned i, unsigned count, const float *im, uint8_t *mask)
    {
        if (i < count)
            mask[i] = im[i] > 1.25f;
    }
};

/* blend(im, mask -> y) */
struct sobel_blend {
    enum { BLOCK = 256 };
    ACS_DUAL void thread(unsigned i, unsigned count, const float *im, const uint8_t *mask, uint8_t *y)
    {
        if (i < count)
            y[i] = static_cast<uint8_t>(0.5f * 255.0f * im[i] + (mask[i] ? 127.0f : 0.0f));
    }
};

static const auto normalise = BENCH_PLAIN_KERNEL(sobel_normalise);
static const auto edges = BENCH_PLAIN_KERNEL(sobel_edges);
static const auto mean = BENCH_PLAIN_KERNEL(sobel_mean);
static const auto threshold = BENCH_PLAIN_KERNEL(sobel_threshold);
static const auto blend = BENCH_PLAIN_KERNEL(sobel_blend);

namespace {

class sobel : public work {
public:
    explicit sobel(unsigned width) : width_(width), count_(static_cast<size_t>(width) * width) {}

    std::vector<size_t> buffers() const override
    {
        const size_t floats = count_ * sizeof(float);
        return {count_, floats, floats, floats, count_, count_};
    }
    size_t in_bytes() const override { return count_; }
    size_t out_bytes() const override { return count_; }
    unsigned ops() const override { return 7; }

    /* Flat patches, so that there are edges, and a little noise. */
    void fill(uint64_t job, void *in) const override
    {
        for (size_t i = 0; i < count_; i++) {
            const size_t patch = i / width_ / 8 * width_ + i % width_ / 8;
            as<uint8_t>(in)[i] = static_cast<uint8_t>(200 * random_unit(job, patch) + 20 * random_unit(job + 77, i));
        }
    }

    void issue(job_sink &s, const buffer_set &d, const void *in, void *out) const override
    {
        uint8_t *const picture = as<uint8_t>(d[0]), *const mask = as<uint8_t>(d[4]), *const result = as<uint8_t>(d[5]);
        float *const im = as<float>(d[1]), *const gradient = as<float>(d[2]), *const smooth = as<float>(d[3]);
        const unsigned n = static_cast<unsigned>(count_);
        const size_t floats = count_ * sizeof(float);

        s.copy(picture, in, n);
        s.run(normalise, n, {ACS_IN(picture, n), ACS_OUT(im, floats)}, n, picture, im);
        s.run(edges, n, {ACS_IN(im, floats), ACS_OUT(gradient, floats)}, width_, im, gradient);
        s.run(mean, n, {ACS_IN(gradient, floats), ACS_OUT(smooth, floats)}, width_, gradient, smooth);
        s.run(threshold, n, {ACS_IN(smooth, floats), ACS_OUT(mask, n)}, n, smooth, mask);
        s.run(blend, n, {ACS_IN(im, floats), ACS_IN(mask, n), ACS_OUT(result, n)}, n, im, mask, result);
        s.copy(out, result, n);
    }

    /* In floats, as a threshold forgives no rounding; without fused operations the GPU has the CPU's bits. */
    std::string check(const void *in, const void *out) const override
    {
        std::vector<float> im(count_), gradient(count_);
        for (size_t i = 0; i < count_; i++)
            im[i] = static_cast<float>(as<uint8_t>(in)[i]) / 255.0f;
        for (size_t i = 0; i < count_; i++)
            gradient[i] = gradient_at(im, i);
        for (size_t i = 0; i < count_; i++) {
            float sum = 0;
            for (int k = 0; k < 9; k++)
                sum += sobel_at(gradient.data(), width_, static_cast<unsigned>(i), k % 3 - 1, k / 3 - 1);
            const float expected = 0.5f * 255.0f * im[i] + (sum / 9 > 1.25f ? 127.0f : 0.0f);
            if (as<uint8_t>(out)[i] != static_cast<uint8_t>(expected))
                return "pixel " + std::to_string(i) + " is " + std::to_string(as<uint8_t>(out)[i]) + ", not " +
                       std::to_string(static_cast<unsigned>(expected));
        }
        return "";
    }

private:
    /* By the two 3 by 3 matrices, column after column and row after row, in which order sums are the kernel's. */
    float gradient_at(const std::vector<float> &im, size_t i) const
    {
        const int weights[] = {1, 2, 1};
        float side[4] = {0, 0, 0, 0}; /* left, right, above, below */
        for (int s = 0; s < 4; s++)
            for (int k = 0; k < 3; k++) {
                const int off = s % 2 ? 1 : -1, along = k - 1;
                const unsigned here = static_cast<unsigned>(i);
                side[s] += static_cast<float>(weights[k]) *
                           sobel_at(im.data(), width_, here, s < 2 ? off : along, s < 2 ? along : off);
            }
        const float across = side[1] - side[0], down = side[3] - side[2];
        return sqrtf(across * across + down * down);
    }

    const unsigned width_;
    const size_t count_;
};

} // namespace

std::unique_ptr<work> make_sobel(const std::string &size)
{
    return std::unique_ptr<work>(new sobel(preset{24, 256, 1024}.of(size)));
}

} // namespace bench

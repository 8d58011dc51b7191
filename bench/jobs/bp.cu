/*
 * Owns BP: a training step of a single layer by back propagation. The device makes the minibatch from a number that comes
 * with the weights. Called by acs-jobs.
 */
#include "work.h"

#include <cmath>

namespace bench {

/* A number in [-1, 1), from a hash; exact as a float. */
ACS_DUAL float bp_random(float seed, unsigned i)
{
    unsigned x = i * 2654435761u + static_cast<unsigned>(seed) * 40503u + 1;
    x = (x ^ (x >> 15)) * 2246822519u;
    x = (x ^ (x >> 13)) * 3266489917u;
    return static_cast<float>((x ^ (x >> 16)) >> 9) * (1.0f / 4194304.0f) - 1.0f;
}

/* generate(seed -> x, target): the seed lies behind `weights` numbers at w. */
struct bp_generate {
    enum { BLOCK = 256 };
    ACS_DUAL void thread(unsigned i, unsigned inputs, unsigned targets, unsigned weights, const float *w, float *x,
                         float *target)
    {
        if (i < inputs)
            x[i] = bp_random(w[weights], i);
        if (i < targets)
            target[i] = 0.5f * bp_random(w[weights], inputs + i);
    }
};

/* forward(x, w -> y): softsign of x times w */
struct bp_forward {
    enum { BLOCK = 256 };
    ACS_DUAL void thread(unsigned i, unsigned batch, unsigned inputs, unsigned outputs, const float *x, const float *w,
                         float *y)
    {
        float sum = 0;
        if (i >= batch * outputs)
            return;
        for (unsigned k = 0; k < inputs; k++)
            sum += x[i / outputs * inputs + k] * w[k * outputs + i % outputs];
        y[i] = sum / (1 + fabsf(sum));
    }
};

/* delta(y, target -> d): the error times the slope, which of softsign is (1 - |y|)^2 */
struct bp_delta {
    enum { BLOCK = 256 };
    ACS_DUAL void thread(unsigned i, unsigned count, const float *y, const float *target, float *d)
    {
        if (i < count) {
            const float slope = 1 - fabsf(y[i]);
            d[i] = (y[i] - target[i]) * slope * slope;
        }
    }
};

/* update(x, d, w -> trained) */
struct bp_update {
    enum { BLOCK = 256 };
    ACS_DUAL void thread(unsigned i, unsigned batch, unsigned inputs, unsigned outputs, const float *x, const float *d,
                         const float *w, float *trained)
    {
        float sum = 0;
        if (i >= inputs * outputs)
            return;
        for (unsigned b = 0; b < batch; b++)
            sum += x[b * inputs + i / outputs] * d[b * outputs + i % outputs];
        trained[i] = w[i] - 0.05f * sum / static_cast<float>(batch);
    }
};

static const auto generate = BENCH_PLAIN_KERNEL(bp_generate);
static const auto forward = BENCH_PLAIN_KERNEL(bp_forward);
static const auto delta = BENCH_PLAIN_KERNEL(bp_delta);
static const auto update = BENCH_PLAIN_KERNEL(bp_update);

namespace {

class bp : public work {
public:
    bp(unsigned batch, unsigned inputs, unsigned outputs)
        : batch_(batch), inputs_(inputs), outputs_(outputs), x_(batch * inputs), y_(batch * outputs), w_(inputs * outputs)
    {
    }

    /* Weights and seed; x; target; y; delta; trained weights. */
    std::vector<size_t> buffers() const override { return {in_bytes(), 4 * x_, 4 * y_, 4 * y_, 4 * y_, 4 * w_}; }
    size_t in_bytes() const override { return 4 * (w_ + 1); }
    size_t out_bytes() const override { return 4 * w_; }
    unsigned ops() const override { return 6; }

    void fill(uint64_t job, void *in) const override
    {
        fill_random(as<float>(in), w_, job, -0.2f, 0.2f);
        as<float>(in)[w_] = static_cast<float>(job % 65536);
    }

    void issue(job_sink &s, const buffer_set &d, const void *in, void *out) const override
    {
        float *const w = as<float>(d[0]), *const x = as<float>(d[1]), *const target = as<float>(d[2]);
        float *const y = as<float>(d[3]), *const error = as<float>(d[4]), *const trained = as<float>(d[5]);
        const acs_segment weights = ACS_IN(w, 4 * w_);

        s.copy(w, in, in_bytes());
        s.run(generate, x_ > y_ ? x_ : y_, {ACS_IN(w + w_, 4), ACS_OUT(x, 4 * x_), ACS_OUT(target, 4 * y_)},
              static_cast<unsigned>(x_), static_cast<unsigned>(y_), static_cast<unsigned>(w_), w, x, target);
        s.run(forward, y_, {ACS_IN(x, 4 * x_), weights, ACS_OUT(y, 4 * y_)}, batch_, inputs_, outputs_, x, w, y);
        s.run(delta, y_, {ACS_IN(y, 4 * y_), ACS_IN(target, 4 * y_), ACS_OUT(error, 4 * y_)}, static_cast<unsigned>(y_), y,
              target, error);
        s.run(update, w_, {ACS_IN(x, 4 * x_), ACS_IN(error, 4 * y_), weights, ACS_OUT(trained, 4 * w_)}, batch_, inputs_,
              outputs_, x, error, w, trained);
        s.copy(out, trained, 4 * w_);
    }

    std::string check(const void *in, const void *out) const override
    {
        const float *const w = as<float>(in);
        std::vector<double> trained(w, w + w_);
        for (size_t b = 0; b < batch_; b++)
            for (size_t o = 0; o < outputs_; o++) {
                double sum = 0;
                for (size_t k = 0; k < inputs_; k++)
                    sum += x_at(w, b, k) * static_cast<double>(w[k * outputs_ + o]);
                const double y = sum / (1 + std::fabs(sum)), slope = 1 / ((1 + std::fabs(sum)) * (1 + std::fabs(sum)));
                const double target = 0.5 * number(w, x_ + b * outputs_ + o), d = (y - target) * slope;
                for (size_t k = 0; k < inputs_; k++)
                    trained[k * outputs_ + o] -= 0.05 * x_at(w, b, k) * d / batch_;
            }
        return first_off(as<float>(out), trained, 1e-5);
    }

private:
    double number(const float *w, size_t i) const
    {
        return static_cast<double>(bp_random(w[w_], static_cast<unsigned>(i)));
    }
    double x_at(const float *w, size_t b, size_t k) const { return number(w, b * inputs_ + k); }

    const unsigned batch_, inputs_, outputs_;
    const size_t x_, y_, w_; /* elements */
};

} // namespace

std::unique_ptr<work> make_bp(const std::string &size)
{
    const unsigned batch = preset{8, 128, 256}.of(size), inputs = preset{12, 256, 512}.of(size);
    return std::unique_ptr<work>(new bp(batch, inputs, preset{5, 64, 256}.of(size)));
}

} // namespace bench

/*
 * Owns Hotspot: temperatures of a chip that is heated by its units and cooled by its surroundings, some explicit steps in
 * time. Called by acs-jobs.
 */
#include "work.h"

namespace bench {

/* step(t, power -> y): heat flows between neighbours and to the surroundings; no flow over the border. */
struct hotspot_step {
    enum { BLOCK = 256 };
    ACS_DUAL void thread(unsigned i, unsigned width, const float *t, const float *power, float *y)
    {
        if (i >= width * width)
            return;
        const unsigned u = i % width, v = i / width;
        const float here = t[i];
        const float left = u > 0 ? t[i - 1] : here, right = u + 1 < width ? t[i + 1] : here;
        const float above = v > 0 ? t[i - width] : here, below = v + 1 < width ? t[i + width] : here;
        y[i] = here + 0.1f * power[i] + 0.2f * (left + right - 2 * here) + 0.2f * (above + below - 2 * here) +
               0.01f * (80.0f - here);
    }
};

static const auto step = BENCH_PLAIN_KERNEL(hotspot_step);

namespace {

class hotspot : public work {
public:
    hotspot(unsigned width, unsigned steps)
        : width_(width), steps_(steps), count_(static_cast<size_t>(width) * width), bytes_(count_ * sizeof(float))
    {
    }

    std::vector<size_t> buffers() const override { return {bytes_, bytes_, bytes_}; }
    size_t in_bytes() const override { return 2 * bytes_; }
    size_t out_bytes() const override { return bytes_; }
    unsigned ops() const override { return 3 + steps_; }

    void fill(uint64_t job, void *in) const override
    {
        fill_random(as<float>(in), count_, job, 60, 100);
        fill_random(as<float>(in) + count_, count_, job + 77, 0, 1);
    }

    void issue(job_sink &s, const buffer_set &d, const void *in, void *out) const override
    {
        float *const power = as<float>(d[2]);
        s.copy(d[0], in, bytes_);
        s.copy(power, as<float>(in) + count_, bytes_);
        for (unsigned n = 0; n < steps_; n++) {
            const float *const from = as<float>(d[n % 2]);
            float *const to = as<float>(d[1 - n % 2]);
            s.run(step, count_, {ACS_IN(from, bytes_), ACS_IN(power, bytes_), ACS_OUT(to, bytes_)}, width_, from, power, to);
        }
        s.copy(out, d[steps_ % 2], bytes_);
    }

    std::string check(const void *in, const void *out) const override
    {
        std::vector<double> t(as<float>(in), as<float>(in) + count_), before;
        const float *const power = as<float>(in) + count_;
        const size_t w = width_;
        for (unsigned n = 0; n < steps_; n++) {
            before = t;
            for (size_t i = 0; i < count_; i++) {
                double flow = 0;
                flow += i % w > 0 ? before[i - 1] - before[i] : 0;
                flow += i % w + 1 < w ? before[i + 1] - before[i] : 0;
                flow += i >= w ? before[i - w] - before[i] : 0;
                flow += i + w < count_ ? before[i + w] - before[i] : 0;
                t[i] += 0.1 * static_cast<double>(power[i]) + 0.2 * flow + 0.01 * (80 - before[i]);
            }
        }
        return first_off(as<float>(out), t, 1e-5);
    }

private:
    const unsigned width_, steps_;
    const size_t count_, bytes_;
};

} // namespace

std::unique_ptr<work> make_hotspot(const std::string &size)
{
    return std::unique_ptr<work>(new hotspot(preset{20, 256, 1024}.of(size), preset{3, 8, 16}.of(size)));
}

} // namespace bench

/*
 * Owns GEMM: a product of two square matrices, a tile of the result for each CTA. Called by acs-jobs.
 */
#include "work.h"

namespace bench {

enum { GEMM_TILE = 16 };

/* multiply(a, b -> c): phases load a tile of both and multiply them, in turn. */
struct gemm_multiply {
    enum { BLOCK = GEMM_TILE * GEMM_TILE };
    struct shared {
        float a[GEMM_TILE][GEMM_TILE], b[GEMM_TILE][GEMM_TILE];
        float sum[BLOCK];
    };

    ACS_DUAL int phases(unsigned width, const float *, const float *, float *)
    {
        return static_cast<int>(2 * (width / GEMM_TILE));
    }

    ACS_DUAL void phase(int phase, unsigned block, unsigned thread, shared &s, unsigned width, const float *a,
                        const float *b, float *c)
    {
        const unsigned tiles = width / GEMM_TILE, x = thread % GEMM_TILE, y = thread / GEMM_TILE;
        const unsigned column = block % tiles * GEMM_TILE + x, row = block / tiles * GEMM_TILE + y;
        const unsigned k = static_cast<unsigned>(phase) / 2 * GEMM_TILE;

        if (phase % 2 == 0) {
            s.a[y][x] = a[row * width + k + x];
            s.b[y][x] = b[(k + y) * width + column];
            return;
        }
        float sum = phase == 1 ? 0 : s.sum[thread];
        for (unsigned j = 0; j < GEMM_TILE; j++)
            sum += s.a[y][j] * s.b[j][x];
        s.sum[thread] = sum;
        if (k + GEMM_TILE == width)
            c[row * width + column] = sum;
    }
};

static const auto multiply = BENCH_PLAIN_BLOCK_KERNEL(gemm_multiply);

namespace {

class gemm : public work {
public:
    explicit gemm(unsigned width)
        : width_(width), count_(static_cast<size_t>(width) * width), bytes_(count_ * sizeof(float))
    {
    }

    std::vector<size_t> buffers() const override { return {bytes_, bytes_, bytes_}; }
    size_t in_bytes() const override { return 2 * bytes_; }
    size_t out_bytes() const override { return bytes_; }
    unsigned ops() const override { return 4; }
    void fill(uint64_t job, void *in) const override { fill_random(as<float>(in), 2 * count_, job, -1, 1); }

    void issue(job_sink &s, const buffer_set &d, const void *in, void *out) const override
    {
        float *const a = as<float>(d[0]), *const b = as<float>(d[1]), *const c = as<float>(d[2]);
        s.copy(a, in, bytes_);
        s.copy(b, as<float>(in) + count_, bytes_);
        s.run(multiply, count_, {ACS_IN(a, bytes_), ACS_IN(b, bytes_), ACS_OUT(c, bytes_)}, width_, a, b, c);
        s.copy(out, c, bytes_);
    }

    std::string check(const void *in, const void *out) const override
    {
        const float *const a = as<float>(in), *const b = a + count_;
        std::vector<double> c(count_, 0.0);
        for (size_t i = 0; i < width_; i++)
            for (size_t k = 0; k < width_; k++)
                for (size_t j = 0; j < width_; j++)
                    c[i * width_ + j] +=
                        static_cast<double>(a[i * width_ + k]) * static_cast<double>(b[k * width_ + j]);
        return first_off(as<float>(out), c, 1e-4);
    }

private:
    const unsigned width_;
    const size_t count_, bytes_;
};

} // namespace

std::unique_ptr<work> make_gemm(const std::string &size)
{
    return std::unique_ptr<work>(new gemm(preset{32, 256, 512}.of(size)));
}

} // namespace bench

/*
 * Owns ML of HuntKTm's suite: an ensemble of naive Bayes and ridge regression over the same rows. Called by huntktm.cu.
 *
 * A feature of all rows, and a class of all rows, is one contiguous range: neighbouring threads, one for each row,
 * touch neighbouring words.
 */
#include "huntktm.h"

#include <algorithm>
#include <array>

#include "check.h"

namespace bench {

namespace {

enum { BLOCK = 128, COLUMN_BLOCK = 512, COLUMN_LEVELS = 9, CLASSES = 10 };

/* rr1(x -> z): each feature gets mean 0 and deviation 1. A CTA has a feature, so its sums have a fixed order. */
struct scale_args {
    size_t rows;
    const float *x;
    float *z;
};

struct scale_shared {
    double sum[COLUMN_BLOCK], squares[COLUMN_BLOCK];
};

ACS_DUAL int rr1_phases(const scale_args &)
{
    return 2 * COLUMN_LEVELS + 3;
}

ACS_DUAL void add_halves(double *part, int level, unsigned thread)
{
    const unsigned half = static_cast<unsigned>(COLUMN_BLOCK) >> level;
    if (thread < half)
        part[thread] += part[thread + half];
}

ACS_DUAL void rr1_phase(const scale_args &a, int phase, unsigned block, unsigned thread, scale_shared &s)
{
    const float *const x = a.x + block * a.rows;
    const double rows = static_cast<double>(a.rows);

    if (phase == 0) {
        double sum = 0;
        for (size_t i = thread; i < a.rows; i += COLUMN_BLOCK)
            sum += static_cast<double>(x[i]);
        s.sum[thread] = sum;
    } else if (phase <= COLUMN_LEVELS) {
        add_halves(s.sum, phase, thread);
    } else if (phase == COLUMN_LEVELS + 1) {
        const double mean = s.sum[0] / rows;
        double squares = 0;
        for (size_t i = thread; i < a.rows; i += COLUMN_BLOCK)
            squares += (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean);
        s.squares[thread] = squares;
    } else if (phase <= 2 * COLUMN_LEVELS + 1) {
        add_halves(s.squares, phase - COLUMN_LEVELS - 1, thread);
    } else {
        const float mean = static_cast<float>(s.sum[0] / rows);
        const float scale = static_cast<float>(1 / sqrt(s.squares[0] / rows));
        for (size_t i = thread; i < a.rows; i += COLUMN_BLOCK)
            a.z[block * a.rows + i] = (x[i] - mean) * scale;
    }
}

ACS_DUAL_BLOCK_KERNEL(rr1, scale_args, scale_shared, COLUMN_BLOCK)

/* nb1(x, flp -> +r1), rr2(z, rc -> +r2): r[class] += the product of the row and the class' weights. */
struct product_args {
    unsigned threads, features;
    const float *x, *weights;
    float *r;
};

ACS_DUAL void add_product(const product_args &a, unsigned i)
{
    const size_t rows = a.threads;
    float sum[CLASSES] = {};

    for (unsigned f = 0; f < a.features; f++) {
        const float x = a.x[f * rows + i];
        for (unsigned c = 0; c < CLASSES; c++)
            sum[c] += x * a.weights[c * a.features + f];
    }
    for (unsigned c = 0; c < CLASSES; c++)
        a.r[c * rows + i] += sum[c];
}

ACS_DUAL void nb1_thread(const product_args &a, unsigned i)
{
    add_product(a, i);
}

ACS_DUAL_KERNEL(nb1, product_args, BLOCK)

ACS_DUAL void rr2_thread(const product_args &a, unsigned i)
{
    add_product(a, i);
}

ACS_DUAL_KERNEL(rr2, product_args, BLOCK)

/* nb2(r1 -> amax), nb3(r1, amax -> l), nb4(l -> +r1), rr3(ri -> +r2), softmax(+r): one thread for each row. */
struct row_args {
    unsigned threads;
    const float *r, *more;
    float *y;
};

ACS_DUAL void nb2_thread(const row_args &a, unsigned i)
{
    const size_t rows = a.threads;
    float most = a.r[i];
    for (unsigned c = 1; c < CLASSES; c++)
        most = fmaxf(most, a.r[c * rows + i]);
    a.y[i] = most;
}

ACS_DUAL_KERNEL(nb2, row_args, BLOCK)

ACS_DUAL void nb3_thread(const row_args &a, unsigned i)
{
    const size_t rows = a.threads;
    float sum = 0;
    for (unsigned c = 0; c < CLASSES; c++)
        sum += expf(a.r[c * rows + i] - a.more[i]);
    a.y[i] = a.more[i] + logf(sum);
}

ACS_DUAL_KERNEL(nb3, row_args, BLOCK)

ACS_DUAL void nb4_thread(const row_args &a, unsigned i)
{
    const size_t rows = a.threads;
    for (unsigned c = 0; c < CLASSES; c++)
        a.y[c * rows + i] = expf(a.y[c * rows + i] - a.more[i]);
}

ACS_DUAL_KERNEL(nb4, row_args, BLOCK)

/* The temperature makes it matter that rr2 came first: two additions alone could be exchanged without a trace. */
ACS_DUAL void rr3_thread(const row_args &a, unsigned i)
{
    const size_t rows = a.threads;
    for (unsigned c = 0; c < CLASSES; c++)
        a.y[c * rows + i] = (a.y[c * rows + i] + a.more[c]) * 0.5f;
}

ACS_DUAL_KERNEL(rr3, row_args, BLOCK)

ACS_DUAL void softmax_thread(const row_args &a, unsigned i)
{
    const size_t rows = a.threads;
    float most = a.y[i], sum = 0;
    for (unsigned c = 1; c < CLASSES; c++)
        most = fmaxf(most, a.y[c * rows + i]);
    for (unsigned c = 0; c < CLASSES; c++)
        sum += expf(a.y[c * rows + i] - most);
    for (unsigned c = 0; c < CLASSES; c++)
        a.y[c * rows + i] = expf(a.y[c * rows + i] - most) / sum;
}

ACS_DUAL_KERNEL(softmax, row_args, BLOCK)

/* argmax(r1, r2 -> r): the class with the highest sum. */
struct argmax_args {
    unsigned threads;
    const float *r1, *r2;
    int *r;
};

ACS_DUAL void argmax_thread(const argmax_args &a, unsigned i)
{
    const size_t rows = a.threads;
    int best = 0;
    for (int c = 1; c < CLASSES; c++) {
        const size_t at = static_cast<size_t>(c) * rows + i, at_best = static_cast<size_t>(best) * rows + i;
        if (a.r1[at] + a.r2[at] > a.r1[at_best] + a.r2[at_best])
            best = c;
    }
    a.r[i] = best;
}

ACS_DUAL_KERNEL(argmax, argmax_args, BLOCK)

typedef std::array<double, CLASSES> scores;

/* What is known of a row, by the definitions, in double precision. */
struct row_oracle {
    double most, log_sum;
    scores bayes, ridge;
};

scores softmax_of(const scores &v)
{
    const double most = *std::max_element(v.begin(), v.end());
    double sum = 0;
    scores p;
    for (double x : v)
        sum += std::exp(x - most);
    for (unsigned c = 0; c < CLASSES; c++)
        p[c] = std::exp(v[c] - most) / sum;
    return p;
}

class ensemble : public program {
public:
    ensemble(memory &m, const sizes &s) : program(m), rows_(s["rows"]), features_(s["features"])
    {
        x_ = random<float>(rows_ * features_, 501, 0, 1);
        flp_ = random<float>(CLASSES * features_, 502, -0.4f, -0.01f);
        rc_ = random<float>(CLASSES * features_, 503, -0.1f, 0.1f);
        ri_ = random<float>(CLASSES, 504, -1, 1);
        r1_ = zeros<float>(rows_ * CLASSES);
        r2_ = zeros<float>(rows_ * CLASSES);
        z_ = scratch<float>(rows_ * features_);
        amax_ = scratch<float>(rows_);
        l_ = scratch<float>(rows_);
        r_ = scratch<int>(rows_);
        for (const void *p : {static_cast<void *>(z_), static_cast<void *>(amax_), static_cast<void *>(l_),
                              static_cast<void *>(r1_), static_cast<void *>(r2_), static_cast<void *>(r_)})
            mark_result(p);
    }

    void run(sink &s) override
    {
        const unsigned n = static_cast<unsigned>(rows_), f = static_cast<unsigned>(features_);
        const size_t cells = rows_ * features_, scored = rows_ * CLASSES, weights = features_ * CLASSES;
        const acs_segment scale[] = {in(x_, cells), out(z_, cells)};

        begin();
        launch_grid(s, kernel_rr1, f, COLUMN_BLOCK, scale_args{rows_, x_, z_}, scale, 2);
        launch(s, kernel_nb1, BLOCK, product_args{n, f, x_, flp_, r1_},
               {in(x_, cells), in(flp_, weights), inout(r1_, scored)});
        launch(s, kernel_rr2, BLOCK, product_args{n, f, z_, rc_, r2_},
               {in(z_, cells), in(rc_, weights), inout(r2_, scored)});
        launch(s, kernel_nb2, BLOCK, row_args{n, r1_, nullptr, amax_}, {in(r1_, scored), out(amax_, rows_)});
        launch(s, kernel_nb3, BLOCK, row_args{n, r1_, amax_, l_}, {in(r1_, scored), in(amax_, rows_), out(l_, rows_)});
        launch(s, kernel_rr3, BLOCK, row_args{n, nullptr, ri_, r2_}, {in(ri_, CLASSES), inout(r2_, scored)});
        launch(s, kernel_nb4, BLOCK, row_args{n, nullptr, l_, r1_}, {in(l_, rows_), inout(r1_, scored)});
        launch(s, kernel_softmax, BLOCK, row_args{n, nullptr, nullptr, r1_}, {inout(r1_, scored)});
        launch(s, kernel_softmax, BLOCK, row_args{n, nullptr, nullptr, r2_}, {inout(r2_, scored)});
        launch(s, kernel_argmax, BLOCK, argmax_args{n, r1_, r2_, r_},
               {in(r1_, scored), in(r2_, scored), out(r_, rows_)});
    }

    std::string check() override
    {
        const std::vector<float> r1 = get(r1_, rows_ * CLASSES), r2 = get(r2_, rows_ * CLASSES);
        const std::vector<float> amax = get(amax_, rows_), l = get(l_, rows_);
        const std::vector<int> r = get(r_, rows_);
        const size_t step = rows_ / 5000 + 1;
        std::string wrong;

        find_columns();
        wrong = differs_where("z", get(z_, rows_ * features_), [&](size_t k) { return scaled(k / rows_, k % rows_); },
                              1e-5, 1e-6);
        for (size_t i = 0; i < rows_ && wrong.empty(); i += step) {
            const row_oracle want = row(i);
            double chosen = -1, best = -1;
            /* Sums of up to 100 products near -10 are off by some 1e-5; so are exponentials of them, relatively. */
            wrong = first_of({differs("amax", amax[i], want.most, 1e-5, 1e-5),
                              differs("l", l[i], want.log_sum, 1e-5, 1e-5)});
            for (unsigned c = 0; c < CLASSES && wrong.empty(); c++) {
                wrong = first_of({differs("r1", r1[c * rows_ + i], want.bayes[c], 1e-4),
                                  differs("r2", r2[c * rows_ + i], want.ridge[c], 1e-4)});
                best = std::fmax(best, want.bayes[c] + want.ridge[c]);
                if (r[i] == static_cast<int>(c))
                    chosen = want.bayes[c] + want.ridge[c];
            }
            /* Where two classes are equal but for roundings, either will do. */
            if (wrong.empty())
                wrong = differs("the chosen class' score", chosen, best, 1e-4);
            if (!wrong.empty())
                wrong = "row " + std::to_string(i) + ": " + wrong;
        }
        return wrong;
    }

private:
    double x(size_t f, size_t i) const { return random_content(f * rows_ + i, 501, 0.0f, 1.0f); }
    double scaled(size_t f, size_t i) const { return (x(f, i) - mean_[f]) / deviation_[f]; }

    /* Means and deviations of all columns, once: E(x^2) - E(x)^2, which is exact enough where both are near 1. */
    void find_columns()
    {
        const double n = static_cast<double>(rows_);
        for (size_t f = mean_.size(); f < features_; f++) {
            double sum = 0, squares = 0;
            for (size_t i = 0; i < rows_; i++) {
                const double v = x(f, i);
                sum += v;
                squares += v * v;
            }
            mean_.push_back(sum / n);
            deviation_.push_back(std::sqrt(squares / n - (sum / n) * (sum / n)));
        }
    }

    row_oracle row(size_t i) const
    {
        row_oracle o;
        scores bayes = {}, ridge = {};
        double sum = 0;
        for (size_t c = 0; c < CLASSES; c++) {
            for (size_t f = 0; f < features_; f++) {
                bayes[c] += x(f, i) * random_content(c * features_ + f, 502, -0.4f, -0.01f);
                ridge[c] += scaled(f, i) * random_content(c * features_ + f, 503, -0.1f, 0.1f);
            }
            ridge[c] = (ridge[c] + random_content(c, 504, -1.0f, 1.0f)) * 0.5;
            sum += std::exp(bayes[c]);
        }
        o.most = *std::max_element(bayes.begin(), bayes.end());
        o.log_sum = std::log(sum);
        for (double &b : bayes)
            b = std::exp(b) / sum;
        o.bayes = softmax_of(bayes);
        o.ridge = softmax_of(ridge);
        return o;
    }

    size_t rows_, features_;
    float *x_, *flp_, *rc_, *ri_, *r1_, *r2_, *z_, *amax_, *l_;
    int *r_;
    std::vector<double> mean_, deviation_;
};

} // namespace

workload huntktm_ml()
{
    return {"ml", "naive Bayes and ridge regression, and a vote of the two", "HuntKTm",
            {{"rows", "rows", 300, 40000, 3500000}, {"features", "features of a row", 20, 100, 100}},
            [](const sizes &) { return shape{10, 9, 2, 6}; }, make_huntktm<ensemble>, false};
}

} // namespace bench

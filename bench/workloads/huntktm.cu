/*
 * Owns the element-wise members of HuntKTm's suite: VEC, B&S, M1 and M2, and the suite's place in the list. Called by
 * workloads.cpp. The others have files of their own.
 */
#include "huntktm.h"

#include "check.h"
#include "reduce.h"

namespace bench {

namespace {

enum { BLOCK = 256, PARTS = 16 };

/* square(x -> y) */
struct square_args {
    unsigned threads;
    const float *x;
    float *y;
};

ACS_DUAL void square_thread(const square_args &a, unsigned i)
{
    a.y[i] = a.x[i] * a.x[i];
}

ACS_DUAL_KERNEL(square, square_args, BLOCK)

/* reduce(x, y -> +res): res += the sum of x - y, gathered in double precision. */
struct difference_args {
    reduce_space<double> space;
    const float *x, *y;
    double *res;
};

struct difference {
    typedef difference_args args;
    typedef double value;
    ACS_DUAL double none() { return 0; }
    ACS_DUAL double term(const args &a, size_t i) { return static_cast<double>(a.x[i]) - static_cast<double>(a.y[i]); }
    ACS_DUAL double join(double x, double y) { return x + y; }
    ACS_DUAL void store(const args &a, double sum) { *a.res += sum; }
};

BENCH_REDUCE_KERNEL(reduce_difference, difference)

class vec : public program {
public:
    vec(memory &m, const sizes &s) : program(m), n_(s["n"]), ctas_(reduce_ctas(n_))
    {
        x_ = random<float>(n_, 101, -1, 1);
        y_ = random<float>(n_, 102, 1, 3); /* another range than x: a mistaken input shows in the sum at once */
        x1_ = scratch<float>(n_);
        y1_ = scratch<float>(n_);
        res_ = zeros<double>(1);
        partial_ = scratch<double>(ctas_);
        tickets_ = zeros<unsigned>(1);
        mark_result(x1_);
        mark_result(y1_);
        mark_result(res_);
    }

    void run(sink &s) override
    {
        const unsigned n = static_cast<unsigned>(n_);
        const difference_args sum = {{n_, ctas_, partial_, tickets_}, x1_, y1_, res_};
        const acs_segment uses[] = {in(x1_, n_), in(y1_, n_), inout(res_, 1), out(partial_, ctas_), inout(tickets_, 1)};
        begin();
        launch(s, kernel_square, BLOCK, square_args{n, x_, x1_}, {in(x_, n_), out(x1_, n_)});
        launch(s, kernel_square, BLOCK, square_args{n, y_, y1_}, {in(y_, n_), out(y1_, n_)});
        launch_grid(s, kernel_reduce_difference, ctas_, REDUCE_BLOCK, sum, uses, 5);
    }

    std::string check() override
    {
        const auto square = [](double v) { return v * v; };
        double sum = 0;
        for (size_t i = 0; i < n_; i++)
            sum += square(random_content(i, 101, -1.0f, 1.0f)) - square(random_content(i, 102, 1.0f, 3.0f));
        /* A square has one rounding of 6e-8, and the sum's terms hardly cancel: their mean is -4, none exceeds 9. */
        return first_of({differs_where("x1", get(x1_, n_), [&](size_t i) {
                             return square(random_content(i, 101, -1.0f, 1.0f));
                         }, 1e-7),
                         differs_where("y1", get(y1_, n_), [&](size_t i) {
                             return square(random_content(i, 102, 1.0f, 3.0f));
                         }, 1e-7),
                         differs("res", get(res_, 1)[0], sum, 3e-7)});
    }

private:
    size_t n_;
    unsigned ctas_;
    float *x_, *y_, *x1_, *y1_;
    double *res_, *partial_;
    unsigned *tickets_;
};

/* The same in 16 parts, each with a sum of its own. */
class vec_parts : public program {
public:
    vec_parts(memory &m, const sizes &s) : program(m), n_(s["n"]), ctas_(reduce_ctas(n_))
    {
        for (unsigned k = 0; k < PARTS; k++) {
            part &p = parts_[k];
            p.x = random<float>(n_, 141 + 2 * k, -1, 1);
            p.y = random<float>(n_, 142 + 2 * k, 1, 3);
            p.x1 = scratch<float>(n_);
            p.y1 = scratch<float>(n_);
            p.res = zeros<double>(1);
            p.partial = scratch<double>(ctas_);
            p.tickets = zeros<unsigned>(1);
            mark_result(p.res);
        }
    }

    void run(sink &s) override
    {
        const unsigned n = static_cast<unsigned>(n_);
        begin();
        for (const part &p : parts_) {
            const difference_args sum = {{n_, ctas_, p.partial, p.tickets}, p.x1, p.y1, p.res};
            const acs_segment uses[] = {in(p.x1, n_), in(p.y1, n_), inout(p.res, 1), out(p.partial, ctas_),
                                        inout(p.tickets, 1)};
            launch(s, kernel_square, BLOCK, square_args{n, p.x, p.x1}, {in(p.x, n_), out(p.x1, n_)});
            launch(s, kernel_square, BLOCK, square_args{n, p.y, p.y1}, {in(p.y, n_), out(p.y1, n_)});
            launch_grid(s, kernel_reduce_difference, ctas_, REDUCE_BLOCK, sum, uses, 5);
        }
    }

    std::string check() override
    {
        const auto square = [](double v) { return v * v; };
        for (unsigned k = 0; k < PARTS; k++) {
            double sum = 0;
            for (size_t i = 0; i < n_; i++)
                sum += square(random_content(i, 141 + 2 * k, -1.0f, 1.0f)) -
                       square(random_content(i, 142 + 2 * k, 1.0f, 3.0f));
            const std::string wrong = differs("res", get(parts_[k].res, 1)[0], sum, 3e-7);
            if (!wrong.empty())
                return "part " + std::to_string(k) + ": " + wrong;
        }
        return {};
    }

private:
    struct part {
        float *x, *y, *x1, *y1;
        double *res, *partial;
        unsigned *tickets;
    };
    size_t n_;
    unsigned ctas_;
    part parts_[PARTS];
};

/* bs(x -> y): prices of European calls by the formula of Black and Scholes. */
struct price_args {
    unsigned threads;
    double rate, volatility, years, strike;
    const double *x;
    double *y;
};

ACS_DUAL double normal_below(double d)
{
    return 0.5 * erfc(-d * 0.70710678118654752440);
}

ACS_DUAL void black_scholes_thread(const price_args &a, unsigned i)
{
    const double spread = a.volatility * sqrt(a.years), spot = a.x[i];
    const double d1 = (log(spot / a.strike) + (a.rate + 0.5 * a.volatility * a.volatility) * a.years) / spread;

    a.y[i] = spot * normal_below(d1) - a.strike * exp(-a.rate * a.years) * normal_below(d1 - spread);
}

ACS_DUAL_KERNEL(black_scholes, price_args, BLOCK)

class black_scholes : public program {
public:
    black_scholes(memory &m, const sizes &s) : program(m), n_(s["n"]), series_(s["series"])
    {
        for (uint64_t k = 0; k < series_; k++) {
            x_.push_back(random<double>(n_, 200 + k, 59.5, 60.5));
            y_.push_back(scratch<double>(n_));
            mark_result(y_.back());
        }
    }

    void run(sink &s) override
    {
        begin();
        for (size_t k = 0; k < series_; k++)
            launch(s, kernel_black_scholes, BLOCK,
                   price_args{static_cast<unsigned>(n_), 0.08, 0.3, 1.0, 60.0, x_[k], y_[k]},
                   {in(x_[k], n_), out(y_[k], n_)});
    }

    /* Another way to the same number: the put's price by erf, and the parity of put and call. */
    static double price(double spot)
    {
        const double d1 = (std::log(spot / 60) + (0.08 + 0.045)) / 0.3, discounted = 60 * std::exp(-0.08);
        const auto above = [](double d) { return 0.5 * (1 - std::erf(d / std::sqrt(2.0))); };
        return discounted * above(d1 - 0.3) - spot * above(d1) + spot - discounted;
    }

    std::string check() override
    {
        std::string wrong;
        for (size_t k = 0; k < series_ && wrong.empty(); k++) {
            const std::string name = "series " + std::to_string(k);
            /* Prices are about 9.4 and come from differences of numbers near 60: a few roundings of 60 * 1.1e-16. */
            wrong = differs_where(name.c_str(), get(y_[k], n_), [&](size_t i) {
                return price(random_content(i, 200 + k, 59.5, 60.5));
            }, 1e-13);
        }
        return wrong;
    }

private:
    size_t n_, series_;
    std::vector<double *> x_, y_;
};

/* bias_gelu(x, bias -> y) */
struct gelu_args {
    unsigned threads;
    const float *x, *bias;
    float *y;
};

ACS_DUAL void bias_gelu_thread(const gelu_args &a, unsigned i)
{
    const float v = a.x[i] + a.bias[i];
    a.y[i] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
}

ACS_DUAL_KERNEL(bias_gelu, gelu_args, BLOCK)

/* add_skip(u, v, skip -> y) and merge(4 x -> y): sums of arrays. */
struct add_skip_args {
    unsigned threads;
    const float *u, *v, *skip;
    float *y;
};

ACS_DUAL void add_skip_thread(const add_skip_args &a, unsigned i)
{
    a.y[i] = a.u[i] + a.v[i] + a.skip[i];
}

ACS_DUAL_KERNEL(add_skip, add_skip_args, BLOCK)

struct merge_args {
    unsigned threads;
    const float *x[4];
    float *y;
};

ACS_DUAL void merge_thread(const merge_args &a, unsigned i)
{
    a.y[i] = (a.x[0][i] + a.x[1][i]) + (a.x[2][i] + a.x[3][i]);
}

ACS_DUAL_KERNEL(merge, merge_args, BLOCK)

/* 30 arrays in all, which is what the published peak of memory comes to. */
class transformer_block : public program {
public:
    transformer_block(memory &m, const sizes &s) : program(m), n_(s["n"])
    {
        bias_ = random<float>(n_, 300, -0.5f, 0.5f);
        for (unsigned k = 0; k < 8; k++) {
            x_[k] = random<float>(n_, 310 + k, -2, 2);
            g_[k] = result();
        }
        for (unsigned k = 0; k < 4; k++) {
            skip_[k] = random<float>(n_, 320 + k, -1, 1);
            sum_[k] = result();
            t_[k] = result();
        }
        y_ = result();
    }

    void run(sink &s) override
    {
        const unsigned n = static_cast<unsigned>(n_);
        begin();
        for (unsigned k = 0; k < 8; k++)
            gelu(s, x_[k], g_[k]);
        for (unsigned k = 0; k < 4; k++)
            launch(s, kernel_add_skip, BLOCK, add_skip_args{n, g_[2 * k], g_[2 * k + 1], skip_[k], sum_[k]},
                   {in(g_[2 * k], n_), in(g_[2 * k + 1], n_), in(skip_[k], n_), out(sum_[k], n_)});
        for (unsigned k = 0; k < 4; k++)
            gelu(s, sum_[k], t_[k]);
        launch(s, kernel_merge, BLOCK, merge_args{n, {t_[0], t_[1], t_[2], t_[3]}, y_},
               {in(t_[0], n_), in(t_[1], n_), in(t_[2], n_), in(t_[3], n_), out(y_, n_)});
    }

    std::string check() override
    {
        std::string wrong;
        /* A value carries a rounding of its sum and a few of erff, which near -1 are absolute ones of about 1e-7. */
        const double relative = 1e-5, absolute = 2e-6;
        for (unsigned k = 0; k < 8 && wrong.empty(); k++)
            wrong = differs_where("g", get(g_[k], n_), [&](size_t i) { return first(k, i); }, relative, absolute);
        for (unsigned k = 0; k < 4 && wrong.empty(); k++)
            wrong = first_of({differs_where("sum", get(sum_[k], n_), [&](size_t i) { return sum(k, i); }, relative,
                                            absolute),
                              differs_where("t", get(t_[k], n_), [&](size_t i) { return gelu(sum(k, i), i); },
                                            relative, absolute)});
        return !wrong.empty() ? wrong : differs_where("y", get(y_, n_), [&](size_t i) {
            return gelu(sum(0, i), i) + gelu(sum(1, i), i) + gelu(sum(2, i), i) + gelu(sum(3, i), i);
        }, relative, 4 * absolute);
    }

private:
    float *result()
    {
        float *const p = scratch<float>(n_);
        mark_result(p);
        return p;
    }
    void gelu(sink &s, const float *x, float *y)
    {
        launch(s, kernel_bias_gelu, BLOCK, gelu_args{static_cast<unsigned>(n_), x, bias_, y},
               {in(x, n_), in(bias_, n_), out(y, n_)});
    }

    /* The oracle: gelu(v) = v * P(normal < v). */
    static double gelu(double x, size_t i)
    {
        const double v = x + random_content(i, 300, -0.5f, 0.5f);
        return v * 0.5 * std::erfc(-v / std::sqrt(2.0));
    }
    static double first(unsigned k, size_t i) { return gelu(random_content(i, 310 + k, -2.0f, 2.0f), i); }
    static double sum(unsigned k, size_t i)
    {
        return first(2 * k, i) + first(2 * k + 1, i) + random_content(i, 320 + k, -1.0f, 1.0f);
    }

    size_t n_;
    float *bias_, *x_[8], *g_[8], *skip_[4], *sum_[4], *t_[4], *y_;
};

/* silu(x -> y) */
ACS_DUAL void silu_thread(const square_args &a, unsigned i)
{
    a.y[i] = a.x[i] / (1.0f + expf(-a.x[i]));
}

ACS_DUAL_KERNEL(silu, square_args, BLOCK)

/* gated_relu(x, gate -> y) and sum3(3 x -> y) */
struct gate_args {
    unsigned threads;
    const float *x, *gate;
    float *y;
};

ACS_DUAL void gated_relu_thread(const gate_args &a, unsigned i)
{
    const float v = a.x[i] * a.gate[i];
    a.y[i] = v > 0 ? v : 0.0f;
}

ACS_DUAL_KERNEL(gated_relu, gate_args, BLOCK)

struct sum3_args {
    unsigned threads;
    const float *x[3];
    float *y;
};

ACS_DUAL void sum3_thread(const sum3_args &a, unsigned i)
{
    a.y[i] = a.x[0][i] + a.x[1][i] + a.x[2][i];
}

ACS_DUAL_KERNEL(sum3, sum3_args, BLOCK)

/* 22 arrays in all, which is what the published peak of memory comes to: each sum's three gates are one array. */
class gated_block : public program {
public:
    gated_block(memory &m, const sizes &s) : program(m), n_(s["n"])
    {
        for (unsigned k = 0; k < 6; k++) {
            x_[k] = random<float>(n_, 400 + k, -3, 3);
            mark_result(u_[k] = scratch<float>(n_));
            mark_result(v_[k] = scratch<float>(n_));
        }
        for (unsigned k = 0; k < 2; k++) {
            gate_[k] = random<float>(n_, 410 + k, -1, 2);
            mark_result(y_[k] = scratch<float>(n_));
        }
    }

    void run(sink &s) override
    {
        const unsigned n = static_cast<unsigned>(n_);
        begin();
        for (unsigned k = 0; k < 6; k++)
            launch(s, kernel_silu, BLOCK, square_args{n, x_[k], u_[k]}, {in(x_[k], n_), out(u_[k], n_)});
        for (unsigned k = 0; k < 6; k++)
            launch(s, kernel_gated_relu, BLOCK, gate_args{n, u_[k], gate_[k / 3], v_[k]},
                   {in(u_[k], n_), in(gate_[k / 3], n_), out(v_[k], n_)});
        for (unsigned k = 0; k < 2; k++)
            launch(s, kernel_sum3, BLOCK, sum3_args{n, {v_[3 * k], v_[3 * k + 1], v_[3 * k + 2]}, y_[k]},
                   {in(v_[3 * k], n_), in(v_[3 * k + 1], n_), in(v_[3 * k + 2], n_), out(y_[k], n_)});
    }

    std::string check() override
    {
        std::string wrong;
        /* expf, a quotient, a product and two sums of at most 2 ulp each, over positive terms only. */
        for (unsigned k = 0; k < 6 && wrong.empty(); k++)
            wrong = first_of({differs_where("u", get(u_[k], n_), [&](size_t i) { return silu(k, i); }, 2e-6),
                              differs_where("v", get(v_[k], n_), [&](size_t i) { return gated(k, i); }, 2e-6)});
        for (unsigned k = 0; k < 2 && wrong.empty(); k++)
            wrong = differs_where("y", get(y_[k], n_), [&](size_t i) {
                return gated(3 * k, i) + gated(3 * k + 1, i) + gated(3 * k + 2, i);
            }, 2e-6);
        return wrong;
    }

private:
    /* x / (1 + e^-x) = x (1 + tanh(x / 2)) / 2 */
    static double silu(unsigned k, size_t i)
    {
        const double x = random_content(i, 400 + k, -3.0f, 3.0f);
        return 0.5 * x * (1 + std::tanh(0.5 * x));
    }
    static double gated(unsigned k, size_t i)
    {
        return std::fmax(0.0, silu(k, i) * random_content(i, 410 + k / 3, -1.0f, 2.0f));
    }

    size_t n_;
    float *x_[6], *gate_[2], *u_[6], *v_[6], *y_[2];
};

} // namespace

void add_huntktm(std::vector<workload> &list)
{
    list.push_back({"vec", "two squares and the sum of their difference", "HuntKTm",
                    {{"n", "elements", 5000, 1u << 22, 300000000}},
                    [](const sizes &) { return shape{3, 2, 2, 2}; }, make_huntktm<vec>, false});
    list.push_back({"vec-16", "the same in 16 parts", "GrCUDA",
                    {{"n", "elements of a part", 700, 1u << 20, 18000000}},
                    [](const sizes &) { return shape{3 * PARTS, 2 * PARTS, 2 * PARTS, 2}; }, make_huntktm<vec_parts>,
                    false});
    list.push_back({"bs", "independent series of option prices, double precision", "HuntKTm",
                    {{"n", "options in a series", 500, 1u << 18, 80000000}, {"series", "series", 10, 10, 10}},
                    [](const sizes &s) {
                        const uint32_t m = static_cast<uint32_t>(s["series"]);
                        return shape{m, 0, m, 1};
                    },
                    make_huntktm<black_scholes>, false});
    list.push_back(huntktm_ml());
    list.push_back(huntktm_hits());
    list.push_back(huntktm_image());
    list.push_back(huntktm_deep());
    list.push_back({"m1", "bias-GELU and residual sums of a transformer block", "HuntKTm",
                    {{"n", "elements", 1000, 1u << 22, 160000000}},
                    [](const sizes &) { return shape{17, 16, 8, 4}; }, make_huntktm<transformer_block>, false});
    list.push_back({"m2", "SiLU and gated ReLU of a feed-forward block", "HuntKTm",
                    {{"n", "elements", 1000, 1u << 22, 200000000}},
                    [](const sizes &) { return shape{14, 12, 6, 3}; }, make_huntktm<gated_block>, false});
}

} // namespace bench

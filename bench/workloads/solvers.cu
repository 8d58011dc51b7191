/*
 * Owns MUL and CG of GrCUDA's suite: a dense matrix in 16 blocks of rows, whose products go to parts of one vector. By
 * byte ranges the parts are independent; a runtime that tracks whole arrays puts them one behind the other. Called by
 * workloads.cpp.
 */
#include <algorithm>
#include <memory>

#include "check.h"
#include "reduce.h"
#include "workload.h"

namespace bench {

namespace {

enum { BLOCK = 256, PARTS = 16, LANES = 32, ROWS = BLOCK / LANES };

template <class P> std::unique_ptr<program> make(memory &m, const sizes &s)
{
    return std::unique_ptr<program>(new P(m, s));
}

/*
 * mv(a, x -> y), and residual(a, x, b -> y) with y = b - a x, for a block of rows. A CTA has 8 rows, each summed by 32
 * threads in a fixed order.
 */
struct mv_args {
    unsigned rows, columns;
    const float *a, *x, *b;
    float *y;
};

struct mv_shared {
    float part[ROWS][LANES];
};

ACS_DUAL void mv_step(const mv_args &a, int phase, unsigned block, unsigned thread, mv_shared &s)
{
    const unsigned group = thread / LANES, lane = thread % LANES;
    const size_t row = block * ROWS + group;

    if (phase == 0) {
        float sum = 0;
        for (unsigned j = lane; row < a.rows && j < a.columns; j += LANES)
            sum += a.a[row * a.columns + j] * a.x[j];
        s.part[group][lane] = sum;
    } else if (phase < 6) {
        const unsigned half = static_cast<unsigned>(LANES) >> phase;
        if (lane < half)
            s.part[group][lane] += s.part[group][lane + half];
    } else if (lane == 0 && row < a.rows) {
        a.y[row] = a.b ? a.b[row] - s.part[group][0] : s.part[group][0];
    }
}

ACS_DUAL int mv_phases(const mv_args &)
{
    return 7; /* 32 sums, five halvings, the result */
}

ACS_DUAL void mv_phase(const mv_args &a, int phase, unsigned block, unsigned thread, mv_shared &s)
{
    mv_step(a, phase, block, thread, s);
}

ACS_DUAL_BLOCK_KERNEL(mv, mv_args, mv_shared, BLOCK)

ACS_DUAL int residual_phases(const mv_args &a)
{
    return mv_phases(a);
}

ACS_DUAL void residual_phase(const mv_args &a, int phase, unsigned block, unsigned thread, mv_shared &s)
{
    mv_step(a, phase, block, thread, s);
}

ACS_DUAL_BLOCK_KERNEL(residual, mv_args, mv_shared, BLOCK)

class products : public program {
public:
    products(memory &m, const sizes &s) : program(m), rows_(s["rows"]), columns_(s["columns"])
    {
        x_ = random<float>(columns_, 1000, -1, 1);
        for (unsigned k = 0; k < PARTS; k++) {
            a_[k] = random<float>(rows_ * columns_, 1001 + k, -1, 1);
            mark_result(y_[k] = scratch<float>(rows_));
        }
        mark_result(z_ = scratch<float>(rows_ * PARTS));
    }

    void run(sink &s) override
    {
        const unsigned rows = static_cast<unsigned>(rows_), grid = (rows + ROWS - 1) / ROWS;
        begin();
        for (unsigned k = 0; k < PARTS; k++) {
            const acs_segment uses[] = {in(a_[k], rows_ * columns_), in(x_, columns_), out(y_[k], rows_)};
            launch_grid(s, kernel_mv, grid, BLOCK,
                        mv_args{rows, static_cast<unsigned>(columns_), a_[k], x_, nullptr, y_[k]}, uses, 3);
        }
        for (unsigned k = 0; k < PARTS; k++)
            copy(s, z_ + k * rows_, y_[k], rows_ * sizeof(float));
    }

    std::string check() override
    {
        const std::vector<double> x = random_contents(columns_, 1000, -1.0f, 1.0f);
        /*
         * A product is near sqrt(columns) / 3; a lane's share of it is a 32nd in square and has columns / 32 roundings
         * of either sign. In all less than 1e-6 of the product's size up to 65536 columns.
         */
        return differs_where("z", get(z_, rows_ * PARTS), [&](size_t i) {
            double sum = 0;
            for (size_t j = 0; j < columns_; j++)
                sum += x[j] * random_content(i % rows_ * columns_ + j, 1001 + i / rows_, -1.0f, 1.0f);
            return sum;
        }, 0, 2e-6 * std::sqrt(static_cast<double>(columns_)), 2000);
    }

private:
    size_t rows_, columns_;
    float *x_, *a_[PARTS], *y_[PARTS], *z_;
};

/*
 * assemble(points -> a), a block of rows of the system: a[i][j] = 2/n (1 - |p[i] - p[j]|), and 0.2 + 2 p[i] more on the
 * diagonal. The first is a covariance, so the sum is symmetric and positive definite. Its eigenvalues fill the range
 * from 0.2 to about 3 without gaps: so CG in single precision stays beside CG in double precision for long.
 */
struct assemble_args {
    unsigned threads, n, first_row;
    const float *points;
    float *a;
};

ACS_DUAL void assemble_thread(const assemble_args &a, unsigned k)
{
    const unsigned row = a.first_row + k / a.n, column = k % a.n;
    const float covariance = (2.0f - 2.0f * fabsf(a.points[row] - a.points[column])) / static_cast<float>(a.n);
    a.a[k] = covariance + (row == column ? 0.2f + 2.0f * a.points[row] : 0.0f);
}

ACS_DUAL_KERNEL(assemble, assemble_args, BLOCK)

/* dot(x, y -> res), in double precision */
struct dot_args {
    reduce_space<double> space;
    const float *x, *y;
    double *res;
};

struct dot_of {
    typedef dot_args args;
    typedef double value;
    ACS_DUAL double none() { return 0; }
    ACS_DUAL double term(const args &a, size_t i) { return static_cast<double>(a.x[i]) * static_cast<double>(a.y[i]); }
    ACS_DUAL double join(double x, double y) { return x + y; }
    ACS_DUAL void store(const args &a, double sum) { *a.res = sum; }
};

BENCH_REDUCE_KERNEL(dot, dot_of)

/* saxpy(x -> +y): y += factor x; xpay(x -> +y): y = x + factor y */
struct vector_args {
    unsigned threads;
    float factor;
    const float *x;
    float *y;
};

ACS_DUAL void saxpy_thread(const vector_args &a, unsigned i)
{
    a.y[i] += a.factor * a.x[i];
}

ACS_DUAL_KERNEL(saxpy, vector_args, BLOCK)

ACS_DUAL void xpay_thread(const vector_args &a, unsigned i)
{
    a.y[i] = a.x[i] + a.factor * a.y[i];
}

ACS_DUAL_KERNEL(xpay, vector_args, BLOCK)

/* The same iteration on the CPU in double precision, with the matrix by its definition. */
struct cg_oracle {
    std::vector<double> points, x, r, p, y, scalars;

    double element(size_t i, size_t j) const
    {
        const double n = static_cast<double>(points.size());
        return 2 * (1 - std::fabs(points[i] - points[j])) / n + (i == j ? 0.2 + 2 * points[i] : 0);
    }
    std::vector<double> multiply(const std::vector<double> &v) const
    {
        std::vector<double> w(v.size(), 0);
        for (size_t i = 0; i < v.size(); i++)
            for (size_t j = 0; j < v.size(); j++)
                w[i] += element(i, j) * v[j];
        return w;
    }
    static double dot(const std::vector<double> &u, const std::vector<double> &v)
    {
        double sum = 0;
        for (size_t i = 0; i < u.size(); i++)
            sum += u[i] * v[i];
        return sum;
    }
    void solve(const std::vector<double> &b, uint64_t iterations)
    {
        y = multiply(x);
        r = b;
        for (size_t i = 0; i < r.size(); i++)
            r[i] -= y[i];
        p = r;
        scalars.push_back(dot(r, r));
        for (uint64_t k = 0; k < iterations; k++) {
            y = multiply(p);
            scalars.push_back(dot(p, y));
            const double alpha = scalars[2 * k] / scalars[2 * k + 1];
            for (size_t i = 0; i < r.size(); i++) {
                x[i] += alpha * p[i];
                r[i] -= alpha * y[i];
            }
            scalars.push_back(dot(r, r));
            for (size_t i = 0; i < r.size(); i++)
                p[i] = r[i] + scalars[2 * k + 2] / scalars[2 * k] * p[i];
        }
    }
};

/* A sum in one kernel, with the memory that it works in. Two that may overlap need two of them. */
struct dot_space {
    double *partial;
    unsigned *tickets;
};

/*
 * Conjugate gradients from a start that is not zero. The host computes the step from two inner products and the
 * direction from the next, so it reads twice in an iteration, and its reads must not wait for what they do not need.
 */
class conjugate_gradients : public program {
public:
    conjugate_gradients(memory &m, const sizes &s)
        : program(m), n_(s["n"]), rows_(n_ / PARTS), iterations_(s["iterations"])
    {
        require(n_ > 0 && n_ % PARTS == 0, "cg: n must be a multiple of 16");
        points_ = random<float>(n_, 1101, 0, 1);
        b_ = random<float>(n_, 1102, -1, 1);
        x_ = random<float>(n_, 1103, -1, 1);
        for (float *&a : a_)
            a = scratch<float>(rows_ * n_);
        for (float **v : {&r_, &p_, &y_})
            *v = scratch<float>(n_);
        scalars_ = scratch<double>(scalars());
        for (dot_space &d : space_)
            d = {scratch<double>(reduce_ctas(n_)), zeros<unsigned>(1)};
        for (const float *v : {x_, r_, p_, y_})
            mark_result(v);
        mark_result(scalars_);
    }

    void run(sink &s) override
    {
        begin();
        for (unsigned k = 0; k < PARTS; k++)
            launch(s, kernel_assemble, BLOCK,
                   assemble_args{static_cast<unsigned>(rows_ * n_), static_cast<unsigned>(n_),
                                 static_cast<unsigned>(k * rows_), points_, a_[k]},
                   {in(points_, n_), out(a_[k], rows_ * n_)});
        for (unsigned k = 0; k < PARTS; k++) {
            const float *const b = b_ + k * rows_;
            multiply(s, kernel_residual, k, x_, b, r_, {in(b, rows_)});
        }
        copy(s, p_, r_, n_ * sizeof(float));
        product(s, 0, r_, r_, scalars_);
        for (uint64_t k = 0; k < iterations_; k++)
            iterate(s, scalars_ + 2 * k);
    }

    std::string check() override
    {
        const std::vector<float> x = get(x_, n_), r = get(r_, n_);
        const std::vector<double> b = random_contents(n_, 1102, -1.0f, 1.0f);
        if (want_.points.empty()) {
            want_.points = random_contents(n_, 1101, 0.0f, 1.0f);
            want_.x = random_contents(n_, 1103, -1.0f, 1.0f);
            want_.solve(b, iterations_);
        }
        /*
         * Vectors are near 1 at first. Each product rounds by some 1e-7, and an iteration hands that on enlarged a
         * little; inner products of what has become small are as exact as before, but for the square of that.
         */
        const double close = 2e-6 * static_cast<double>(iterations_ + 1);
        const std::string wrong = first_of({differs("x", x, want_.x, 0, 10 * close), differs("r", r, want_.r, 0, close),
                                            differs("p", get(p_, n_), want_.p, 0, close),
                                            differs("y", get(y_, n_), want_.y, 0, close),
                                            differs("scalars", get(scalars_, scalars()), want_.scalars, 1e-4,
                                                    1e-3 * close)});
        if (!wrong.empty())
            return wrong;
        /* The residual that CG carries along is that of its x. */
        std::vector<double> left = want_.multiply(std::vector<double>(x.begin(), x.end()));
        for (size_t i = 0; i < n_; i++)
            left[i] = b[i] - left[i];
        return differs("r, beside b - A x,", r, left, 0, close);
    }

private:
    /* Inner products, all kept: of r before iteration k at 2 k, of p and A p at 2 k + 1. */
    size_t scalars() const { return 2 * iterations_ + 1; }

    void iterate(sink &s, double *scalar)
    {
        double now[2], next;
        for (unsigned k = 0; k < PARTS; k++)
            multiply(s, kernel_mv, k, p_, nullptr, y_, {});
        product(s, 1, p_, y_, scalar + 1);
        s.read(now, scalar, sizeof now);
        const float alpha = static_cast<float>(now[0] / now[1]);
        axpy(s, kernel_saxpy, alpha, p_, x_);
        axpy(s, kernel_saxpy, -alpha, y_, r_);
        product(s, 0, r_, r_, scalar + 2);
        s.read(&next, scalar + 2, sizeof next);
        axpy(s, kernel_xpay, static_cast<float>(next / now[0]), r_, p_);
    }

    void multiply(sink &s, const acs_dual_kernel &kernel, unsigned k, const float *x, const float *b, float *y,
                  std::initializer_list<acs_segment> more)
    {
        const unsigned rows = static_cast<unsigned>(rows_);
        std::vector<acs_segment> uses = {in(a_[k], rows_ * n_), in(x, n_), out(y + k * rows_, rows_)};
        uses.insert(uses.end(), more.begin(), more.end());
        launch_grid(s, kernel, (rows + ROWS - 1) / ROWS, BLOCK,
                    mv_args{rows, static_cast<unsigned>(n_), a_[k], x, b, y + k * rows_}, uses.data(), uses.size());
    }
    void product(sink &s, unsigned space, const float *u, const float *v, double *to)
    {
        const dot_space &d = space_[space];
        const unsigned ctas = reduce_ctas(n_);
        const acs_segment uses[] = {in(u, n_), in(v, n_), out(to, 1), out(d.partial, ctas), inout(d.tickets, 1)};
        launch_grid(s, kernel_dot, ctas, REDUCE_BLOCK, dot_args{{n_, ctas, d.partial, d.tickets}, u, v, to}, uses, 5);
    }
    void axpy(sink &s, const acs_dual_kernel &kernel, float factor, const float *x, float *y)
    {
        launch(s, kernel, BLOCK, vector_args{static_cast<unsigned>(n_), factor, x, y}, {in(x, n_), inout(y, n_)});
    }

    size_t n_, rows_;
    uint64_t iterations_;
    float *points_, *b_, *x_, *r_, *p_, *y_, *a_[PARTS];
    double *scalars_;
    dot_space space_[2];
    cg_oracle want_;
};

} // namespace

void add_solvers(std::vector<workload> &list)
{
    /*
     * By kernels alone the shape is the table's: width 18, depth 3 k + 3, so 97, 18 and 12 at k = 3. Here the host's
     * 2 k reads count in width and depth: each waits for an inner product, and nothing on the device waits for them.
     */
    list.push_back({"cg", "conjugate gradients, dense, two host decisions an iteration", "GrCUDA",
                    {{"n", "unknowns; a multiple of 16", 96, 4096, 32768}, {"iterations", "iterations", 3, 10, 3}},
                    [](const sizes &s) {
                        const uint32_t k = static_cast<uint32_t>(s["iterations"]);
                        return shape{34 + 21 * k, 48 + 54 * k, k > 1 ? 15 + 2 * k : 18, 4 + 3 * k};
                    },
                    make<conjugate_gradients>, true});
    list.push_back({"mul", "products and copies into disjoint parts of one vector", "GrCUDA",
                    {{"rows", "rows of each of 16 parts", 10, 256, 4096}, {"columns", "columns", 100, 4096, 65536}},
                    [](const sizes &) { return shape{2 * PARTS, PARTS, PARTS, 2}; }, make<products>, false});
}

} // namespace bench

/*
 * Owns MUL and CG of GrCUDA's suite: a dense matrix in 16 blocks of rows, whose products go to parts of one vector. By
 * byte ranges the parts are independent; a runtime that tracks whole arrays puts them one behind the other. There is CG
 * with a number of iterations, and with a limit for the residual. Called by workloads.cpp.
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

template <class A> struct product_of {
    typedef A args;
    typedef double value;
    ACS_DUAL double none() { return 0; }
    ACS_DUAL double term(const args &a, size_t i) { return static_cast<double>(a.x[i]) * static_cast<double>(a.y[i]); }
    ACS_DUAL double join(double x, double y) { return x + y; }
};

struct dot_of : product_of<dot_args> {
    ACS_DUAL void store(const args &a, double sum) { *a.res = sum; }
};

BENCH_REDUCE_KERNEL(dot, dot_of)

/* saxpy(x -> +y): y += factor x; xpay(x -> +y): y = x + factor y. With `over` the factor is times over / under. */
struct vector_args {
    unsigned threads;
    float factor;
    const float *x;
    float *y;
    const double *over, *under; /* on the device, or NULL */
};

ACS_DUAL float factor_of(const vector_args &a)
{
    return a.over ? a.factor * static_cast<float>(*a.over / *a.under) : a.factor;
}

ACS_DUAL void saxpy_thread(const vector_args &a, unsigned i)
{
    a.y[i] += factor_of(a) * a.x[i];
}

ACS_DUAL_KERNEL(saxpy, vector_args, BLOCK)

ACS_DUAL void xpay_thread(const vector_args &a, unsigned i)
{
    a.y[i] = a.x[i] + factor_of(a) * a.y[i];
}

ACS_DUAL_KERNEL(xpay, vector_args, BLOCK)

/* What a solver that ends by itself keeps on the device. */
enum { SQUARED, SQUARED_BEFORE, LIMIT, CURVATURE, SCALARS }; /* r r now and one iteration ago, r r at the end, p A p */
enum { STOP, ITERATIONS, WORDS };

/*
 * progress(r -> +scalars, +words): the inner product of r with itself, and whether it ends the solver. At the beginning
 * `first_limit` is the limit as a share of this product; behind an iteration it is 0.
 */
struct progress_args {
    reduce_space<double> space;
    const float *x, *y; /* both r */
    double *scalars;
    uint32_t *words;
    double first_limit;
};

struct progress_of : product_of<progress_args> {
    ACS_DUAL void store(const args &a, double sum)
    {
        const bool begins = a.first_limit > 0;
        if (begins)
            a.scalars[LIMIT] = a.first_limit * sum;
        a.scalars[SQUARED_BEFORE] = begins ? sum : a.scalars[SQUARED];
        a.scalars[SQUARED] = sum;
        a.words[ITERATIONS] = begins ? 0 : a.words[ITERATIONS] + 1;
        a.words[STOP] = sum <= a.scalars[LIMIT];
    }
};

BENCH_REDUCE_KERNEL(progress, progress_of)

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
    /* Ends earlier once the inner product of r is at most `limit` times the first one. */
    void solve(const std::vector<double> &b, uint64_t iterations, double limit)
    {
        y = multiply(x);
        r = b;
        for (size_t i = 0; i < r.size(); i++)
            r[i] -= y[i];
        p = r;
        scalars.push_back(dot(r, r));
        for (uint64_t k = 0; k < iterations && scalars[2 * k] > limit * scalars[0]; k++) {
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

/* Conjugate gradients from a start that is not zero: the system, and the parts of an iteration. */
class cg_system : public program {
public:
    cg_system(memory &m, const sizes &s) : program(m), n_(s["n"]), rows_(n_ / PARTS)
    {
        require(n_ > 0 && n_ % PARTS == 0, "cg: n must be a multiple of 16");
        points_ = random<float>(n_, 1101, 0, 1);
        b_ = random<float>(n_, 1102, -1, 1);
        x_ = random<float>(n_, 1103, -1, 1);
        for (float *&a : a_)
            a = scratch<float>(rows_ * n_);
        for (float **v : {&r_, &p_, &y_})
            *v = scratch<float>(n_);
        for (dot_space &d : space_)
            d = {scratch<double>(reduce_ctas(n_)), zeros<unsigned>(1)};
        for (const float *v : {x_, r_, p_, y_})
            mark_result(v);
    }

protected:
    /* The matrix, and r = p = b - A x. */
    void assemble(sink &s)
    {
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
    /* y = A p, and the inner product of both. */
    void multiply_direction(sink &s, double *to)
    {
        for (unsigned k = 0; k < PARTS; k++)
            multiply(s, kernel_mv, k, p_, nullptr, y_, {});
        product(s, 1, p_, y_, to);
    }
    void product(sink &s, unsigned space, const float *u, const float *v, double *to)
    {
        const dot_space &d = space_[space];
        const unsigned ctas = reduce_ctas(n_);
        const acs_segment uses[] = {in(u, n_), in(v, n_), out(to, 1), out(d.partial, ctas), inout(d.tickets, 1)};
        launch_grid(s, kernel_dot, ctas, REDUCE_BLOCK, dot_args{{n_, ctas, d.partial, d.tickets}, u, v, to}, uses, 5);
    }

    /* Compares the vectors with those of the oracle, which ends by the same rule. */
    std::string check_vectors(uint64_t most, double limit)
    {
        const std::vector<float> x = get(x_, n_), r = get(r_, n_);
        const std::vector<double> b = random_contents(n_, 1102, -1.0f, 1.0f);
        if (want_.points.empty()) {
            want_.points = random_contents(n_, 1101, 0.0f, 1.0f);
            want_.x = random_contents(n_, 1103, -1.0f, 1.0f);
            want_.solve(b, most, limit);
        }
        const std::string wrong =
            first_of({differs("x", x, want_.x, 0, 10 * close()), differs("r", r, want_.r, 0, close()),
                      differs("p", get(p_, n_), want_.p, 0, close()), differs("y", get(y_, n_), want_.y, 0, close())});
        if (!wrong.empty())
            return wrong;
        /* The residual that CG carries along is that of its x. */
        std::vector<double> left = want_.multiply(std::vector<double>(x.begin(), x.end()));
        for (size_t i = 0; i < n_; i++)
            left[i] = b[i] - left[i];
        return differs("r, beside b - A x,", r, left, 0, close());
    }
    /*
     * For the oracle's iterations, two scalars each. Vectors are near 1 at first. Each product rounds by some 1e-7, and
     * an iteration hands that on enlarged a little. Inner products of what has become small are as exact as before, but
     * for the square of that.
     */
    double close() const { return 1e-6 * static_cast<double>(want_.scalars.size() + 1); }

    size_t n_, rows_;
    float *points_, *b_, *x_, *r_, *p_, *y_, *a_[PARTS];
    dot_space space_[2];
    cg_oracle want_;
};

/*
 * A fixed number of iterations. The host computes the step from two inner products and the direction from the next, so
 * it reads twice in an iteration, and its reads must not wait for what they do not need.
 */
class conjugate_gradients : public cg_system {
public:
    conjugate_gradients(memory &m, const sizes &s) : cg_system(m, s), iterations_(s["iterations"])
    {
        mark_result(scalars_ = scratch<double>(scalars()));
    }

    void run(sink &s) override
    {
        begin();
        assemble(s);
        product(s, 0, r_, r_, scalars_);
        for (uint64_t k = 0; k < iterations_; k++)
            iterate(s, scalars_ + 2 * k);
    }

    std::string check() override
    {
        const std::string wrong = check_vectors(iterations_, 0);
        if (!wrong.empty())
            return wrong;
        return differs("scalars", get(scalars_, scalars()), want_.scalars, 1e-4, 1e-3 * close());
    }

private:
    /* Inner products, all kept: of r before iteration k at 2 k, of p and A p at 2 k + 1. */
    size_t scalars() const { return 2 * iterations_ + 1; }

    void iterate(sink &s, double *scalar)
    {
        double now[2], next;
        multiply_direction(s, scalar + 1);
        s.read(now, scalar, sizeof now);
        const float alpha = static_cast<float>(now[0] / now[1]);
        axpy(s, kernel_saxpy, alpha, p_, x_);
        axpy(s, kernel_saxpy, -alpha, y_, r_);
        product(s, 0, r_, r_, scalar + 2);
        s.read(&next, scalar + 2, sizeof next);
        axpy(s, kernel_xpay, static_cast<float>(next / now[0]), r_, p_);
    }

    void axpy(sink &s, const acs_dual_kernel &kernel, float factor, const float *x, float *y)
    {
        launch(s, kernel, BLOCK, vector_args{static_cast<unsigned>(n_), factor, x, y, nullptr, nullptr},
               {in(x, n_), inout(y, n_)});
    }

    uint64_t iterations_;
    double *scalars_;
};

/*
 * CG until the residual is small. The device computes steps and directions, and the word that ends the loop. The host
 * reads that word once per iteration, or leaves the loop to the device.
 */
class converging_gradients : public cg_system {
public:
    converging_gradients(memory &m, const sizes &s)
        : cg_system(m, s), most_(static_cast<uint32_t>(s["most"])),
          limit_(std::pow(10.0, -2.0 * static_cast<double>(s["digits"])))
    {
        mark_result(scalars_ = scratch<double>(SCALARS));
        mark_result(words_ = scratch<uint32_t>(WORDS));
    }

    bool decided() const override { return true; }

    void run(sink &s) override
    {
        begin();
        assemble(s);
        progress(s, limit_);
        s.loop(words_ + STOP, most_, [&] {
            multiply_direction(s, scalars_ + CURVATURE);
            axpy(s, kernel_saxpy, 1, scalars_ + SQUARED, scalars_ + CURVATURE, p_, x_);
            axpy(s, kernel_saxpy, -1, scalars_ + SQUARED, scalars_ + CURVATURE, y_, r_);
            progress(s, 0);
            axpy(s, kernel_xpay, 1, scalars_ + SQUARED, scalars_ + SQUARED_BEFORE, r_, p_);
        });
    }

    std::string check() override
    {
        const std::string wrong = check_vectors(most_, limit_);
        const std::vector<uint32_t> words = get(words_, WORDS);
        const std::vector<double> &all = want_.scalars;
        const size_t last = all.size() - 1;
        const auto is_near = [&](size_t k) { return std::fabs(all[k] / all[0] / limit_ - 1) < 1e-2; };
        if (last < 2 || is_near(last) || is_near(last - 2))
            return "the oracle ends too close to the limit, or at once: take another number of digits";
        if (words[ITERATIONS] != last / 2 || words[STOP] != (all[last] <= limit_ * all[0]))
            return "it ended after " + std::to_string(words[ITERATIONS]) + " iterations, the oracle after " +
                   std::to_string(last / 2);
        if (!wrong.empty())
            return wrong;
        return differs("scalars", get(scalars_, SCALARS),
                       {all[last], all[last - 2], limit_ * all[0], all[last - 1]}, 1e-4, 1e-3 * close());
    }

private:
    void progress(sink &s, double first_limit)
    {
        const dot_space &d = space_[0];
        const unsigned ctas = reduce_ctas(n_);
        const bool begins = first_limit > 0;
        const acs_segment uses[] = {in(r_, n_),
                                    begins ? out(scalars_ + SQUARED, 3) : inout(scalars_ + SQUARED, 2),
                                    begins ? out(words_, WORDS) : inout(words_, WORDS),
                                    out(d.partial, ctas),
                                    inout(d.tickets, 1),
                                    in(scalars_ + LIMIT, 1)};
        launch_grid(s, kernel_progress, ctas, REDUCE_BLOCK,
                    progress_args{{n_, ctas, d.partial, d.tickets}, r_, r_, scalars_, words_, first_limit}, uses,
                    begins ? 5 : 6);
    }
    void axpy(sink &s, const acs_dual_kernel &kernel, float sign, const double *over, const double *under,
              const float *x, float *y)
    {
        launch(s, kernel, BLOCK, vector_args{static_cast<unsigned>(n_), sign, x, y, over, under},
               {in(x, n_), inout(y, n_), in(over, 1), in(under, 1)});
    }

    uint32_t most_;
    double limit_; /* share of the first inner product of r at which it ends */
    double *scalars_;
    uint32_t *words_;
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
    list.push_back({"cg-until", "conjugate gradients, dense, until the residual is small", "GrCUDA",
                    {{"n", "unknowns; a multiple of 16", 96, 4096, 32768},
                     {"digits", "it ends when the residual is so many decimal digits smaller", 3, 5, 4},
                     {"most", "most iterations", 100, 100, 100}},
                    nullptr, make<converging_gradients>, true, true});
    list.push_back({"mul", "products and copies into disjoint parts of one vector", "GrCUDA",
                    {{"rows", "rows of each of 16 parts", 10, 256, 4096}, {"columns", "columns", 100, 4096, 65536}},
                    [](const sizes &) { return shape{2 * PARTS, PARTS, PARTS, 2}; }, make<products>, false});
}

} // namespace bench

/*
 * Owns three programs of PolyBench that have little or no parallelism between kernels, so that no runner may make them
 * slower: 3MM, GEMVER and FDTD-2D. Called by workloads.cpp.
 */
#include <memory>

#include "check.h"
#include "workload.h"

namespace bench {

namespace {

enum { BLOCK = 256, TILE = 32, HALF = TILE / 2, GROUPS = BLOCK / TILE };

template <class P> std::unique_ptr<program> make(memory &m, const sizes &s)
{
    return std::unique_ptr<program>(new P(m, s));
}

/*
 * gemm(a, b -> c) of square matrices: a CTA computes a tile of 32 x 32, a thread four elements of it. Phases take
 * turns: load a tile of each factor, multiply; at last store.
 */
struct gemm_args {
    unsigned n; /* a multiple of TILE */
    const float *a, *b;
    float *c;
};

struct gemm_shared {
    float a[TILE][TILE + 1], b[TILE][TILE + 1]; /* one column more than needed: neighbouring rows lie in other banks */
    float sum[4][BLOCK];
};

ACS_DUAL int gemm_phases(const gemm_args &a)
{
    return static_cast<int>(a.n / TILE) * 2 + 1;
}

ACS_DUAL void gemm_load(const gemm_args &g, unsigned step, unsigned tile_row, unsigned tile_column, unsigned thread,
                        gemm_shared &s)
{
    const size_t n = g.n;
    for (unsigned k = thread; k < TILE * TILE; k += BLOCK) {
        const unsigned row = k / TILE, column = k % TILE;
        s.a[row][column] = g.a[(tile_row * TILE + row) * n + step * TILE + column];
        s.b[row][column] = g.b[(step * TILE + row) * n + tile_column * TILE + column];
    }
    for (unsigned k = 0; step == 0 && k < 4; k++)
        s.sum[k][thread] = 0;
}

ACS_DUAL void gemm_multiply(unsigned row, unsigned column, unsigned thread, gemm_shared &s)
{
    float sum[4];
    for (unsigned k = 0; k < 4; k++)
        sum[k] = s.sum[k][thread];
    for (unsigned k = 0; k < TILE; k++) {
        sum[0] += s.a[row][k] * s.b[k][column];
        sum[1] += s.a[row][k] * s.b[k][column + HALF];
        sum[2] += s.a[row + HALF][k] * s.b[k][column];
        sum[3] += s.a[row + HALF][k] * s.b[k][column + HALF];
    }
    for (unsigned k = 0; k < 4; k++)
        s.sum[k][thread] = sum[k];
}

ACS_DUAL void gemm_phase(const gemm_args &g, int phase, unsigned block, unsigned thread, gemm_shared &s)
{
    const unsigned tiles = g.n / TILE, tile_row = block / tiles, tile_column = block % tiles;
    const unsigned row = thread / HALF, column = thread % HALF, step = static_cast<unsigned>(phase) / 2;

    if (step == tiles) {
        for (unsigned k = 0; k < 4; k++) {
            const size_t to_row = tile_row * TILE + row + (k / 2) * HALF;
            g.c[to_row * g.n + tile_column * TILE + column + (k % 2) * HALF] = s.sum[k][thread];
        }
    } else if (phase % 2 == 0) {
        gemm_load(g, step, tile_row, tile_column, thread, s);
    } else {
        gemm_multiply(row, column, thread, s);
    }
}

ACS_DUAL_BLOCK_KERNEL(gemm, gemm_args, gemm_shared, BLOCK)

/* E = A B, F = C D, G = E F. Factors are such that every matrix has elements near 1 / sqrt(n). */
class three_products : public program {
public:
    three_products(memory &m, const sizes &s)
        : program(m), n_(s["n"]), range_(static_cast<float>(std::sqrt(3.0 / static_cast<double>(n_))))
    {
        require(n_ > 0 && n_ % TILE == 0, "3mm: n must be a multiple of 32");
        for (unsigned k = 0; k < 4; k++)
            factor_[k] = random<float>(n_ * n_, 901 + k, -range_, range_);
        for (float *&p : product_)
            mark_result(p = scratch<float>(n_ * n_));
    }

    void run(sink &s) override
    {
        begin();
        multiply(s, factor_[0], factor_[1], product_[0]);
        multiply(s, factor_[2], factor_[3], product_[1]);
        multiply(s, product_[0], product_[1], product_[2]);
    }

    /* Large matrices are sampled: some rows of E, some columns of F, and the elements of G that they give. */
    std::string check() override
    {
        const size_t cells = n_ * n_;
        const std::vector<float> e = get(product_[0], cells), f = get(product_[1], cells), g = get(product_[2], cells);
        const size_t step = n_ <= 256 ? 1 : (n_ / 16) | 1;
        /* A sum of n terms is off by n roundings of 6e-8 of numbers near 1 / sqrt(n); G has three such sums in it. */
        const double close = 2e-7 * std::sqrt(static_cast<double>(n_));
        std::string wrong;

        factors();
        for (size_t i = 0; i < n_ && wrong.empty(); i += step)
            wrong = differs("E", row(e, i), row_of_product(want_[0], want_[1], i), 0, close);
        for (size_t j = 0; j < n_ && wrong.empty(); j += step)
            wrong = differs("F", column(f, j), column_of_product(want_[2], want_[3], j), 0, close);
        for (size_t j = 0; j < n_ && wrong.empty(); j += step) {
            const std::vector<double> right = column_of_product(want_[2], want_[3], j);
            for (size_t i = 0; i < n_ && wrong.empty(); i += step) {
                double sum = 0;
                for (size_t k = 0; k < n_; k++)
                    sum += left(i)[k] * right[k];
                wrong = differs("G", g[i * n_ + j], sum, 0, 3 * close);
            }
        }
        return wrong;
    }

private:
    void multiply(sink &s, const float *a, const float *b, float *c)
    {
        const unsigned n = static_cast<unsigned>(n_), tiles = n / TILE;
        const size_t cells = n_ * n_;
        const acs_segment uses[] = {in(a, cells), in(b, cells), out(c, cells)};
        launch_grid(s, kernel_gemm, tiles * tiles, BLOCK, gemm_args{n, a, b, c}, uses, 3);
    }

    void factors()
    {
        for (unsigned k = 0; k < 4 && want_[k].empty(); k++)
            want_[k] = random_contents(n_ * n_, 901 + k, -range_, range_);
    }
    /* Rows of E that were needed before. */
    const std::vector<double> &left(size_t i)
    {
        if (left_.empty())
            left_.resize(n_);
        if (left_[i].empty())
            left_[i] = row_of_product(want_[0], want_[1], i);
        return left_[i];
    }

    template <class T> std::vector<T> row(const std::vector<T> &a, size_t i) const
    {
        const auto first = a.begin() + static_cast<std::ptrdiff_t>(i * n_);
        return std::vector<T>(first, first + static_cast<std::ptrdiff_t>(n_));
    }
    template <class T> std::vector<T> column(const std::vector<T> &a, size_t j) const
    {
        std::vector<T> c(n_);
        for (size_t i = 0; i < n_; i++)
            c[i] = a[i * n_ + j];
        return c;
    }
    std::vector<double> row_of_product(const std::vector<double> &a, const std::vector<double> &b, size_t i) const
    {
        std::vector<double> c(n_, 0);
        for (size_t k = 0; k < n_; k++)
            for (size_t j = 0; j < n_; j++)
                c[j] += a[i * n_ + k] * b[k * n_ + j];
        return c;
    }
    std::vector<double> column_of_product(const std::vector<double> &a, const std::vector<double> &b, size_t j) const
    {
        const std::vector<double> right = column(b, j);
        std::vector<double> c(n_, 0);
        for (size_t i = 0; i < n_; i++)
            for (size_t k = 0; k < n_; k++)
                c[i] += a[i * n_ + k] * right[k];
        return c;
    }

    size_t n_;
    float range_, *factor_[4], *product_[3];
    std::vector<double> want_[4];
    std::vector<std::vector<double>> left_;
};

/* rank2(u1, v1, u2, v2 -> +a): a += u1 v1' + u2 v2' */
struct rank2_args {
    unsigned threads, n;
    const float *u1, *v1, *u2, *v2;
    float *a;
};

ACS_DUAL void rank2_thread(const rank2_args &r, unsigned k)
{
    const unsigned i = k / r.n, j = k % r.n;
    r.a[k] += r.u1[i] * r.v1[j] + r.u2[i] * r.v2[j];
}

ACS_DUAL_KERNEL(rank2, rank2_args, BLOCK)

/* columns(a, y, z -> +x): x += beta a' y + z. A CTA has 32 columns, each summed by 8 threads. */
struct columns_args {
    unsigned n;
    float beta;
    const float *a, *y, *z;
    float *x;
};

struct group_shared {
    float part[GROUPS][TILE];
};

ACS_DUAL int columns_phases(const columns_args &)
{
    return 2;
}

ACS_DUAL void columns_phase(const columns_args &a, int phase, unsigned block, unsigned thread, group_shared &s)
{
    const unsigned group = thread / TILE, column = block * TILE + thread % TILE;
    float sum = 0;

    if (phase == 0) {
        for (size_t i = group; i < a.n; i += GROUPS)
            sum += a.a[i * a.n + column] * a.y[i];
        s.part[group][thread % TILE] = sum;
    } else if (group == 0) {
        for (unsigned g = 0; g < GROUPS; g++)
            sum += s.part[g][thread];
        a.x[column] += a.beta * sum + a.z[column];
    }
}

ACS_DUAL_BLOCK_KERNEL(columns, columns_args, group_shared, BLOCK)

/* rows(a, x -> +w): w += alpha a x. A CTA has 8 rows, each summed by 32 threads. */
struct rows_args {
    unsigned n;
    float alpha;
    const float *a, *x;
    float *w;
};

ACS_DUAL int rows_phases(const rows_args &)
{
    return 7; /* 32 sums, five halvings, the result */
}

ACS_DUAL void rows_phase(const rows_args &a, int phase, unsigned block, unsigned thread, group_shared &s)
{
    const unsigned group = thread / TILE, lane = thread % TILE;
    const size_t row = block * GROUPS + group;

    if (phase == 0) {
        float sum = 0;
        for (unsigned j = lane; j < a.n; j += TILE)
            sum += a.a[row * a.n + j] * a.x[j];
        s.part[group][lane] = sum;
    } else if (phase < 6) {
        const unsigned half = static_cast<unsigned>(TILE) >> phase;
        if (lane < half)
            s.part[group][lane] += s.part[group][lane + half];
    } else if (lane == 0) {
        a.w[row] += a.alpha * s.part[group][0];
    }
}

ACS_DUAL_BLOCK_KERNEL(rows, rows_args, group_shared, BLOCK)

/* A += u1 v1' + u2 v2'; x += beta A' y + z; w += alpha A x: a chain. */
class gemver : public program {
public:
    gemver(memory &m, const sizes &s)
        : program(m), n_(s["n"]), range_(static_cast<float>(std::sqrt(3.0 / static_cast<double>(n_))))
    {
        require(n_ > 0 && n_ % TILE == 0, "gemver: n must be a multiple of 32");
        a_ = random<float>(n_ * n_, 921, -1, 1);
        for (unsigned k = 0; k < 4; k++)
            u_[k] = random<float>(n_, 922 + k, -1, 1);
        y_ = random<float>(n_, 926, -range_, range_);
        z_ = random<float>(n_, 927, -1, 1);
        x_ = random<float>(n_, 928, -1, 1);
        w_ = random<float>(n_, 929, -1, 1);
        for (const float *p : {a_, x_, w_})
            mark_result(p);
    }

    void run(sink &s) override
    {
        const unsigned n = static_cast<unsigned>(n_);
        const size_t cells = n_ * n_;
        const acs_segment columns[] = {in(a_, cells), in(y_, n_), in(z_, n_), inout(x_, n_)};
        const acs_segment rows[] = {in(a_, cells), in(x_, n_), inout(w_, n_)};

        begin();
        launch(s, kernel_rank2, BLOCK,
               rank2_args{static_cast<unsigned>(cells), n, u_[0], u_[1], u_[2], u_[3], a_},
               {in(u_[0], n_), in(u_[1], n_), in(u_[2], n_), in(u_[3], n_), inout(a_, cells)});
        launch_grid(s, kernel_columns, n / TILE, BLOCK, columns_args{n, 1.25f, a_, y_, z_, x_}, columns, 4);
        launch_grid(s, kernel_rows, n / GROUPS, BLOCK, rows_args{n, 1.5f, a_, x_, w_}, rows, 3);
    }

    std::string check() override
    {
        if (w_want_.empty())
            solve();
        /*
         * Elements of A and x are near 1, those of w near sqrt(n). A sum for x has n / 8 roundings in a row; each
         * goes into w with an element of A, and w has n / 32 of its own.
         */
        const double n = static_cast<double>(n_);
        return first_of({differs_where("A", get(a_, n_ * n_), [&](size_t k) { return element(k); }, 0, 1e-6),
                         differs("x", get(x_, n_), x_want_, 0, 1e-6 + 1e-8 * n),
                         differs("w", get(w_, n_), w_want_, 0, 1e-6 * std::sqrt(n) + 1e-7 * n)});
    }

private:
    double vector(unsigned k, size_t i) const { return random_content(i, 922 + k, -1.0f, 1.0f); }
    double element(size_t k) const
    {
        const size_t i = k / n_, j = k % n_;
        return random_content(k, 921, -1.0f, 1.0f) + vector(0, i) * vector(1, j) + vector(2, i) * vector(3, j);
    }
    void solve()
    {
        x_want_ = random_contents(n_, 928, -1.0f, 1.0f);
        w_want_ = random_contents(n_, 929, -1.0f, 1.0f);
        for (size_t j = 0; j < n_; j++)
            x_want_[j] += random_content(j, 927, -1.0f, 1.0f);
        for (size_t k = 0; k < n_ * n_; k++)
            x_want_[k % n_] += 1.25 * element(k) * random_content(k / n_, 926, -range_, range_);
        for (size_t k = 0; k < n_ * n_; k++)
            w_want_[k / n_] += 1.5 * element(k) * x_want_[k % n_];
    }

    size_t n_;
    float range_, *a_, *u_[4], *y_, *z_, *x_, *w_;
    std::vector<double> x_want_, w_want_;
};

/* ey(drive, hz -> +ey), ex(hz -> +ex), hz(ex, ey -> +hz): a time step of a wave, driven from the upper border. */
struct field_args {
    unsigned threads, n;
    const float *drive;
    float *ex, *ey, *hz;
};

ACS_DUAL void field_y_thread(const field_args &a, unsigned k)
{
    a.ey[k] = k < a.n ? *a.drive : a.ey[k] - 0.5f * (a.hz[k] - a.hz[k - a.n]);
}

ACS_DUAL_KERNEL(field_y, field_args, BLOCK)

ACS_DUAL void field_x_thread(const field_args &a, unsigned k)
{
    if (k % a.n > 0)
        a.ex[k] -= 0.5f * (a.hz[k] - a.hz[k - 1]);
}

ACS_DUAL_KERNEL(field_x, field_args, BLOCK)

ACS_DUAL void field_z_thread(const field_args &a, unsigned k)
{
    if (k / a.n < a.n - 1 && k % a.n < a.n - 1)
        a.hz[k] -= 0.7f * (a.ex[k + 1] - a.ex[k] + a.ey[k + a.n] - a.ey[k]);
}

ACS_DUAL_KERNEL(field_z, field_args, BLOCK)

class fdtd : public program {
public:
    fdtd(memory &m, const sizes &s) : program(m), n_(s["n"]), cells_(n_ * n_), steps_(s["steps"])
    {
        drive_ = random<float>(steps_, 941, -1, 1);
        ex_ = random<float>(cells_, 942, -1, 1);
        ey_ = random<float>(cells_, 943, -1, 1);
        hz_ = random<float>(cells_, 944, -1, 1);
        for (const float *p : {ex_, ey_, hz_})
            mark_result(p);
    }

    void run(sink &s) override
    {
        begin();
        for (uint64_t t = 0; t < steps_; t++) {
            const field_args a = {static_cast<unsigned>(cells_), static_cast<unsigned>(n_), drive_ + t, ex_, ey_, hz_};
            launch(s, kernel_field_y, BLOCK, a, {in(drive_ + t, 1), in(hz_, cells_), inout(ey_, cells_)});
            launch(s, kernel_field_x, BLOCK, a, {in(hz_, cells_), inout(ex_, cells_)});
            launch(s, kernel_field_z, BLOCK, a, {in(ex_, cells_), in(ey_, cells_), inout(hz_, cells_)});
        }
    }

    std::string check() override
    {
        if (hz_want_.empty())
            solve();
        /*
         * The scheme is stable (0.5 * 0.7 * 2 < 1): a rounding of 6e-8 stays as large as it is, and steps add theirs.
         * On the far borders, where hz stays as it is, the other fields grow with each step, and so do their roundings.
         */
        const double steps = static_cast<double>(steps_), far = 1e-7 * steps, close = 1e-6 + 5e-7 * steps;
        return first_of({differs("ex", get(ex_, cells_), ex_want_, far, close),
                         differs("ey", get(ey_, cells_), ey_want_, far, close),
                         differs("hz", get(hz_, cells_), hz_want_, far, close)});
    }

private:
    void solve()
    {
        std::vector<double> &ex = ex_want_, &ey = ey_want_, &hz = hz_want_;
        ex = random_contents(cells_, 942, -1.0f, 1.0f);
        ey = random_contents(cells_, 943, -1.0f, 1.0f);
        hz = random_contents(cells_, 944, -1.0f, 1.0f);
        for (uint64_t t = 0; t < steps_; t++) {
            for (size_t j = 0; j < n_; j++)
                ey[j] = random_content(t, 941, -1.0f, 1.0f);
            for (size_t i = 0; i < n_; i++)
                for (size_t j = 0; j < n_; j++) {
                    const size_t k = i * n_ + j;
                    ey[k] -= i > 0 ? 0.5 * (hz[k] - hz[k - n_]) : 0;
                    ex[k] -= j > 0 ? 0.5 * (hz[k] - hz[k - 1]) : 0;
                }
            for (size_t i = 0; i + 1 < n_; i++)
                for (size_t j = 0; j + 1 < n_; j++) {
                    const size_t k = i * n_ + j;
                    hz[k] -= 0.7 * (ex[k + 1] - ex[k] + ey[k + n_] - ey[k]);
                }
        }
    }

    size_t n_, cells_;
    uint64_t steps_;
    float *drive_, *ex_, *ey_, *hz_;
    std::vector<double> ex_want_, ey_want_, hz_want_;
};

} // namespace

void add_polybench(std::vector<workload> &list)
{
    list.push_back({"3mm", "product of two products of matrices", "PolyBench",
                    {{"n", "rows and columns; a multiple of 32", 64, 256, 2048}},
                    [](const sizes &) { return shape{3, 2, 2, 2}; }, make<three_products>, false});
    list.push_back({"gemver", "rank-2 update and two matrix-vector products", "PolyBench",
                    {{"n", "rows and columns; a multiple of 32", 64, 2048, 4000}},
                    [](const sizes &) { return shape{3, 2, 1, 3}; }, make<gemver>, false});
    /* PolyBench's largest has 1000 steps; the oracle would take minutes. */
    list.push_back({"fdtd2d", "electromagnetic waves in the plane, step by step", "PolyBench",
                    {{"n", "rows and columns", 30, 1024, 2000}, {"steps", "time steps", 10, 20, 100}},
                    [](const sizes &s) {
                        const uint32_t t = static_cast<uint32_t>(s["steps"]);
                        return shape{3 * t, 4 * t - 2, 2, 2 * t};
                    },
                    make<fdtd>, false});
}

} // namespace bench

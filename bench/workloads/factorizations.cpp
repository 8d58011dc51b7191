/*
 * Tiled factorizations, right-looking: Cholesky, and LU without pivots of a diagonally dominant matrix. T x T tiles lie in
 * one matrix stored by columns, with a pitch larger than its rows, so that tiles are strided and side by side. Every op is
 * a library call of wrappers/acs_blas. Owns the programs and their oracles; runs nothing itself.
 */
#include <algorithm>
#include <cfloat>

#include "acs_blas.h"
#include "check.h"
#include "workload.h"

namespace bench {

namespace {

enum { SEED = 41, PAD = 6, SAMPLES = 256 };

class factorization : public program {
public:
    factorization(memory &m, const sizes &s)
        : program(m), tiles_(static_cast<int>(s["tiles"])), tile_(static_cast<int>(s["tile"])), n_(tiles_ * tile_),
          ld_(n_ + PAD)
    {
        require(tiles_ > 0 && tile_ > 0, "a factorization needs at least one tile of one element");
        if (m.gpu() && acs_blas_load() != ACS_OK) {
            acs_error error = {};
            error.size = sizeof error;
            (void)acs_blas_last_error(&error);
            missing_ = error.text;
        }
    }

    void run(sink &s) override
    {
        begin();
        if (!missing_.empty())
            return; /* check() says why nothing was launched */
        for (int k = 0; k < tiles_; k++)
            step(s, k);
    }

    /*
     * The product of the factors against the matrix, in columns spread evenly: all of them where they are few. An update
     * that came too early or too late spoils all of a tile, so a few columns of each show it.
     */
    std::string check() override
    {
        if (!missing_.empty())
            return missing_;
        const std::vector<double> got = get(a_, static_cast<size_t>(ld_) * n_);
        const int stride = (n_ + SAMPLES - 1) / SAMPLES;
        for (int j = n_ - 1; j >= 0; j -= stride) {
            const std::string wrong = check_column(got, j);
            if (!wrong.empty())
                return wrong;
        }
        for (size_t i = 0; i < got.size(); i++)
            if (i % ld_ >= static_cast<size_t>(n_) && !std::isnan(got[i]))
                return "the gap below column " + std::to_string(i / ld_) + " was written";
        return {};
    }

protected:
    /* Panel k and what follows from it. */
    virtual void step(sink &s, int k) = 0;
    /* Element (i, j) of the matrix. */
    virtual double element(int i, int j) const = 0;
    /* Column j of the product of the factors in `got`; sets the first row that the factors say anything of. */
    virtual std::vector<double> product(const std::vector<double> &got, int j, int &first) const = 0;

    /* To be called by constructors: the matrix, and NaN in the gaps below its columns. */
    void make_matrix()
    {
        std::vector<double> v(static_cast<size_t>(ld_) * n_, std::nan(""));
        for (int j = 0; j < n_; j++)
            for (int i = 0; i < n_; i++)
                v[at(i, j)] = element(i, j);
        a_ = values(v);
        mark_result(a_);
    }

    size_t at(int i, int j) const { return static_cast<size_t>(j) * ld_ + i; }
    double *tile(int i, int j) const { return a_ + at(i * tile_, j * tile_); }
    /* In [-0.5, 0.5). */
    double noise(int i, int j) const { return random_unit(SEED, static_cast<uint64_t>(i) * n_ + j) - 0.5; }

    void send(sink &s, acs_blas_call &c, acs_status prepared)
    {
        require(prepared == ACS_OK, "acs_blas refused a factorization's op");
        if (!mem().gpu())
            c.params.scratch_bytes = 0; /* the CPU's loops need none */
        call(s, c.params);
    }
    void update(sink &s, int i, int j, int k, acs_blas_trans transb, const double *b)
    {
        acs_blas_call c;
        send(s, c, acs_blas_dgemm_prepare(&c, ACS_BLAS_N, transb, tile_, tile_, tile_, -1, tile(i, k), ld_, b, ld_, 1,
                                          tile(i, j), ld_));
    }
    void solve(sink &s, acs_blas_side side, acs_blas_uplo uplo, acs_blas_trans trans, acs_blas_diag diag, int k, int i,
               int j)
    {
        acs_blas_call c;
        send(s, c, acs_blas_dtrsm_prepare(&c, side, uplo, trans, diag, tile_, tile_, 1, tile(k, k), ld_, tile(i, j), ld_));
    }

    const int tiles_, tile_, n_, ld_;
    double *a_ = nullptr;
    std::string missing_; /* why a GPU cannot run this */

private:
    std::string check_column(const std::vector<double> &got, int j) const
    {
        /* The bound of rounding for both: n units in the last place of the largest element, which is on the diagonal. */
        const double tolerance = 4.0 * n_ * DBL_EPSILON * n_;
        int first = 0;
        const std::vector<double> p = product(got, j, first);
        for (int i = first; i < n_; i++)
            if (!near(p[static_cast<size_t>(i)], element(i, j), 0, tolerance)) {
                char text[160];
                snprintf(text, sizeof text, "the factors' product at (%d, %d) is %.17g, must be %.17g", i, j,
                         p[static_cast<size_t>(i)], element(i, j));
                return text;
            }
        return {};
    }
};

/* The lower triangle becomes L with A = L Lᵀ. */
class cholesky : public factorization {
public:
    cholesky(memory &m, const sizes &s) : factorization(m, s) { make_matrix(); }

private:
    void step(sink &s, int k) override
    {
        acs_blas_call c;
        send(s, c, acs_blas_dpotrf_prepare(&c, ACS_BLAS_LOWER, tile_, tile(k, k), ld_, nullptr));
        for (int i = k + 1; i < tiles_; i++)
            solve(s, ACS_BLAS_RIGHT, ACS_BLAS_LOWER, ACS_BLAS_T, ACS_BLAS_NON_UNIT, k, i, k);
        for (int j = k + 1; j < tiles_; j++) {
            send(s, c, acs_blas_dsyrk_prepare(&c, ACS_BLAS_LOWER, ACS_BLAS_N, tile_, tile_, -1, tile(j, k), ld_, 1,
                                              tile(j, j), ld_));
            for (int i = j + 1; i < tiles_; i++)
                update(s, i, j, k, ACS_BLAS_T, tile(j, k));
        }
    }

    double element(int i, int j) const override { return i == j ? n_ : noise(std::max(i, j), std::min(i, j)); }

    std::vector<double> product(const std::vector<double> &got, int j, int &first) const override
    {
        std::vector<double> p(static_cast<size_t>(n_));
        first = j;
        for (int k = 0; k <= j; k++)
            for (int i = j; i < n_; i++)
                p[static_cast<size_t>(i)] += got[at(i, k)] * got[at(j, k)];
        return p;
    }
};

/* The matrix becomes L, whose diagonal of ones is not stored, and U with A = L U. */
class lu : public factorization {
public:
    lu(memory &m, const sizes &s) : factorization(m, s) { make_matrix(); }

private:
    void step(sink &s, int k) override
    {
        acs_blas_call c;
        send(s, c, acs_blas_dgetrf_nopiv_prepare(&c, tile_, tile_, tile(k, k), ld_, nullptr));
        for (int i = k + 1; i < tiles_; i++) {
            solve(s, ACS_BLAS_LEFT, ACS_BLAS_LOWER, ACS_BLAS_N, ACS_BLAS_UNIT, k, k, i);
            solve(s, ACS_BLAS_RIGHT, ACS_BLAS_UPPER, ACS_BLAS_N, ACS_BLAS_NON_UNIT, k, i, k);
        }
        for (int j = k + 1; j < tiles_; j++)
            for (int i = k + 1; i < tiles_; i++)
                update(s, i, j, k, ACS_BLAS_N, tile(k, j));
    }

    double element(int i, int j) const override { return i == j ? n_ : noise(i, j); }

    std::vector<double> product(const std::vector<double> &got, int j, int &first) const override
    {
        std::vector<double> p(static_cast<size_t>(n_));
        first = 0;
        for (int k = 0; k <= j; k++) {
            const double u = got[at(k, j)];
            p[static_cast<size_t>(k)] += u;
            for (int i = k + 1; i < n_; i++)
                p[static_cast<size_t>(i)] += got[at(i, k)] * u;
        }
        return p;
    }
};

template <class P> std::unique_ptr<program> make(memory &m, const sizes &s)
{
    return std::unique_ptr<program>(new P(m, s));
}

/*
 * Edges, Cholesky: each of T(T-1)/2 solves waits for its factor and is waited for by its syrk; each of as many syrks is
 * waited for by the next op on its tile; each of T(T-1)(T-2)/6 products waits for two solves and is waited for by the next
 * on its tile. LU alike, with T(T-1) solves and (T-1)T(2T-1)/6 products.
 */
shape cholesky_shape(const sizes &s)
{
    const uint32_t t = static_cast<uint32_t>(s["tiles"]);
    return {t * (t + 1) * (t + 2) / 6, (t - 1) * t * (t + 1) / 2, 0, 3 * t - 2};
}

shape lu_shape(const sizes &s)
{
    const uint32_t t = static_cast<uint32_t>(s["tiles"]), solves = t * (t - 1), products = (t - 1) * t * (2 * t - 1) / 6;
    return {t + solves + products, solves + 3 * products, 0, 3 * t - 2};
}

} // namespace

void add_factorizations(std::vector<workload> &list)
{
    const std::vector<parameter> parameters = {{"tiles", "tiles of a row, and of a column", 6, 16, 16},
                                               {"tile", "rows and columns of a tile", 8, 128, 512}};
    list.push_back({"cholesky", "tiled Cholesky through cuBLAS and cuSOLVER", "control", parameters, cholesky_shape,
                    make<cholesky>, false});
    list.push_back({"lu", "tiled LU without pivots through cuBLAS and cuSOLVER", "control", parameters, lu_shape, make<lu>,
                    false});
}

} // namespace bench

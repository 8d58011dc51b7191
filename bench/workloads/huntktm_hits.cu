/*
 * Owns HITS of HuntKTm's suite: hubs and authorities of a random weighted graph by power iteration. Called by
 * huntktm.cu.
 */
#include "huntktm.h"

#include "check.h"
#include "reduce.h"

namespace bench {

namespace {

enum { BLOCK = 128 };

/* Rows of a sparse matrix: those of row i lie from begin[i] to begin[i + 1]. */
struct sparse {
    std::vector<int> begin, column;
    std::vector<float> weight;
};

/* Each row has 1 to 2 * degree - 1 entries at random places. */
sparse random_graph(size_t nodes, uint64_t degree)
{
    sparse a;
    uint64_t draw = 0;
    a.begin.push_back(0);
    for (size_t i = 0; i < nodes; i++) {
        const uint64_t entries = 1 + static_cast<uint64_t>(random_unit(601, i) * static_cast<double>(2 * degree - 1));
        for (uint64_t k = 0; k < entries; k++, draw++) {
            a.column.push_back(static_cast<int>(random_unit(602, draw) * static_cast<double>(nodes)));
            a.weight.push_back(static_cast<float>(0.5 + random_unit(603, draw)));
        }
        a.begin.push_back(static_cast<int>(a.column.size()));
    }
    return a;
}

sparse transpose(const sparse &a)
{
    const size_t nodes = a.begin.size() - 1;
    sparse t;
    t.begin.assign(nodes + 1, 0);
    t.column.resize(a.column.size());
    t.weight.resize(a.column.size());
    for (int c : a.column)
        t.begin[static_cast<size_t>(c) + 1]++;
    for (size_t i = 0; i < nodes; i++)
        t.begin[i + 1] += t.begin[i];
    std::vector<int> next(t.begin.begin(), t.begin.end() - 1);
    for (size_t i = 0; i < nodes; i++)
        for (int k = a.begin[i]; k < a.begin[i + 1]; k++) {
            const size_t place = static_cast<size_t>(next[static_cast<size_t>(a.column[static_cast<size_t>(k)])]++);
            t.column[place] = static_cast<int>(i);
            t.weight[place] = a.weight[static_cast<size_t>(k)];
        }
    return t;
}

/* spmv(matrix, x -> y) */
struct spmv_args {
    unsigned threads;
    const int *begin, *column;
    const float *weight, *x;
    float *y;
};

ACS_DUAL void spmv_thread(const spmv_args &a, unsigned i)
{
    float sum = 0;
    for (int k = a.begin[i]; k < a.begin[i + 1]; k++)
        sum += a.weight[k] * a.x[a.column[k]];
    a.y[i] = sum;
}

ACS_DUAL_KERNEL(spmv, spmv_args, BLOCK)

/* sum(x -> +norm) */
struct sum_args {
    reduce_space<double> space;
    const float *x;
    double *norm;
};

struct sum_of {
    typedef sum_args args;
    typedef double value;
    ACS_DUAL double none() { return 0; }
    ACS_DUAL double term(const args &a, size_t i) { return static_cast<double>(a.x[i]); }
    ACS_DUAL double join(double x, double y) { return x + y; }
    ACS_DUAL void store(const args &a, double sum) { *a.norm += sum; }
};

BENCH_REDUCE_KERNEL(sum, sum_of)

/*
 * divide(x, norm -> y): y = 0.85 x / norm + 0.15 / n, as randomised HITS has it. Without the share that all nodes get,
 * an iteration would take away again every error of the one before that is a mere factor, wrong norms among them.
 */
struct divide_args {
    unsigned threads;
    float share;
    const float *x;
    const double *norm;
    float *y;
};

ACS_DUAL void divide_thread(const divide_args &a, unsigned i)
{
    a.y[i] = 0.85f * (a.x[i] / static_cast<float>(*a.norm)) + a.share;
}

ACS_DUAL_KERNEL(divide, divide_args, BLOCK)

/* reset(-> an, hn) */
struct reset_args {
    unsigned threads;
    double *an, *hn;
};

ACS_DUAL void reset_thread(const reset_args &a, unsigned)
{
    *a.an = 0;
    *a.hn = 0;
}

ACS_DUAL_KERNEL(reset, reset_args, 1)

/* One of the two sides: what it is computed from and where to. */
struct side {
    const int *begin, *column;
    const float *weight;
    size_t entries;
    float *now, *next; /* auth1 and auth2, or hub1 and hub2 */
    double *norm, *partial;
    unsigned *tickets;
};

class hits : public program {
public:
    hits(memory &m, const sizes &s)
        : program(m), n_(s["nodes"]), iterations_(s["iterations"]), graph_(random_graph(n_, s["degree"])),
          links_(transpose(graph_)), auth_(add_side(links_, 611)), hub_(add_side(graph_, 612))
    {
    }

    void run(sink &s) override
    {
        begin();
        for (uint64_t k = 0; k < iterations_; k++) {
            multiply(s, auth_, hub_.now);
            multiply(s, hub_, auth_.now);
            normalise(s, auth_);
            normalise(s, hub_);
            divide(s, auth_);
            divide(s, hub_);
            launch(s, kernel_reset, 1, reset_args{1, auth_.norm, hub_.norm}, {out(auth_.norm, 1), out(hub_.norm, 1)});
        }
    }

    std::string check() override
    {
        if (auth_want_.now.empty())
            solve();
        /* All terms are positive: an iteration adds some roundings for each entry of a row and three more. */
        return first_of({compare("auth", auth_, auth_want_), compare("hub", hub_, hub_want_)});
    }

private:
    struct vectors {
        std::vector<double> now, next;
    };

    side add_side(const sparse &a, uint64_t seed)
    {
        side v = {};
        v.begin = values(a.begin);
        v.column = values(a.column);
        v.weight = values(a.weight);
        v.entries = a.column.size();
        v.now = random<float>(n_, seed, 0, 2); /* far from the limit: early iterations must not look alike */
        v.next = scratch<float>(n_);
        v.norm = zeros<double>(1);
        v.partial = scratch<double>(reduce_ctas(n_));
        v.tickets = zeros<unsigned>(1);
        mark_result(v.now);
        mark_result(v.next);
        mark_result(v.norm);
        return v;
    }

    void multiply(sink &s, const side &v, const float *x)
    {
        launch(s, kernel_spmv, BLOCK, spmv_args{static_cast<unsigned>(n_), v.begin, v.column, v.weight, x, v.next},
               {in(v.begin, n_ + 1), in(v.column, v.entries), in(v.weight, v.entries), in(x, n_), out(v.next, n_)});
    }
    void normalise(sink &s, const side &v)
    {
        const unsigned ctas = reduce_ctas(n_);
        const acs_segment uses[] = {in(v.next, n_), inout(v.norm, 1), out(v.partial, ctas), inout(v.tickets, 1)};
        const sum_args a = {{n_, ctas, v.partial, v.tickets}, v.next, v.norm};
        launch_grid(s, kernel_sum, ctas, REDUCE_BLOCK, a, uses, 4);
    }
    void divide(sink &s, const side &v)
    {
        const float share = 0.15f / static_cast<float>(n_);
        launch(s, kernel_divide, BLOCK, divide_args{static_cast<unsigned>(n_), share, v.next, v.norm, v.now},
               {in(v.next, n_), in(v.norm, 1), out(v.now, n_)});
    }

    /* The whole iteration again. Both products come from the graph alone: y = A x row by row, y = A'x by scattering. */
    void solve()
    {
        vectors &auth = auth_want_, &hub = hub_want_;
        auth.now = random_contents(n_, 611, 0.0f, 2.0f);
        hub.now = random_contents(n_, 612, 0.0f, 2.0f);
        for (uint64_t k = 0; k < iterations_; k++) {
            double auth_sum = 0, hub_sum = 0;
            auth.next.assign(n_, 0);
            hub.next.assign(n_, 0);
            for (size_t i = 0; i < n_; i++) {
                const size_t end = static_cast<size_t>(graph_.begin[i + 1]);
                for (size_t e = static_cast<size_t>(graph_.begin[i]); e < end; e++) {
                    const size_t j = static_cast<size_t>(graph_.column[e]);
                    const double w = static_cast<double>(graph_.weight[e]);
                    auth.next[j] += w * hub.now[i];
                    hub.next[i] += w * auth.now[j];
                    auth_sum += w * hub.now[i];
                    hub_sum += w * auth.now[j];
                }
            }
            for (size_t i = 0; i < n_; i++) {
                auth.now[i] = 0.85 * auth.next[i] / auth_sum + 0.15 / static_cast<double>(n_);
                hub.now[i] = 0.85 * hub.next[i] / hub_sum + 0.15 / static_cast<double>(n_);
            }
        }
    }

    std::string compare(const char *name, const side &v, const vectors &want) const
    {
        const std::string wrong = first_of({differs("now", get(v.now, n_), want.now, 2e-5),
                                            differs("next", get(v.next, n_), want.next, 2e-5),
                                            differs("norm", get(v.norm, 1)[0], 0, 0)});
        return wrong.empty() ? wrong : std::string(name) + ": " + wrong;
    }

    size_t n_;
    uint64_t iterations_;
    sparse graph_, links_;
    side auth_, hub_;
    vectors auth_want_, hub_want_;
};

} // namespace

workload huntktm_hits()
{
    return {"hits", "hubs and authorities of a random graph; the papers give no size", "HuntKTm",
            {{"nodes", "nodes", 3000, 1u << 18, 5000000},
             {"degree", "mean number of entries in a row", 4, 8, 5},
             {"iterations", "iterations", 4, 10, 10}},
            [](const sizes &s) {
                /* The table says width 2; that leaves out that reset may run beside the next two products. */
                const uint32_t k = static_cast<uint32_t>(s["iterations"]);
                return shape{7 * k, 14 * k - 6, k > 1 ? 3u : 2u, 3 * k + 1};
            },
            make_huntktm<hits>, false};
}

} // namespace bench

/*
 * acs-conco check: each version of each operator of each network against the reference, and of operators with sizes that no
 * tile divides; each network's output in different sets of versions. By plain CUDA, so that kernels alone are looked at.
 */
#include <cmath>
#include <cstdio>

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

#include "builder.h"
#include "reference.h"
#include "session.h"

namespace variants {

#if BENCH_CUDA

namespace {

/* Floats around an output that must stay as they are. */
const size_t MARGIN = 1024;
/* Of the largest value of a result. Sums of up to 25088 products in float, in any order; networks have 30 layers of such. */
const double OPERATOR_TOLERANCE = 3e-5, NETWORK_TOLERANCE = 1e-3;

class checker {
public:
    checker(bench::memory &m, bool times) : memory_(m), times_(times) {}

    void operation_in_all_versions(const std::string &where, const operation &o)
    {
        const size_t span = span_of(o);
        const family &f = family_of(o.family);
        double worst = 0;

        printf("%-13s %2u %-34s", where.c_str(), o.number, o.name.c_str());
        const std::vector<float> right = result(o, span, nullptr);
        for (unsigned number : fitting(o)) {
            const double off = difference(result(o, span, &number), right);
            worst = std::fmax(worst, off);
            if (!(off <= OPERATOR_TOLERANCE)) {
                printf("\nWRONG: version %s is off by %.3g of the largest value\n", f.versions[number].name.c_str(), off);
                wrong++;
            }
        }
        printf(" %2zu versions, error %.1e\n", fitting(o).size(), worst);
        if (times_)
            print_times(o);
        fflush(stdout);
        all_worst = std::fmax(all_worst, worst);
    }

    /* Version k of all operators, or where there is none one that fits. */
    void network_in_sets(network &n)
    {
        const instance &in = n.at(0);
        std::vector<float> first(in.outputs), other(in.outputs);

        for (size_t set = 0; set < 16; set++) {
            for (const operation &o : in.ops) {
                const std::vector<unsigned> fits = fitting(o);
                launch_plain(o, fits[set % fits.size()], nullptr);
            }
            memory_.wait();
            memory_.download(set ? other.data() : first.data(), in.output, in.outputs * sizeof(float));
            const double off = set ? difference(other, first) : 0;
            if (!(off <= NETWORK_TOLERANCE) || !std::isfinite(first[0])) {
                printf("WRONG: %s with set %zu of versions is off by %.3g\n", n.label().c_str(), set, off);
                wrong++;
            }
        }
        printf("%-13s outputs agree in 16 sets of versions\n", n.label().c_str());
    }

    int wrong = 0;
    double all_worst = 0;

private:
    static size_t span_of(const operation &o)
    {
        for (const acs_segment &s : o.segments)
            if (s.access == ACS_WRITE)
                return ((s.rows - 1) * s.pitch_bytes + s.row_bytes) / sizeof(float);
        return 0;
    }

    /* The output with its margins and gaps, by a version or (NULL) by the reference. */
    std::vector<float> result(const operation &o, size_t span, const unsigned *number)
    {
        std::vector<float> all(span + 2 * MARGIN);
        float *const room = static_cast<float *>(memory_.allocate(all.size() * sizeof(float)));
        operation moved = o;

        memory_.fill(room, 0x3f, all.size() * sizeof(float));
        moved.y = room + MARGIN;
        if (number)
            launch_plain(moved, *number, nullptr);
        else
            launch_reference(moved);
        memory_.wait();
        memory_.download(all.data(), room, all.size() * sizeof(float));
        memory_.release(room);
        return all;
    }

    /* Largest difference over the largest value; infinite where a value is no number, or one of the margins changed. */
    static double difference(const std::vector<float> &a, const std::vector<float> &right)
    {
        double off = 0, largest = 1e-6;
        for (size_t i = 0; i < a.size(); i++) {
            if (!std::isfinite(a[i]) || !std::isfinite(right[i]))
                return INFINITY;
            off = std::fmax(off, std::fabs(static_cast<double>(a[i]) - static_cast<double>(right[i])));
            largest = std::fmax(largest, std::fabs(static_cast<double>(right[i])));
        }
        return off / largest;
    }

    void print_times(const operation &o)
    {
        const family &f = family_of(o.family);
        const int runs = 20;
        cudaEvent_t begin, end;
        float ms = 0;

        bench::require_cuda(cudaEventCreate(&begin), "an event");
        bench::require_cuda(cudaEventCreate(&end), "an event");
        for (unsigned number : fitting(o)) {
            for (int k = -2; k < runs; k++) {
                if (k == 0)
                    bench::require_cuda(cudaEventRecord(begin, nullptr), "an event");
                launch_plain(o, number, nullptr);
            }
            bench::require_cuda(cudaEventRecord(end, nullptr), "an event");
            bench::require_cuda(cudaEventSynchronize(end), "an event");
            bench::require_cuda(cudaEventElapsedTime(&ms, begin, end), "a time");
            printf("    %-24s %9.2f us\n", f.versions[number].name.c_str(), static_cast<double>(ms) * 1000 / runs);
        }
        (void)cudaEventDestroy(begin);
        (void)cudaEventDestroy(end);
    }

    bench::memory &memory_;
    bool times_;
};

void odd_operators(builder &b)
{
    const image x = {b.where().random(5 * 13 * 11, -1, 1), 5, 13, 11};
    const float *const add = b.where().random(4096, -1, 1);
    const after summed = {WITH_ADD, ACT_NONE, add}, normed = {WITH_ADD | WITH_AFFINE, ACT_RELU, add};
    problem p = no_problem();

    (void)b.conv(x, 7, 3, 2, 1, summed);
    (void)b.conv(x, 67, 5, 1, 2, {WITH_BIAS, ACT_GELU, nullptr});
    (void)b.conv(x, 33, 1, 1, 0, {0, ACT_NONE, nullptr});
    (void)b.pool(x, 3, 2, 1, normed);
    (void)b.average(x);
    (void)b.elements(x, normed);
    (void)b.dense(b.where().random(3 * 13, -1, 1), 3, 13, 5, {WITH_BIAS, ACT_TANH, nullptr});
    (void)b.dense(b.where().random(130 * 77, -1, 1), 130, 77, 65, {WITH_BIAS, ACT_RELU, nullptr}, nullptr, 0);
    (void)b.dense(b.where().random(2 * 132, -1, 1), 2, 132, 37, {WITH_BIAS | WITH_ADD, ACT_NONE, add});
    (void)b.softmax(b.where().random(5 * 33, -4, 4), 5, 33);
    (void)b.layer_norm(b.where().random(7 * 100, -1, 1), 7, 100, add);
    (void)b.interaction(b.where().random(3 * 5 * 7, -1, 1), 3, 5, 7);
    (void)b.interaction(b.where().random(3 * 64, -1, 1), 3, 1, 64);
    b.embedding(b.where().indices(9 * 3 * 4, 50), 9, 3, 50, 4, 12, b.where().room(9 * 40), 40);
    p.batch = 3;
    p.m = 19;
    p.n = 35;
    p.k = 21;
    p.a_row = p.k;
    p.a_batch = p.m * p.k;
    p.b_k = p.n;
    p.b_n = 1;
    p.b_batch = p.k * p.n;
    p.y_row = p.n;
    p.y_batch = p.m * p.n;
    p.scale = 0.5f;
    (void)b.products("odd products", p, b.where().random(3 * 19 * 21, -1, 1), 3 * 19 * 21,
                     b.where().random(3 * 21 * 35, -1, 1), 3 * 21 * 35, 3 * 19 * 35);
}

} // namespace

int run_check(const settings &options)
{
    session s(options);
    bench::memory m(true);
    tensors where(&m, options.seed);
    checker check(m, options.times);
    instance odd = {};
    builder b(nullptr, where, odd);

    odd_operators(b);
    for (const operation &o : odd.ops)
        check.operation_in_all_versions("odd sizes", o);
    for (const std::string &name : network_names())
        for (int batch : {1, 512, 1024, 2048}) {
            if ((name == "dlrm") != (batch > 1) || bench_interrupted())
                continue;
            network &n = s.find(name, batch, 1);
            for (unsigned number = 1; number <= n.operators(); number++)
                check.operation_in_all_versions(n.label(), n.sample(number));
            check.network_in_sets(n);
        }
    printf("largest error %.1e of the largest value; %d wrong\n", check.all_worst, check.wrong);
    return check.wrong ? 1 : 0;
}

#else

int run_check(const settings &)
{
    return 77;
}

#endif

} // namespace variants

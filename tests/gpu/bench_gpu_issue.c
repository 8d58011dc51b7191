/*
 * GPU-side issue, measured: microseconds per kernel on the host and in all, by shape, kernel time, size of bundle,
 * number of kernel types and slots side by side. Measured, not tested: it judges nothing but that the results are
 * right.
 */
#include "window_bundles.h"

enum { SLOTS_MOST = 4, TOTAL = 4096, RUNS = 4 };

typedef struct bench_case {
    char shape; /* r: random, s: stencil, c: chains, 1: one chain, f: no edges */
    uint32_t ops, kernels, slots, ns;
} bench_case;

static void make(bundle *b, const bench_case *c, uint64_t seed)
{
    bundle_clear(b);
    switch (c->shape) {
    case 'r':
        make_random(b, c->ops, c->kernels, seed);
        break;
    case 's':
        make_stencil(b, c->ops, 8, c->kernels);
        break;
    default:
        make_chains(b, c->ops, c->shape == '1' ? 1 : c->shape == 'f' ? c->ops : 8, c->kernels);
    }
    /* Dependencies are data here; what is measured shall not be how the kernel reads them. */
    for (uint32_t i = 0; i < b->batch.items_used; i++)
        b->up_count[i] = 0;
}

static void measure(bench_device *device, bundle **b, const bench_case *c)
{
    double best = 1e9, host = 1e9;
    uint32_t bundles = TOTAL / c->ops, refused = 0;
    for (int run = 0; run < RUNS; run++) {
        uint64_t on_host = 0, start = acs_clock_ns();
        for (uint32_t i = 0; i < bundles; i++) {
            bundle *at = b[i % c->slots];
            uint64_t begin = acs_clock_ns();
            while (!bundle_issue(device, at)) { /* all tables in use: not the host's time */
                begin = acs_clock_ns();
                if (++refused == UINT32_MAX / 64)
                    exit(1);
            }
            on_host += acs_clock_ns() - begin;
        }
        CHECK_CUDA(cudaDeviceSynchronize());
        double all = (double)(acs_clock_ns() - start) / 1e3 / TOTAL;
        best = all < best ? all : best;
        host = (double)on_host / 1e3 / TOTAL < host ? (double)on_host / 1e3 / TOTAL : host;
    }
    printf("%c %4u ops, %2u kernels, %u slots, %5u ns: %.3f us per kernel, host %.3f%s\n", c->shape, c->ops, c->kernels,
           c->slots, c->ns, best, host, refused ? " (waited for tables)" : "");
    fflush(stdout);
}

static void shapes(const char *which, uint32_t ops_least, uint32_t ops_most, uint32_t ns_most, uint32_t slots_most)
{
    bench_device device;
    bundle *b[SLOTS_MOST];
    device_open(&device, 16384);
    for (int i = 0; i < SLOTS_MOST; i++)
        b[i] = bundle_create();
    for (const char *shape = which; *shape; shape++)
        for (uint32_t ops = ops_least; ops <= ops_most; ops *= ops == 64 ? 4 : 2)
            for (uint32_t ns = 0; ns <= ns_most; ns += ns ? 15000 : 5000)
                for (uint32_t slots = 1; slots <= slots_most && slots * ops <= 1024; slots *= 2) {
                    bench_case c = {*shape, ops, 1, slots, ns};
                    for (uint32_t s = 0; s < slots; s++) {
                        make(b[s], &c, s + 1);
                        bundle_finish(&device, b[s], (int)s, 4, ns);
                    }
                    measure(&device, b, &c);
                }
    for (int i = 0; i < SLOTS_MOST; i++)
        bundle_destroy(b[i]);
    device_close(&device);
}

static void all_shapes(void)
{
    shapes("rscf", 64, 512, 20000, 4);
    shapes("1", 256, 256, 5000, 4);
}

static void few_shapes(void)
{
    shapes("rsc1f", 256, 256, 0, 2);
}

static void kernel_types(void)
{
    for (uint32_t kernels = 1; kernels <= 32; kernels += kernels == 1 ? 7 : 24) {
        bench_device device;
        bundle *b = bundle_create();
        bench_case c = {'r', 256, kernels, 1, 0};
        device_open(&device, 16384);
        make(b, &c, 1);
        bundle_finish(&device, b, 0, 4, 0);
        measure(&device, &b, &c);
        bundle_destroy(b);
        device_close(&device);
    }
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {CHECK_TEST(all_shapes), CHECK_TEST(few_shapes), CHECK_TEST(kernel_types)};
    return CHECK_MAIN(argc, argv, tests);
}

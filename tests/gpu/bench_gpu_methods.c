/*
 * What a bundle costs by a replayed graph: the host's share in submit, and the whole from the first submit to known
 * completion, in us per kernel. Measured, not tested; gpu-check runs it.
 */
#include "bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 4096, ROUNDS = 9, WARM = 100 };

static bundle_world g_world;
static acs_batch g_batches[KERNELS / 64];

typedef struct bench {
    const char *name;
    uint32_t width; /* 0: random */
    bool stencil;
} bench;

static uint32_t upstream(const bench *b, acs_random *random, uint32_t i, uint16_t *list)
{
    uint32_t count = 0;
    if (b->width && i >= b->width) {
        uint32_t above = i - b->width, column = above % b->width;
        if (b->stencil && column > 0)
            list[count++] = (uint16_t)(above - 1);
        list[count++] = (uint16_t)above;
        if (b->stencil && column + 1 < b->width)
            list[count++] = (uint16_t)(above + 1);
    }
    for (int k = 0; !b->width && i >= 32 && k < 2; k++)
        list[count++] = (uint16_t)(i - 1 - acs_random_below(random, 32));
    return count;
}

/* Make one bundle, with arguments other than those of the bundle before. */
static void make(const bench *b, acs_batch *batch, uint32_t ops, uint32_t ns)
{
    acs_random random = {1};
    uint16_t list[4];
    g_world.batch = batch;
    bundle_begin(&g_world, ACS_METHOD_AUTO);
    for (uint32_t i = 0; i < ops; i++) {
        const bundle_op op = {.kernel = BUNDLE_SPIN, .salt = ns, .grid = {4, 1, 1},
                              .from = {-1, (int)((g_world.slot[0].records + i / 64) % 1021), -1}, .to = (int)i};
        acs_record *record = bundle_record(&g_world, 0, &op);
        uint32_t count = upstream(b, &random, i, list);
        bundle_add(&g_world, 0, record, list, count);
    }
}

/* Returns ns spent in submit. */
static uint64_t issue(acs_batch *batch, uint32_t *launched)
{
    acs_status status;
    g_world.batch = batch;
    batch->method = ACS_METHOD_REPLAY;
    uint64_t begin = acs_clock_ns();
    *launched += bundle_submit(&g_world, 0, &status) == ACS_METHOD_LAUNCH;
    return acs_clock_ns() - begin;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void run(const bench *b, uint32_t ops, uint32_t ns, bool fixed)
{
    double host[ROUNDS], whole[ROUNDS], alone[WARM];
    const uint32_t bundles = KERNELS / ops, different = fixed ? 2 : bundles;
    uint32_t launched = 0;
    uint64_t slowest = 0;
    for (uint32_t i = 0; i < different; i++)
        make(b, &g_batches[i], ops, ns);
    for (uint32_t i = 0; i < WARM; i++) {
        uint64_t took = issue(&g_batches[i % different], &launched);
        slowest = took > slowest ? took : slowest;
        alone[i] = (double)took / ops / 1000;
        bundle_wait(&g_world, 0);
    }
    launched = 0;
    for (uint32_t r = 0; r < ROUNDS; r++) {
        uint64_t in_submit = 0, begin = acs_clock_ns();
        for (uint32_t i = 0; i < bundles; i++) {
            in_submit += issue(&g_batches[i % different], &launched);
            bundle_poll(&g_world, 0);
        }
        bundle_wait(&g_world, 0);
        whole[r] = (double)(acs_clock_ns() - begin) / (bundles * ops) / 1000;
        host[r] = (double)in_submit / (bundles * ops) / 1000;
    }
    qsort(alone, WARM, sizeof alone[0], by_value);
    qsort(host, ROUNDS, sizeof host[0], by_value);
    qsort(whole, ROUNDS, sizeof whole[0], by_value);
    printf("%-10s of %3u, %4u ns%s: %.3f us per kernel, host in submit %.3f, to an idle GPU %.3f; slowest submit "
           "%.0f us%s\n",
           b->name, ops, ns, fixed ? ", two contents" : "", whole[ROUNDS / 2], host[ROUNDS / 2],
           alone[WARM / 2], (double)slowest / 1000, launched ? "; some were handed back" : "");
    fflush(stdout);
}

int main(void)
{
    static const bench benches[] = {
        {"chains:16", 16, false}, {"stencil:32", 32, true}, {"stencil:8", 8, true}, {"random", 0, false}};
    if (!bundle_open(&g_world) || !g_world.backend->bundle_most) {
        printf("skipped: no GPU, or no bundles on it: %s\n", acs_error_thread()->text);
        return 77;
    }
    for (size_t b = 0; b < sizeof benches / sizeof benches[0]; b++)
        for (uint32_t ns = 0; ns <= 5000; ns += 5000)
            for (uint32_t ops = 64; ops <= 256; ops *= 2)
                for (int fixed = 0; fixed <= 1; fixed++)
                    run(&benches[b], ops, ns, fixed);
    bundle_close(&g_world);
    return 0;
}

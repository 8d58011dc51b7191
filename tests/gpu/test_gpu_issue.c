/*
 * GPU-side issue on the backend itself: bundles of all shapes leave in memory what the host computes one op at a time,
 * in one slot and in several, and what cannot go this way is refused as a whole.
 */
#include "window_bundles.h"

#include "base/tuning.h"

enum { NODES = 16384 };

/* Issue, wait and compare, `times` in a row. */
static void run(bench_device *device, bundle *b, int slot, uint32_t times)
{
    bundle_finish(device, b, slot, 2, 0);
    for (uint32_t i = 0; i < times; i++) {
        CHECK(bundle_issue(device, b));
        bundle_account(b);
        CHECK_CUDA(cudaDeviceSynchronize());
    }
    CHECK_EQ(bundle_wrong(b), 0);
}

static void shapes_run_in_order(void)
{
    bench_device device;
    bundle *b = bundle_create();
    device_open(&device, NODES);
    for (uint32_t kernels = 1; kernels <= WINDOW_KERNELS; kernels *= 4) {
        bundle_clear(b);
        make_chains(b, 256, 8, kernels);
        run(&device, b, 0, 3);
        bundle_clear(b);
        make_chains(b, 64, 1, kernels);
        run(&device, b, 1, 3);
        bundle_clear(b);
        make_stencil(b, 256, 16, kernels);
        run(&device, b, 2, 3);
        for (uint64_t seed = 1; seed <= 10; seed++) {
            bundle_clear(b);
            make_random(b, seed % 2 ? 256 : 512, kernels, seed * kernels);
            run(&device, b, (int)(seed % 4), 2);
        }
    }
    bundle_clear(b);
    make_chains(b, 1, 1, 1);
    run(&device, b, 3, 3);
    bundle_clear(b);
    make_chains(b, 512, 512, 1); /* all are roots */
    run(&device, b, 3, 3);
    device_close(&device);
    bundle_destroy(b);
}

static void one_op_releases_five_hundred(void)
{
    bench_device device;
    bundle *b = bundle_create();
    device_open(&device, NODES);
    bundle_clear(b);
    uint32_t first = bundle_add(b, 0);
    for (int i = 0; i < 500; i++) {
        bundle_add(b, i % 3);
        bundle_follow(b, first);
    }
    bundle_add(b, 1);
    for (uint32_t i = 1; i <= 500; i++)
        bundle_follow(b, i);
    run(&device, b, 0, 20);
    device_close(&device);
    bundle_destroy(b);
}

/* `before` ops, a join of all, or a chain of joins, and `after` ops that follow it. */
static void join(bench_device *device, bundle *b, uint32_t before, uint32_t joins, uint32_t after)
{
    uint32_t last = 0;
    bundle_clear(b);
    for (uint32_t i = 0; i < before; i++)
        bundle_add(b, 0);
    for (uint32_t j = 0; j < joins; j++) {
        uint32_t here = bundle_add(b, -1);
        for (uint32_t i = 0; j == 0 && i < before; i++)
            bundle_follow(b, i);
        if (j > 0)
            bundle_follow(b, last);
        last = here;
    }
    for (uint32_t i = 0; i < after; i++) {
        bundle_add(b, 1);
        bundle_follow(b, last);
    }
    run(device, b, 0, 5);
}

static void joins_are_passed_by_the_last(void)
{
    bench_device device;
    bundle *b = bundle_create();
    device_open(&device, NODES);
    join(&device, b, 1, 1, 1);
    join(&device, b, 20, 1, 20);
    join(&device, b, 20, 5, 20);
    join(&device, b, 100, 1, 100); /* becomes a fan */
    join(&device, b, 200, 1, 300);
    join(&device, b, 5, 1, 0);
    /* Many joins that one op passes at once, each shared with another. */
    bundle_clear(b);
    bundle_add(b, 0);
    bundle_add(b, 1);
    for (uint32_t j = 0; j < 40; j++) {
        uint32_t here = bundle_add(b, -1);
        bundle_follow(b, 0);
        bundle_follow(b, 1);
        for (int i = 0; i < 3; i++) {
            bundle_add(b, 2);
            bundle_follow(b, here);
        }
    }
    run(&device, b, 0, 20);
    device_close(&device);
    bundle_destroy(b);
}

static void bundles_of_a_slot_follow_each_other(void)
{
    enum { BUNDLES = 4, ROUNDS = 100 };
    bench_device device;
    bundle *b[BUNDLES];
    uint32_t refused = 0;
    device_open(&device, NODES);
    for (int i = 0; i < BUNDLES; i++) {
        b[i] = bundle_create();
        bundle_clear(b[i]);
        make_random(b[i], 64 + 50 * (uint32_t)i, 3, (uint64_t)i + 1);
    }
    /* In one slot, then in a slot for each; never waited for but where all tables are in use. */
    for (int slots = 1; slots <= BUNDLES; slots += BUNDLES - 1) {
        for (int i = 0; i < BUNDLES; i++)
            bundle_finish(&device, b[i], i % slots, 2, 1000);
        for (int round = 0; round < ROUNDS; round++)
            for (int i = 0; i < BUNDLES; i++) {
                while (!bundle_issue(&device, b[i]))
                    refused++;
                bundle_account(b[i]);
            }
        CHECK_CUDA(cudaDeviceSynchronize());
        for (int i = 0; i < BUNDLES; i++)
            CHECK_EQ(bundle_wrong(b[i]), 0);
    }
    printf("  refused while all tables were in use: %u times\n", refused);
    device_close(&device);
    for (int i = 0; i < BUNDLES; i++)
        bundle_destroy(b[i]);
}

/* The last op waits until the host has seen that the others are complete. */
static void progress_is_told_before_the_end(void)
{
    enum { OPS = 65 }; /* the last but one is the last of a step */
    bench_device device;
    bundle *b = bundle_create();
    uint32_t *flag = NULL;
    CHECK_CUDA(cudaHostAlloc((void **)&flag, sizeof *flag, cudaHostAllocDefault));
    device_open(&device, NODES);
    CHECK_EQ(acs_cuda_completed(device.self, 0), 0);
    for (int round = 0; round < 20; round++) {
        uint64_t first = device.value[0], told;
        bundle_clear(b);
        make_chains(b, OPS, 1, 1);
        bundle_finish(&device, b, 0, 1, 1000);
        acs_record *op = b->batch.items[OPS - 1].op;
        launch_begin(op, window_kernel_wait(), 1, 32);
        put_arg(op, &flag, sizeof flag);
        CHECK_STATUS(acs_cuda_check(device.backend, op), ACS_OK);
        acs_dag_make(&b->batch, &b->dag);
        *(volatile uint32_t *)flag = 0;
        CHECK(bundle_issue(&device, b));
        do /* until told, or until the kernel has given up */
            told = acs_cuda_completed(device.self, 0);
        while (told < first + OPS - 2 && cudaStreamQuery((cudaStream_t)device.self->streams[0]) == cudaErrorNotReady);
        CHECK_EQ(told, first + OPS - 2);
        *(volatile uint32_t *)flag = 1;
        CHECK_CUDA(cudaDeviceSynchronize());
    }
    device_close(&device);
    CHECK_CUDA(cudaFreeHost(flag));
    bundle_destroy(b);
}

static void cells_are_bounded_and_change_their_type(void)
{
    bench_device device;
    bundle *b = bundle_create();
    device_open(&device, TUNE_GPU_NODES_PART * 2 * 32); /* 32 cells */
    bundle_clear(b);
    make_chains(b, 40, 4, 1);
    bundle_finish(&device, b, 0, 1, 0);
    for (int i = 0; i < 3; i++)
        CHECK(!bundle_issue(&device, b));
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(bundle_wrong(b), 0); /* nothing ran */
    for (int round = 0; round < 12; round++) {
        bundle_clear(b);
        for (int i = 0; i < 20; i++)
            bundle_add(b, round % 3);
        run(&device, b, round % 2, 1);
        CHECK(device.self->gpu_issue->cells <= 32);
    }
    device_close(&device);
    bundle_destroy(b);
}

/* More types than there are cells for: those of a slot's own go too, once it is idle. */
static void cells_of_the_same_slot_are_replaced(void)
{
    bench_device device;
    bundle *b = bundle_create();
    device_open(&device, TUNE_GPU_NODES_PART * 2 * 64);
    for (int round = 0; round < 6; round++) {
        bundle_clear(b);
        for (int i = 0; i < 60; i++)
            bundle_add(b, i % (1 + 5 * round));
        run(&device, b, 0, 2);
    }
    device_close(&device);
    bundle_destroy(b);
}

static void cells_grow_slowly_unless_asked_for(void)
{
    bench_device device;
    bundle *b = bundle_create();
    int tries = 1;
    device_open(&device, NODES);
    bundle_clear(b);
    make_chains(b, 40, 4, 1);
    bundle_finish(&device, b, 0, 1, 0);
    b->batch.method = ACS_METHOD_AUTO;
    while (tries < 20 && !bundle_issue(&device, b))
        tries++;
    CHECK_EQ(tries, 10);
    bundle_account(b);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(bundle_wrong(b), 0);
    device_close(&device);
    bundle_destroy(b);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        CHECK_TEST(shapes_run_in_order),
        CHECK_TEST(one_op_releases_five_hundred),
        CHECK_TEST(joins_are_passed_by_the_last),
        CHECK_TEST(bundles_of_a_slot_follow_each_other),
        CHECK_TEST(progress_is_told_before_the_end),
        CHECK_TEST(cells_are_bounded_and_change_their_type),
        CHECK_TEST(cells_of_the_same_slot_are_replaced),
        CHECK_TEST(cells_grow_slowly_unless_asked_for),
    };
    return CHECK_MAIN(argc, argv, tests);
}

/*
 * Order, overlap, waits and memory on a GPU: what ACS computes is compared bit for bit with one stream, and what it claims
 * to run side by side has to prove it with flags on the device.
 */
#include "kernels.cuh"

#include <atomic>

/* ------------------------------------------------------------------------------------------------ random programs */

enum { DAG_BUFFERS = 10, DAG_WORDS = 2048, DAG_OPS = 1500 };

struct dag_op {
    uint32_t dst, src, dst_at, src_at, words, salt, delay_ns;
};

static uint32_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*state >> 33);
}

static std::vector<dag_op> dag_make(uint64_t seed)
{
    std::vector<dag_op> ops(DAG_OPS);
    for (dag_op &op : ops) {
        op.dst = random_next(&seed) % DAG_BUFFERS;
        op.src = (op.dst + 1 + random_next(&seed) % (DAG_BUFFERS - 1)) % DAG_BUFFERS;
        op.words = 1 + random_next(&seed) % (DAG_WORDS / 2);
        op.dst_at = random_next(&seed) % (DAG_WORDS - op.words); /* ranges overlap in part */
        op.src_at = random_next(&seed) % (DAG_WORDS - op.words);
        op.salt = random_next(&seed);
        op.delay_ns = random_next(&seed) % 4 ? 0 : random_next(&seed) % 20000;
    }
    return ops;
}

static std::vector<uint32_t> dag_on_one_stream(const std::vector<dag_op> &ops)
{
    device_buffer<uint32_t> memory(DAG_BUFFERS * DAG_WORDS);
    for (const dag_op &op : ops)
        mix_kernel<<<op.words > 1024 ? 4 : 1, 256>>>(memory.data + op.dst * DAG_WORDS + op.dst_at,
                                                     memory.data + op.src * DAG_WORDS + op.src_at, op.words, op.salt, 0);
    CHECK_CUDA(cudaDeviceSynchronize());
    return memory.read();
}

static void dag_launch(acs_context *context, uint32_t *memory, const dag_op &op)
{
    CHECK(launch_mix(context, memory + op.dst * DAG_WORDS + op.dst_at, memory + op.src * DAG_WORDS + op.src_at, op.words,
                     op.salt, op.delay_ns) != 0);
}

static void dag_compare(const std::vector<dag_op> &ops, const std::vector<uint32_t> &truth, const acs_options &options)
{
    device_buffer<uint32_t> memory(DAG_BUFFERS * DAG_WORDS);
    acs_context *context = check_open(&options);
    for (const dag_op &op : ops)
        dag_launch(context, memory.data, op);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    const acs_statistics stats = check_stats(context);
    CHECK_EQ(stats.queued, DAG_OPS);
    CHECK_EQ(stats.retired, DAG_OPS);
    CHECK(memory.read() == truth);
    if (memory.read() != truth)
        fprintf(stderr, "  wait %d workers %d window %d streams %d batch %d\n", (int)options.wait, (int)options.workers,
                (int)options.window, (int)options.streams, (int)options.batch);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void random_dag_in_every_mode_equals_one_stream()
{
    static const int workers[] = {0, 1, 4}, windows[] = {1, 16, 256}, streams[] = {1, 8, 16};
    for (int seed = 0; seed < 3; seed++) {
        const std::vector<dag_op> ops = dag_make(seed + 1);
        const std::vector<uint32_t> truth = dag_on_one_stream(ops);
        for (int wait = ACS_WAIT_GPU; wait <= ACS_WAIT_HOST; wait++)
            for (int i = 0; i < 9; i++) {
                acs_options options = check_options();
                options.wait = wait;
                options.workers = workers[i % 3];
                options.window = windows[(i / 3 + i + seed) % 3];
                options.streams = streams[(i / 3 + seed) % 3];
                options.batch = i % 2 ? 1 : 32;
                dag_compare(ops, truth, options);
            }
    }
}

static void random_dag_when_serial_or_disabled_equals_one_stream()
{
    const std::vector<dag_op> ops = dag_make(77);
    const std::vector<uint32_t> truth = dag_on_one_stream(ops);
    acs_options options = check_options();
    options.serial = 1;
    dag_compare(ops, truth, options);
    options.serial = 0;
    options.disable = 1;
    dag_compare(ops, truth, options);
}

static void two_contexts_side_by_side_equal_one_stream()
{
    const std::vector<dag_op> ops = dag_make(5);
    const std::vector<uint32_t> truth = dag_on_one_stream(ops);
    device_buffer<uint32_t> a(DAG_BUFFERS * DAG_WORDS), b(DAG_BUFFERS * DAG_WORDS);
    acs_context *first = check_open_default(), *second = check_open_default();
    for (const dag_op &op : ops) {
        dag_launch(first, a.data, op);
        dag_launch(second, b.data, op);
    }
    CHECK_STATUS(acs_sync(first), ACS_OK);
    CHECK(a.read() == truth);
    CHECK_STATUS(acs_close(first), ACS_OK);
    CHECK_STATUS(acs_sync(second), ACS_OK);
    CHECK(b.read() == truth);
    CHECK_STATUS(acs_close(second), ACS_OK);
}

/* -------------------------------------------------------------------------------------------- overlap and its absence */

struct overlap_state {
    uint32_t running, peak, finished, seen_by_writer, wrong;
};

/* Wait until `wanted` of us run at once, at most 50 ms. */
static __global__ void overlap_kernel(const uint32_t *shared_word, uint32_t expected, overlap_state *state, uint32_t wanted)
{
    const uint64_t end = now_ns() + 50000000ull;
    uint32_t now = atomicAdd(&state->running, 1) + 1;
    if (shared_word && *shared_word != expected)
        atomicAdd(&state->wrong, 1);
    while (now < wanted && now_ns() < end) {
        now = atomicAdd(&state->running, 0);
        if (atomicAdd(&state->peak, 0) >= wanted)
            break;
    }
    atomicMax(&state->peak, now);
    atomicSub(&state->running, 1);
    __threadfence();
    atomicAdd(&state->finished, 1);
}

static __global__ void overlap_write_kernel(uint32_t *shared_word, overlap_state *state)
{
    state->seen_by_writer = atomicAdd(&state->finished, 0);
    *shared_word = 2;
}

static void readers_of_one_buffer_overlap_then_writer_waits_for_all()
{
    device_buffer<uint32_t> word(1);
    device_buffer<overlap_state> state(1);
    acs_options options = check_options();
    options.streams = 8;
    acs_context *context = check_open(&options);
    for (int i = 0; i < 256; i++) /* `state` is not declared: it is how the overlap is seen */
        CHECK(ACS_LAUNCH_ON(context, overlap_kernel, 1, 1, 0, ACS_ARGS(word.data, 0, state.data, 4),
                            ACS_USES(ACS_IN(word.data, 4))) != 0);
    CHECK(ACS_LAUNCH_ON(context, overlap_write_kernel, 1, 1, 0, ACS_ARGS(word.data, state.data),
                        ACS_USES(ACS_OUT(word.data, 4))) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK(state.first().peak >= 4);
    CHECK_EQ(state.first().seen_by_writer, 256);
    CHECK_EQ(state.first().wrong, 0);
    CHECK_EQ(word.first(), 2);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void disjoint_parts_of_one_allocation_overlap()
{
    device_buffer<uint32_t> words(64);
    device_buffer<overlap_state> state(1);
    acs_options options = check_options();
    options.streams = 8;
    acs_context *context = check_open(&options);
    for (int i = 0; i < 64; i++)
        CHECK(ACS_LAUNCH_ON(context, overlap_kernel, 1, 1, 0, ACS_ARGS(nullptr, 0, state.data, 4),
                            ACS_USES(ACS_INOUT(words.data + i, 4))) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK(state.first().peak >= 4);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* Whoever issues its ops, and also behind bundles that are refused: it has one slot at a time. */
static void chain_sends_no_waits()
{
    for (int workers = 0; workers < 2; workers++) {
        device_buffer<uint32_t> word(1);
        acs_options options = check_options();
        options.wait = ACS_WAIT_GPU;
        options.workers = workers;
        acs_context *context = check_open(&options);
        uint32_t truth = 0;
        for (uint32_t i = 0; i < 500; i++) {
            CHECK(launch_mix(context, word.data, NULL, 1, i, 2000) != 0);
            truth = mix_word(truth, 0, i);
        }
        CHECK_STATUS(acs_sync(context), ACS_OK);
        CHECK_EQ(word.first(), truth);
        CHECK_EQ(check_stats(context).waits_sent, 0);
        CHECK_STATUS(acs_close(context), ACS_OK);
    }
}

/* ---------------------------------------------------------------------------------------------------------- waits */

/* An op that does not end before the host says so. */
struct held_op {
    acs_context *context;
    volatile uint32_t *flag = nullptr;
    device_buffer<uint32_t> word{1};
    acs_op op = 0;

    explicit held_op(acs_context *c) : context(c)
    {
        void *memory = nullptr;
        CHECK_STATUS(acs_malloc(context, 256, ACS_MEMORY_HOST, &memory), ACS_OK);
        flag = static_cast<uint32_t *>(memory);
        *flag = 0;
        op = ACS_LAUNCH_ON(context, wait_flag_kernel, 1, 1, 0, ACS_ARGS(flag, word.data),
                           ACS_USES(ACS_INOUT(word.data, 4)));
        CHECK(op != 0);
    }
    void let_go() { *flag = 1; }
    void finish()
    {
        CHECK(acs_free(context, const_cast<uint32_t *>(flag)) != 0);
        CHECK_STATUS(acs_sync(context), ACS_OK);
        CHECK_EQ(word.first(), 1);
    }
};

static void wait_range_and_wait_op_leave_others_running()
{
    for (int workers = 0; workers < 2; workers++) {
        device_buffer<uint32_t> other(16);
        acs_options options = check_options();
        options.workers = workers;
        acs_context *context = check_open(&options);
        /* Load the kernel now: loading may wait for the device, which is about to be held. */
        CHECK_STATUS(acs_wait(context, launch_mix(context, other.data + 1, NULL, 1, 0, 0)), ACS_OK);
        held_op held(context);
        const acs_op op = launch_mix(context, other.data, NULL, 16, 3, 0);
        CHECK_STATUS(acs_wait_range(context, other.data, other.bytes(), ACS_READ), ACS_OK);
        CHECK_STATUS(acs_query(context, op), ACS_OK);
        const acs_op next = launch_mix(context, other.data, NULL, 16, 4, 0);
        CHECK_STATUS(acs_wait(context, next), ACS_OK);
        CHECK_STATUS(acs_query(context, held.op), ACS_NOT_READY);
        held.let_go();
        CHECK_STATUS(acs_wait(context, held.op), ACS_OK);
        CHECK_EQ(other.first(), mix_word(mix_word(0, 0, 3), 0, 4));
        held.finish();
        CHECK_STATUS(acs_close(context), ACS_OK);
    }
}

struct retired {
    std::atomic<int> calls{0};
    std::atomic<int> status{-1};
    std::atomic<uint64_t> op{0};
};

static void note_retired(void *user, acs_op op, acs_status status)
{
    retired *r = static_cast<retired *>(user);
    r->op = op;
    r->status = status;
    r->calls++;
}

static void retire_callback_comes_once_with_its_op()
{
    device_buffer<uint32_t> word(1);
    acs_context *context = check_open_default();
    retired seen;
    const acs_op op = launch_mix(context, word.data, NULL, 1, 9, 100000);
    const acs_op callback = acs_on_retire(context, op, note_retired, &seen);
    CHECK(callback != 0);
    CHECK_STATUS(acs_wait(context, callback), ACS_OK);
    CHECK_EQ(seen.calls, 1);
    CHECK_EQ(seen.op, op);
    CHECK_EQ(seen.status, ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void close_with_work_in_flight_finishes_it()
{
    device_buffer<uint32_t> word(1);
    acs_context *context = check_open_default();
    uint32_t truth = 0;
    for (uint32_t i = 0; i < 100; i++) {
        CHECK(launch_mix(context, word.data, NULL, 1, i, 20000) != 0);
        truth = mix_word(truth, 0, i);
    }
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_EQ(word.first(), truth);
}

/* ---------------------------------------------------------------------------------------------- copies and host code */

static void copies_and_fills_keep_program_order()
{
    enum { WORDS = 5000 };
    acs_context *context = check_open_default();
    std::vector<uint32_t> from(WORDS), to(WORDS); /* pageable */
    void *a = nullptr, *b = nullptr, *pinned = nullptr;
    for (uint32_t i = 0; i < WORDS; i++)
        from[i] = i * 7;
    CHECK_STATUS(acs_malloc(context, WORDS * 4, ACS_MEMORY_DEVICE, &a), ACS_OK);
    CHECK_STATUS(acs_malloc(context, WORDS * 4, ACS_MEMORY_DEVICE, &b), ACS_OK);
    CHECK_STATUS(acs_malloc(context, WORDS * 4, ACS_MEMORY_HOST, &pinned), ACS_OK);
    CHECK_EQ((uintptr_t)a % 256 + (uintptr_t)b % 256 + (uintptr_t)pinned % 256, 0);
    CHECK(acs_memcpy(context, a, from.data(), WORDS * 4) != 0);
    CHECK(launch_mix(context, (uint32_t *)a, NULL, WORDS, 1, 50000) != 0);
    CHECK(acs_memcpy(context, b, a, WORDS * 4) != 0);
    CHECK(acs_memset(context, a, 0x5a, WORDS * 4) != 0);
    CHECK(launch_mix(context, (uint32_t *)b, (uint32_t *)a, WORDS, 2, 0) != 0);
    CHECK(acs_memcpy(context, pinned, b, WORDS * 4) != 0);
    CHECK(acs_memcpy(context, to.data(), pinned, WORDS * 4) != 0);
    CHECK(acs_memcpy(context, b, a, 0) != 0);
    CHECK(acs_free(context, a) != 0);
    CHECK(acs_free(context, b) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    int wrong = 0;
    for (uint32_t i = 0; i < WORDS; i++)
        wrong += to[i] != mix_word(mix_word(i * 7, 0, 1), 0x5a5a5a5a, 2);
    CHECK_EQ(wrong, 0);
    CHECK(acs_free(context, pinned) != 0);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

struct host_work {
    uint32_t *word;
    int code;
};

static int host_mix(void *closure)
{
    const host_work *work = static_cast<host_work *>(closure);
    *work->word = mix_word(*work->word, 0, 1000);
    return work->code;
}

static void host_function_between_kernels_sees_and_is_seen()
{
    for (int workers = 0; workers < 2; workers++) {
        acs_options options = check_options();
        options.workers = workers;
        acs_context *context = check_open(&options);
        void *memory = nullptr;
        CHECK_STATUS(acs_malloc(context, 4, ACS_MEMORY_HOST, &memory), ACS_OK);
        uint32_t *word = static_cast<uint32_t *>(memory), truth = *word = 0;
        for (uint32_t i = 0; i < 50; i++) {
            const host_work work = {word, 0};
            CHECK(launch_mix(context, word, NULL, 1, i, 5000) != 0);
            CHECK(acs_host(context, host_mix, &work, sizeof work, ACS_USES(ACS_INOUT(word, 4))) != 0);
            truth = mix_word(mix_word(truth, 0, i), 0, 1000);
        }
        CHECK_STATUS(acs_sync(context), ACS_OK);
        CHECK_EQ(*word, truth);
        CHECK(acs_free(context, memory) != 0);
        CHECK_STATUS(acs_close(context), ACS_OK);
    }
}

static void failing_host_function_skips_its_dependents_only()
{
    device_buffer<uint32_t> a(1), b(1);
    acs_context *context = check_open_default();
    uint32_t scratch = 0;
    const host_work work = {&scratch, 42};
    launch_mix(context, a.data, NULL, 1, 1, 0);
    const acs_op failing = acs_host(context, host_mix, &work, sizeof work, ACS_USES(ACS_INOUT(a.data, 4)));
    const acs_op dependent = launch_mix(context, a.data, NULL, 1, 2, 0);
    const acs_op indirect = launch_mix(context, b.data, a.data, 1, 3, 0);
    const acs_op after = launch_mix(context, b.data, NULL, 1, 4, 0);
    CHECK_STATUS(acs_wait(context, dependent), ACS_ERR_SKIPPED);
    CHECK_STATUS(acs_wait(context, indirect), ACS_ERR_SKIPPED);
    CHECK_STATUS(acs_wait(context, after), ACS_ERR_SKIPPED);
    CHECK_STATUS(acs_sync(context), ACS_ERR_HOST);
    acs_error error = {};
    error.size = sizeof error;
    CHECK_STATUS(acs_context_error(context, &error), ACS_ERR_HOST);
    CHECK_EQ(error.native, 42);
    CHECK_EQ(error.op, failing);
    CHECK(error.site.file && strstr(error.site.file, "test_gpu_core"));
    CHECK_STATUS(acs_op_error(context, indirect, &error), ACS_ERR_SKIPPED);
    CHECK_EQ(error.cause, failing);
    CHECK_STATUS(acs_clear(context), ACS_OK);
    CHECK_STATUS(acs_wait(context, launch_mix(context, b.data, NULL, 1, 5, 0)), ACS_OK);
    CHECK_EQ(a.first(), mix_word(0, 0, 1));
    CHECK_EQ(b.first(), mix_word(0, 0, 5));
    CHECK_STATUS(acs_close(context), ACS_OK);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        CHECK_TEST(random_dag_in_every_mode_equals_one_stream),
        CHECK_TEST(random_dag_when_serial_or_disabled_equals_one_stream),
        CHECK_TEST(two_contexts_side_by_side_equal_one_stream),
        CHECK_TEST(readers_of_one_buffer_overlap_then_writer_waits_for_all),
        CHECK_TEST(disjoint_parts_of_one_allocation_overlap),
        CHECK_TEST(chain_sends_no_waits),
        CHECK_TEST(wait_range_and_wait_op_leave_others_running),
        CHECK_TEST(retire_callback_comes_once_with_its_op),
        CHECK_TEST(close_with_work_in_flight_finishes_it),
        CHECK_TEST(copies_and_fills_keep_program_order),
        CHECK_TEST(host_function_between_kernels_sees_and_is_seen),
        CHECK_TEST(failing_host_function_skips_its_dependents_only),
    };
    return CHECK_MAIN(argc, argv, tests);
}

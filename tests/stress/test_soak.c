/*
 * Soak: a long random stream of ops of all kinds through the public interface alone, over buffers that recur, ranges
 * that hardly ever do, and allocations that come and go. Passes if the final bytes are those of a serial replay and the
 * process did not grow in the second half; reports the cost per op of each tenth. Usage: test_soak [ops [seed]].
 *
 * One source for C (host backend) and for nvcc (any backend; exit 77 where no GPU answers). Needs no test library.
 */
#include "progress.h"
#include "sanitizers.h"

#include <acs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SKIPPED 77
#define GROWTH_MAX_KIB 4096
#define WORD sizeof(uint64_t)

/* Sanitizers keep freed memory and shadows: growth says nothing there. */
#define SANITIZED (UNDER_ADDRESS_SANITIZER || UNDER_THREAD_SANITIZER)

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

/* ------------------------------------------------------------------------------------------------- what kernels do */

static inline ON_BOTH uint64_t mix_word(uint64_t old, uint64_t in, uint64_t salt)
{
    uint64_t x = (old ^ salt) * 0x9e3779b97f4a7c15u + in; /* order matters: a sum would hide a swap of two ops */
    return x ^ (x >> 29);
}

static void mix_words(uint64_t *dst, const uint64_t *src, uint32_t rows, uint32_t columns, uint32_t pitch,
                      uint64_t salt)
{
    for (uint32_t i = 0; i < rows * columns; i++) {
        uint64_t *word = &dst[(uint64_t)(i / columns) * pitch + i % columns];
        *word = mix_word(*word, src[i], salt);
    }
}

static void mix_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    mix_words(*(uint64_t **)args[0], *(const uint64_t **)args[1], *(const uint32_t *)args[2],
              *(const uint32_t *)args[3], *(const uint32_t *)args[4], *(const uint64_t *)args[5]);
}

#ifdef __CUDACC__
static __global__ void mix_gpu(uint64_t *dst, const uint64_t *src, uint32_t rows, uint32_t columns, uint32_t pitch,
                               uint64_t salt)
{
    for (uint32_t i = threadIdx.x; i < rows * columns; i += blockDim.x) {
        uint64_t *word = &dst[(uint64_t)(i / columns) * pitch + i % columns];
        *word = mix_word(*word, src[i], salt);
    }
}
static const acs_kernel g_mix = ACS_KERNEL_INIT("mix", mix_gpu, mix_body);
#else
static const acs_kernel g_mix = ACS_KERNEL_HOST_INIT("mix", mix_body);
#endif

/* ------------------------------------------------------------------------------------------------- the op stream */

enum { DEVICE_BUFFERS = 20, HOST_BUFFERS = 4, BUFFERS = DEVICE_BUFFERS + HOST_BUFFERS + 1, ARENA = BUFFERS - 1 };
enum { BUFFER_WORDS = 1024, ARENA_WORDS = 1 << 18, ROW_MAX = 32, ROWS_MAX = 4, TILE_PITCH = 64 };

typedef enum op_kind { OP_MIX, OP_COPY, OP_FILL, OP_HOST, OP_TEMPORARY, OP_CALLBACK, OP_WAIT_RANGE } op_kind;

typedef struct op {
    op_kind kind;
    uint32_t dst, src; /* buffers */
    uint32_t dst_at, src_at, rows, columns, pitch;
    uint64_t salt;
} op;

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((random_next(state) >> 32) * n >> 32);
}

static op_kind pick_kind(uint64_t *state)
{
    uint32_t r = random_below(state, 1024);
    return r < 2 ? OP_TEMPORARY : r < 4 ? OP_WAIT_RANGE : r < 20 ? OP_CALLBACK : r < 50 ? OP_HOST : r < 100 ? OP_FILL
           : r < 200 ? OP_COPY : OP_MIX;
}

static uint32_t buffer_words(uint32_t buffer)
{
    return buffer == ARENA ? ARENA_WORDS : BUFFER_WORDS;
}

/* In the arena any place, so that hardly any range recurs; in buffers one of few, so that nearly all do. */
static uint32_t pick_place(uint64_t *state, uint32_t buffer, uint32_t room)
{
    uint32_t places = buffer_words(buffer) - room;
    return buffer == ARENA ? random_below(state, places) : random_below(state, places / TILE_PITCH) * TILE_PITCH / 2;
}

static op next_op(uint64_t *state)
{
    op o;
    o.kind = pick_kind(state);
    o.dst = o.kind == OP_HOST ? DEVICE_BUFFERS + random_below(state, HOST_BUFFERS) : random_below(state, BUFFERS);
    do {
        o.src = o.kind == OP_HOST ? DEVICE_BUFFERS + random_below(state, HOST_BUFFERS) : random_below(state, BUFFERS);
    } while (o.src == o.dst); /* a kernel whose input is its output would race with itself */
    int whole = o.kind != OP_MIX || random_below(state, 2); /* else a tile */
    o.rows = whole ? 1 : 1 + random_below(state, ROWS_MAX);
    o.columns = 1 + random_below(state, ROW_MAX);
    o.pitch = TILE_PITCH;
    o.dst_at = pick_place(state, o.dst, ROWS_MAX * TILE_PITCH);
    o.src_at = pick_place(state, o.src, ROWS_MAX * TILE_PITCH);
    o.salt = random_next(state);
    return o;
}

/* ------------------------------------------------------------------------------------------------- through ACS */

typedef struct soak {
    acs_context *context;
    uint64_t *memory[BUFFERS];
    uint64_t callbacks_wanted, callbacks_seen;
} soak;

typedef struct host_closure {
    uint64_t *dst;
    const uint64_t *src;
    uint32_t columns;
    uint64_t salt;
} host_closure;

static int host_mix(void *closure)
{
    const host_closure *c = (const host_closure *)closure;
    mix_words(c->dst, c->src, 1, c->columns, TILE_PITCH, c->salt);
    return 0;
}

static void count_callback(void *user, acs_op number, acs_status status)
{
    (void)number;
    if (status == ACS_OK)
        __atomic_fetch_add((uint64_t *)user, 1, __ATOMIC_RELAXED); /* relaxed: read after acs_sync */
}

static acs_op launch_mix(soak *s, uint64_t *dst, const uint64_t *src, const op *o)
{
    uint32_t rows = o->rows, columns = o->columns, pitch = o->pitch;
    return ACS_LAUNCH_ON(s->context, &g_mix, 1, 64, 0, ACS_ARGS(dst, src, rows, columns, pitch, o->salt),
                         ACS_USES(ACS_TILE_INOUT(dst, columns * WORD, rows, pitch * WORD),
                                  ACS_IN(src, (uint64_t)rows * columns * WORD)));
}

static acs_op queue_host(soak *s, uint64_t *dst, const uint64_t *src, const op *o)
{
    host_closure c;
    c.dst = dst;
    c.src = src;
    c.columns = o->columns;
    c.salt = o->salt;
    return acs_host(s->context, host_mix, &c, sizeof c,
                    ACS_USES(ACS_INOUT(dst, c.columns * WORD), ACS_IN(src, c.columns * WORD)));
}

/* Fill a new allocation from src, mix it into dst, free it. */
static acs_op use_temporary(soak *s, uint64_t *dst, const uint64_t *src, const op *o)
{
    void *block;
    size_t bytes = o->columns * WORD;
    if (acs_malloc(s->context, bytes, ACS_MEMORY_DEVICE, &block) != ACS_OK)
        return 0;
    if (!acs_memcpy(s->context, block, src, bytes) || !launch_mix(s, dst, (const uint64_t *)block, o))
        return 0;
    return acs_free(s->context, block);
}

static acs_op queue_op(soak *s, const op *o)
{
    uint64_t *dst = s->memory[o->dst] + o->dst_at;
    const uint64_t *src = s->memory[o->src] + o->src_at;
    acs_op number;

    switch (o->kind) {
    case OP_MIX:
        return launch_mix(s, dst, src, o);
    case OP_COPY:
        return acs_memcpy(s->context, dst, src, o->columns * WORD);
    case OP_FILL:
        return acs_memset(s->context, dst, (int)(o->salt & 255), o->columns * WORD);
    case OP_HOST:
        return queue_host(s, dst, src, o);
    case OP_TEMPORARY:
        return use_temporary(s, dst, src, o);
    case OP_CALLBACK:
        number = launch_mix(s, dst, src, o);
        s->callbacks_wanted++;
        return number ? acs_on_retire(s->context, number, count_callback, &s->callbacks_seen) : 0;
    case OP_WAIT_RANGE:
        number = launch_mix(s, dst, src, o);
        return acs_wait_range(s->context, dst, o->columns * WORD, ACS_READ) == ACS_OK ? number : 0;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------- serially */

static void replay_op(uint64_t **memory, const op *o)
{
    uint64_t *dst = memory[o->dst] + o->dst_at;
    const uint64_t *src = memory[o->src] + o->src_at;

    if (o->kind == OP_COPY)
        memcpy(dst, src, o->columns * WORD);
    else if (o->kind == OP_FILL)
        memset(dst, (int)(o->salt & 255), o->columns * WORD);
    else
        mix_words(dst, src, o->rows, o->columns, o->pitch, o->salt);
}

/* Buffers that differ from those of a serial run of the same stream; -1 if memory is exhausted. */
static int compare_with_replay(soak *s, uint64_t ops, uint64_t seed)
{
    uint64_t *memory[BUFFERS];
    int differing = 0;
    for (uint32_t i = 0; i < BUFFERS; i++)
        if (!(memory[i] = (uint64_t *)calloc(buffer_words(i), WORD)))
            return -1;
    for (uint64_t i = 0; i < ops; i++) {
        op o = next_op(&seed);
        replay_op(memory, &o);
    }
    uint64_t *got = (uint64_t *)malloc(ARENA_WORDS * WORD);
    for (uint32_t i = 0; got && i < BUFFERS; i++) {
        size_t bytes = buffer_words(i) * WORD;
        acs_memcpy(s->context, got, s->memory[i], bytes);
        if (acs_sync(s->context) != ACS_OK || memcmp(got, memory[i], bytes)) {
            fprintf(stderr, "FAILED: buffer %u is not what a serial run gives\n", i);
            differing++;
        }
        free(memory[i]);
    }
    free(got);
    return got ? differing : -1;
}

/* ------------------------------------------------------------------------------------------------- the run */

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Resident memory of this process; 0 if the system does not tell. */
static long resident_kib(void)
{
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return 0;
    if (fscanf(file, "%ld %ld", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int fail(const char *what)
{
    acs_error error;
    error.size = sizeof error;
    error.text[0] = 0;
    acs_last_error(&error);
    fprintf(stderr, "FAILED: %s: %s\n", what, error.text);
    return 1;
}

static int prepare(soak *s)
{
    for (uint32_t i = 0; i < BUFFERS; i++) {
        void *block;
        int host = i >= DEVICE_BUFFERS && i < DEVICE_BUFFERS + HOST_BUFFERS;
        size_t bytes = buffer_words(i) * WORD;
        if (acs_malloc(s->context, bytes, host ? ACS_MEMORY_HOST : ACS_MEMORY_DEVICE, &block) != ACS_OK ||
            !acs_memset(s->context, block, 0, bytes))
            return fail("acs_malloc");
        s->memory[i] = (uint64_t *)block;
    }
    return 0;
}

/* Queue all ops in tenths, each waited for. */
/* Queue the ops from *done on, up to `end`; an interruption ends it before. False: one was refused. */
static bool queue_ops(soak *s, uint64_t *done, uint64_t end, uint64_t *seed)
{
    const uint64_t first = *done;
    for (; *done < end; (*done)++) {
        const bool looks = *done % 1024 == 0;
        if (looks && bench_interrupted())
            break;
        if (looks)
            bench_progress_part((double)(*done - first) / (double)(end - first), "ops of a tenth");
        op o = next_op(seed);
        if (!queue_op(s, &o))
            return false;
    }
    return true;
}

/* @param done  set to the number of ops that were queued: less than `ops` after an interruption */
static int run(soak *s, uint64_t ops, uint64_t seed, uint64_t *done)
{
    double us_per_op[10];
    long kib[10];
    *done = 0;
    for (uint64_t tenth = 0; tenth < 10; tenth++) {
        uint64_t first = *done;
        double start = now_us();
        if (!queue_ops(s, done, ops * (tenth + 1) / 10, &seed))
            return fail("an op was refused");
        if (acs_sync(s->context) != ACS_OK)
            return fail("acs_sync");
        us_per_op[tenth] = (now_us() - start) / (double)(*done > first ? *done - first : 1);
        kib[tenth] = resident_kib();
        bench_progress_hide();
        if (bench_interrupted())
            return 0; /* what is done is compared */
        printf("%12llu ops  %8.3f us/op  %9ld KiB resident\n", (unsigned long long)*done, us_per_op[tenth], kib[tenth]);
        fflush(stdout);
        bench_progress_step("tenths");
    }
    double flat = us_per_op[9] / us_per_op[0];
    long growth = kib[9] - kib[4];
    printf("last tenth over first: %.2f in time per op%s; %ld KiB grown in the second half\n", flat,
           flat > 1.5 ? " (SLOWER)" : "", growth);
    if (growth > GROWTH_MAX_KIB && !SANITIZED) {
        fprintf(stderr, "FAILED: the process grew by %ld KiB in the second half\n", growth);
        return 1;
    }
    return 0;
}

static int check(soak *s, uint64_t ops, uint64_t seed)
{
    acs_statistics stats;
    stats.size = sizeof stats;
    if (acs_stats(s->context, &stats) != ACS_OK || stats.retired != stats.queued || stats.failed || stats.skipped) {
        fprintf(stderr, "FAILED: %llu ops queued, %llu retired, %llu failed, %llu skipped\n",
                (unsigned long long)stats.queued, (unsigned long long)stats.retired, (unsigned long long)stats.failed,
                (unsigned long long)stats.skipped);
        return 1;
    }
    printf("%llu ops queued, %llu edges, at most %llu in flight\n", (unsigned long long)stats.queued,
           (unsigned long long)stats.edges, (unsigned long long)stats.running_high);
    if (s->callbacks_seen != s->callbacks_wanted) {
        fprintf(stderr, "FAILED: %llu of %llu callbacks ran\n", (unsigned long long)s->callbacks_seen,
                (unsigned long long)s->callbacks_wanted);
        return 1;
    }
    return compare_with_replay(s, ops, seed) != 0;
}

int main(int argc, char **argv)
{
    uint64_t ops = argc > 1 ? strtoull(argv[1], NULL, 0) : UNDER_THREAD_SANITIZER ? 40000 : 200000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    static soak s;
    acs_options options;

    acs_options_init(&options, sizeof options);
#ifndef __CUDACC__
    if (options.backend == ACS_BACKEND_AUTO)
        options.backend = ACS_BACKEND_HOST; /* also where there is a GPU: the kernel has a host body alone */
#endif
    if (acs_open(&options, &s.context) != ACS_OK)
        return fail("acs_open");
#ifdef __CUDACC__
    if (acs_context_backend(s.context) != ACS_BACKEND_CUDA && !getenv("ACS_BACKEND")) {
        acs_close(s.context);
        return SKIPPED;
    }
#endif
    uint64_t done = 0;
    bench_interrupts_catch();
    bench_progress_begin("test_soak", 10);
    int failed = prepare(&s) || run(&s, ops, seed, &done) || check(&s, done, seed);
    for (uint32_t i = 0; !failed && i < BUFFERS; i++)
        failed = !acs_free(s.context, s.memory[i]);
    if (acs_close(s.context) != ACS_OK)
        failed = fail("acs_close");
    const bool whole = done == ops;
    printf("%s%s\n", failed ? "FAILED" : "passed", whole ? "" : ", but it was interrupted: go on with another seed");
    return failed ? 1 : whole ? 0 : BENCH_INTERRUPTED;
}

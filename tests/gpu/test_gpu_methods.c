/*
 * Bundles on a GPU, given to the cuda backend by hand: shapes, kernels and changing arguments, each result compared
 * with that of one op after another; what is refused, evicted, or more than copies are there for. The environment's
 * VERBOSE names each shape before it is tried.
 */
#include "bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, OPS_MOST = 256 };

static bundle_world g_world;
static int g_failures;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                  \
            g_failures++;                                                                                              \
        }                                                                                                              \
    } while (0)

/* What a bundle looks like. */
typedef struct shape {
    uint32_t ops, width; /* width 0: random, up to three among the last 16 ops */
    bool stencil;        /* else chains */
    uint32_t kernels;    /* kinds, from number 0 on */
    uint32_t joins;      /* one join behind so many ops; 0: none */
    uint32_t grids;      /* grids differ */
    bool slow;           /* each op takes some time on a GPU */
    uint64_t seed;       /* of the shape; arguments come of `salt` */
    uint32_t salt;
} shape;

/* Earlier ops of the bundle that op i reads; at most 3. */
static uint32_t upstream(const shape *s, acs_random *random, uint32_t i, uint32_t *list)
{
    uint32_t count = 0;
    if (s->width && i >= s->width) {
        uint32_t above = i - s->width, column = above % s->width;
        if (s->stencil && column > 0)
            list[count++] = above - 1;
        list[count++] = above;
        if (s->stencil && column + 1 < s->width)
            list[count++] = above + 1;
    }
    for (uint32_t k = 0; !s->width && i > 0 && k < 3; k++) {
        uint32_t back = 1 + acs_random_below(random, i < 16 ? i : 16);
        if (acs_random_below(random, 2))
            list[count++] = i - back;
    }
    return count;
}

/*
 * Every op writes the cell of its number, and reads those of its upstream ops and of the same op of the bundle before.
 */
static acs_issue_method issue(const shape *s, int slot, acs_issue_method method, acs_status *status)
{
    acs_random random = {s->seed};
    uint16_t item_of[OPS_MOST], edges[8];
    uint32_t list[8], since_join = 0;
    int join = -1;
    bundle_begin(&g_world, method);
    for (uint32_t i = 0; i < s->ops; i++) {
        bundle_op op = {.kernel = (int)acs_random_below(&random, s->kernels), .to = (int)i, .from = {-1, -1, -1}};
        op.salt = (s->salt * 7919 + i) | (s->slow ? BUNDLE_SLOW : 0);
        uint32_t count = upstream(s, &random, i, list), wanted = 0;
        op.grid = (acs_dim3){s->grids ? 1 + (s->salt + i) % 3 : 2, s->grids ? 1 + s->salt % 2 : 1, 1};
        for (uint32_t k = 0; k < count; k++) {
            op.from[k] = (int)list[k];
            edges[wanted++] = item_of[list[k]];
        }
        if (join >= 0)
            edges[wanted++] = (uint16_t)join;
        if (count && acs_random_below(&random, 2)) /* implied: what its upstream op is behind */
            edges[wanted++] = item_of[list[0] >= s->width && s->width ? list[0] - s->width : list[0]];
        item_of[i] = (uint16_t)bundle_add(&g_world, slot, bundle_record(&g_world, slot, &op), edges, wanted);
        if (!s->joins || ++since_join < s->joins || i + 1 == s->ops)
            continue;
        uint16_t all[OPS_MOST];
        uint32_t n = 0;
        for (uint32_t k = i + 1 - since_join; k <= i; k++)
            all[n++] = item_of[k];
        join = (int)bundle_add(&g_world, slot, NULL, all, n);
        since_join = 0;
    }
    return bundle_submit(&g_world, slot, status);
}

/* So often, each time with other arguments; at least `least` of them have to go by the issue method. */
static void repeat(const shape *wanted, acs_issue_method method, uint32_t times, uint32_t least)
{
    shape s = *wanted;
    uint32_t by = 0;
    if (getenv("VERBOSE"))
        fprintf(stderr, "  issue method %d: %u ops, width %u, kernels %u, joins %u, seed %llu\n", (int)method, s.ops,
                s.width, s.kernels, s.joins, (unsigned long long)s.seed);
    for (uint32_t i = 0; i < times; i++) {
        acs_status status;
        s.salt = wanted->salt + i;
        by += issue(&s, (int)(i / 3 % 2), method, &status) == method;
        CHECK(status == ACS_OK || status == ACS_NOT_READY);
    }
    for (int slot = 0; slot < 2; slot++) {
        bundle_wait(&g_world, slot);
        uint32_t differences = bundle_differences(&g_world, slot);
        if (differences)
            fprintf(stderr, "  issue method %d, %u ops, width %u, seed %llu, slot %d: %u cells differ\n", (int)method, s.ops,
                    s.width, (unsigned long long)s.seed, slot, differences);
        g_failures += differences != 0;
    }
    if (by < least)
        fprintf(stderr, "  %u of %u bundles by issue method %d, at least %u expected\n", by, times, (int)method, least);
    g_failures += by < least;
}

static void shapes_by(acs_issue_method method, uint32_t misses)
{
    static const shape shapes[] = {
        {.ops = 64, .width = 16, .kernels = 1},
        {.ops = 256, .width = 32, .stencil = true, .kernels = 1},
        {.ops = 100, .width = 10, .stencil = true, .kernels = 4, .grids = 1},
        {.ops = 128, .width = 16, .kernels = 2, .joins = 16},
        {.ops = 200, .kernels = 1, .seed = 5},
        {.ops = 200, .kernels = 3, .seed = 6, .grids = 1, .joins = 40},
        {.ops = 1, .width = 1, .kernels = 1},
        {.ops = 2, .width = 1, .kernels = 1},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        repeat(&shapes[i], method, 12, 12 - misses);
}

static void replay_runs_bundles_from_the_second_sighting_on(void)
{
    shapes_by(ACS_METHOD_REPLAY, 8); /* a copy for each of two slots, and what finds them busy */
}

/* The same arguments so often that the nodes get fixed, then others. */
static void arguments_that_recur_are_fixed_until_they_change(void)
{
    static const shape same = {.ops = 96, .width = 12, .stencil = true, .kernels = 4, .grids = 1, .salt = 3};
    acs_status status;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 40; i++)
            (void)issue(&same, 0, ACS_METHOD_REPLAY, &status);
        shape other = same;
        other.salt += 100;
        (void)issue(&other, 0, ACS_METHOD_REPLAY, &status);
        CHECK(status == ACS_OK);
    }
    bundle_wait(&g_world, 0);
    CHECK(bundle_differences(&g_world, 0) == 0);
}

/* Each is built, some 170 nodes at a time, until older ones have to go. */
static void shapes_beyond_the_bound_are_evicted(void)
{
    for (uint64_t seed = 1000; seed < 1120; seed++) {
        const shape s = {.ops = 150, .kernels = 2, .seed = seed};
        repeat(&s, ACS_METHOD_REPLAY, 3, 1);
    }
}

static void bundles_queue_behind_each_other(void)
{
    const shape s = {.ops = 96, .width = 8, .kernels = 2, .grids = 1};
    repeat(&s, ACS_METHOD_REPLAY, 200, 20);
}

/* More launches than a graph has tables for: none may be overwritten before it was read. */
static void launches_that_wait_keep_their_tables(void)
{
    shape s = {.ops = 48, .width = 8, .kernels = 2, .grids = 1, .seed = 9};
    acs_status status;
    bundle_hold(1);
    for (uint32_t i = 0; i < 45; i++) {
        s.salt = i;
        (void)issue(&s, 0, ACS_METHOD_REPLAY, &status);
    }
    bundle_hold(0);
    bundle_wait(&g_world, 0);
    CHECK(bundle_differences(&g_world, 0) == 0);
}

/* On one device repeats replay what recurs, so a bundle without bodies is handed back. */
static void auto_launches_on_one_device(void)
{
    const shape s = {.ops = 64, .width = 16, .kernels = 1, .seed = 77};
    shape now = s;
    uint32_t taken = 0;
    for (uint32_t i = 0; i < 40; i++) {
        acs_status status;
        now.salt = i;
        taken += issue(&now, 0, ACS_METHOD_AUTO, &status) != ACS_METHOD_LAUNCH;
        bundle_wait(&g_world, 0);
    }
    CHECK(taken == 0);
    CHECK(bundle_differences(&g_world, 0) == 0);
}

/* Begin anew with ACS_GRAPH_NODES as given; NULL: as it is by default. */
static void world_of_nodes(const char *nodes)
{
    bundle_close(&g_world);
    CHECK((nodes ? setenv("ACS_GRAPH_NODES", nodes, 1) : unsetenv("ACS_GRAPH_NODES")) == 0);
    CHECK(bundle_open(&g_world));
}

/* Room for one graph at a time: each bundle throws out that of the one before, as soon as that has ended. */
static void every_bundle_evicts_where_room_is_small(void)
{
    shape shapes[2] = {{.ops = 150, .width = 15, .kernels = 2, .seed = 1}, {.ops = 140, .kernels = 3, .seed = 2}};
    acs_status status;
    uint32_t taken = 0;
    world_of_nodes("235");
    for (uint32_t i = 0; i < 60; i++) {
        shapes[i % 2].salt = i;
        taken += issue(&shapes[i % 2], 0, ACS_METHOD_REPLAY, &status) == ACS_METHOD_REPLAY;
        if (i % 3)
            bundle_wait(&g_world, 0);
    }
    bundle_wait(&g_world, 0);
    CHECK(taken >= 20);
    CHECK(bundle_differences(&g_world, 0) == 0);
    world_of_nodes(NULL);
}

/* The first cells of the ring, one for each op of the latest bundle, that are not what they must be by now. */
static uint32_t wrong_so_far(uint32_t ops)
{
    static uint32_t seen[OPS_MOST][BUNDLE_WORDS];
    uint32_t wrong = 0;
    CHECK(bundle_read(seen, g_world.slot[0].cells, ops * sizeof seen[0]));
    for (uint32_t i = 0; i < ops; i++)
        wrong += memcmp(seen[i], g_world.slot[0].model[i], sizeof seen[i]) != 0;
    return wrong;
}

/* Slow ops, and a look at what was written each time that more of them are said to have ended. */
static void progress_inside_a_bundle_is_told_and_true(void)
{
    shape s = {.ops = 256, .width = 8, .kernels = 1, .slow = true};
    uint32_t inside = 0;
    for (uint32_t i = 0; i < 6; i++) {
        acs_status status;
        s.salt++;
        (void)issue(&s, 0, ACS_METHOD_REPLAY, &status);
        for (uint64_t seen = g_world.slot[0].completed; seen < g_world.slot[0].issued;) {
            bundle_poll(&g_world, 0);
            if (g_world.slot[0].completed == seen)
                continue;
            seen = g_world.slot[0].completed;
            inside += status == ACS_OK && seen < g_world.slot[0].issued;
            CHECK(wrong_so_far((uint32_t)(256 - (g_world.slot[0].issued - seen))) == 0);
        }
    }
    CHECK(inside > 0 || bundle_runs_at_once);
}

static const struct {
    const char *name;
    void (*run)(void);
} g_tests[] = {
#define TEST(function) {#function, function}
    TEST(replay_runs_bundles_from_the_second_sighting_on),
    TEST(arguments_that_recur_are_fixed_until_they_change),
    TEST(shapes_beyond_the_bound_are_evicted),
    TEST(bundles_queue_behind_each_other),
    TEST(launches_that_wait_keep_their_tables),
    TEST(auto_launches_on_one_device),
    TEST(progress_inside_a_bundle_is_told_and_true),
    TEST(every_bundle_evicts_where_room_is_small),
};

int main(int argc, char **argv)
{
    int failed = 0;
    if (!bundle_open(&g_world)) {
        printf("skipped: %s\n", acs_error_thread()->text);
        return SKIPPED;
    }
    if (!g_world.backend->bundle_most) {
        printf("skipped: this build, driver or GPU has no bundles\n");
        return SKIPPED;
    }
    for (size_t i = 0; i < sizeof g_tests / sizeof g_tests[0]; i++) {
        if (argc > 1 && !strstr(g_tests[i].name, argv[1]))
            continue;
        g_failures = 0;
        g_tests[i].run();
        printf("%s %s\n", g_failures ? "FAILED" : "passed", g_tests[i].name);
        fflush(stdout);
        failed += g_failures;
    }
    bundle_close(&g_world);
    return failed ? 1 : 0;
}

/*
 * The longest chain that the statistics tell, beside the longest path through all conflicts of random programs. Ops end
 * at once or late, as the program waits now and then.
 */
#include "report_fixture.h"

#include "base/base.h"

#include <stdbool.h>

enum { OPS = 400, BYTES = 192, USES = 3, TOKENS = 2, ROUNDS = 40 };

/* What an op names: bytes, tokens behind them, and all of it. */
typedef struct footprint {
    bool reads[BYTES + TOKENS], writes[BYTES + TOKENS];
    bool all_read, all_written, any;
} footprint;

static char g_bytes[BYTES];
static footprint g_prints[OPS];
static uint64_t g_random;

static void queue_touch(acs_context *context, char *byte, acs_access access)
{
    const acs_segment segment = acs_make_segment(ACS_EXTENT_BYTES, access, (uint64_t)(uintptr_t)byte, 1, 1, 0);
    const acs_uses uses = {.segments = &segment, .count = 1};
    assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, uses) > 0);
}

/* The op of a chain with this number: the block tells it from the others. */
static void queue_step(acs_context *context, char *byte, int number)
{
    assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1 + number, 0, ACS_NO_ARGS, ACS_USES(ACS_INOUT(byte, 1))) > 0);
}

static uint32_t below(uint32_t bound)
{
    acs_random random = {g_random};
    const uint64_t word = acs_random_next(&random);
    g_random = random.state;
    return (uint32_t)(word % bound);
}

static void note(footprint *f, uint32_t at, uint8_t access)
{
    f->any = true;
    f->reads[at] |= (access & ACS_READ) != 0;
    f->writes[at] |= (access & ACS_WRITE) != 0;
}

static acs_segment random_run(footprint *f, uint8_t access)
{
    const uint32_t bytes = 1 + below(below(4) ? 12 : BYTES / 2), first = below(BYTES - bytes + 1);
    for (uint32_t i = 0; i < bytes; i++)
        note(f, first + i, access);
    return acs_make_segment(ACS_EXTENT_BYTES, (acs_access)access, (uint64_t)(uintptr_t)(g_bytes + first), bytes, 1, 0);
}

static acs_segment random_tile(footprint *f, uint8_t access)
{
    const uint32_t width = 1 + below(5), pitch = 16, rows = 1 + below(6), first = below(BYTES - pitch * rows - width);
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t i = 0; i < width; i++)
            note(f, first + row * pitch + i, access);
    return acs_make_segment(ACS_EXTENT_BYTES, (acs_access)access, (uint64_t)(uintptr_t)(g_bytes + first), width, rows,
                            rows > 1 ? pitch : 0);
}

static acs_segment random_segment(footprint *f)
{
    const uint8_t access = (uint8_t)(ACS_READ + below(3));
    const uint32_t kind = below(60);
    if (kind == 0) {
        f->any = f->all_read = true;
        f->all_written |= (access & ACS_WRITE) != 0;
        return acs_make_segment(ACS_EXTENT_ALL, (access & ACS_WRITE) ? ACS_UPDATE : ACS_READ, 0, 0, 0, 0);
    }
    if (kind < 4) {
        const uint32_t token = below(TOKENS);
        note(f, BYTES + token, access);
        return acs_make_segment(ACS_EXTENT_TOKEN, (acs_access)access, 1 + token, 0, 0, 0);
    }
    return kind < 30 ? random_tile(f, access) : random_run(f, access);
}

static bool writes_any(const footprint *f)
{
    bool any = f->all_written;
    for (uint32_t i = 0; i < BYTES + TOKENS; i++)
        any |= f->writes[i];
    return any;
}

static bool conflict(const footprint *a, const footprint *b)
{
    if (!a->any || !b->any)
        return false;
    if (a->all_written || b->all_written || (a->all_read && writes_any(b)) || (b->all_read && writes_any(a)))
        return true;
    for (uint32_t i = 0; i < BYTES + TOKENS; i++)
        if ((a->writes[i] && (b->reads[i] || b->writes[i])) || (a->reads[i] && b->writes[i]))
            return true;
    return false;
}

static uint32_t longest_chain(uint32_t ops)
{
    uint32_t level[OPS], longest = 0;
    for (uint32_t op = 0; op < ops; op++) {
        level[op] = 1;
        for (uint32_t before = 0; before < op; before++)
            if (level[before] >= level[op] && conflict(&g_prints[op], &g_prints[before]))
                level[op] = level[before] + 1;
        longest = level[op] > longest ? level[op] : longest;
    }
    return longest;
}

static acs_context *open_with_stats(int backend, int repeats)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = backend;
    options.stats = 1;
    options.repeats = repeats;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* The program waits after so many ops; 0: now and then. No repeats: a replay counts as following all that its strand did. */
static void run_random(int backend, uint32_t wait_every)
{
    acs_context *context = open_with_stats(backend, ACS_REPEATS_NAMED);
    acs_statistics s = {.size = sizeof s};
    char text[8192];
    memset(g_prints, 0, sizeof g_prints);
    for (uint32_t op = 0; op < OPS; op++) {
        acs_segment segments[USES];
        const uint32_t count = below(USES + 1);
        for (uint32_t i = 0; i < count; i++)
            segments[i] = random_segment(&g_prints[op]);
        const acs_uses uses = {.segments = segments, .count = count};
        assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, uses) > 0);
        if (wait_every ? op % wait_every == wait_every - 1 : below(24) == 0)
            assert_int_equal(acs_sync(context), ACS_OK);
    }
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    close_and_read(context, text, sizeof text);
    assert_int_equal(s.levels, longest_chain(OPS));
}

static void the_longest_chain_is_that_of_the_conflicts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        g_random = seed;
        run_random(seed % 2 ? ACS_BACKEND_SIM : ACS_BACKEND_HOST, seed % 4 == 3 ? 1 : seed % 4 == 2 ? OPS : 0);
    }
}

/* Each op reads the whole of what the ops of the step before wrote in parts, and all of them have ended by then. */
static void parts_that_ended_count_for_the_whole(void **state)
{
    (void)state;
    enum { PARTS = 64, STEPS = 12 };
    static char buffers[2][PARTS];
    acs_context *context = open_with_stats(ACS_BACKEND_SIM, ACS_REPEATS_NAMED);
    acs_statistics s = {.size = sizeof s};
    char text[8192];
    for (int step = 0; step < STEPS; step++)
        for (int part = 0; part < PARTS; part++) {
            const char *from = buffers[step % 2];
            char *to = &buffers[(step + 1) % 2][part];
            assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS,
                                      ACS_USES(ACS_IN(from, PARTS), ACS_OUT(to, 1))) > 0);
            assert_int_equal(acs_sync(context), ACS_OK);
        }
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    assert_int_equal(s.levels, STEPS);
    close_and_read(context, text, sizeof text);
    assert_says(text, "(longest chain 12)");
}

/*
 * Passes of a named repeat, of which later ones are replays: two chains of different lengths, and ops beside them. Behind
 * them comes an op that is in no pass.
 */
static void replays_count_as_the_chains_that_they_are(void **state)
{
    (void)state;
    enum { LONG = 7, SHORT = 3, BESIDE = 5, PASSES = 6 };
    static char chains[2], beside[BESIDE];
    acs_context *context = open_with_stats(ACS_BACKEND_SIM, ACS_REPEATS_AUTO);
    acs_statistics s = {.size = sizeof s};
    char text[8192];
    for (int pass = 0; pass < PASSES; pass++) {
        assert_int_equal(acs_repeat_begin(context, 1), ACS_OK);
        for (int op = 0; op < LONG; op++) {
            queue_touch(context, &chains[0], ACS_UPDATE);
            if (op < SHORT)
                queue_touch(context, &chains[1], ACS_UPDATE);
            if (op < BESIDE)
                queue_touch(context, &beside[op], ACS_WRITE);
        }
        assert_int_equal(acs_repeat_end(context), ACS_OK);
    }
    queue_touch(context, &chains[0], ACS_READ);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    assert_true(s.replayed >= (PASSES - 3) * (LONG + SHORT + BESIDE));
    assert_int_equal(s.levels, PASSES * LONG + 1);
    close_and_read(context, text, sizeof text);
}

/* The last pass leaves out two ops in the middle of the chain: those behind them follow those before them. */
static void ops_left_out_are_no_links(void **state)
{
    (void)state;
    enum { OPS_OF_PASS = 6, PASSES = 8, EARLIER = 7 };
    static char chain, other;
    acs_context *context = open_with_stats(ACS_BACKEND_SIM, ACS_REPEATS_AUTO);
    acs_statistics s = {.size = sizeof s};
    char text[8192];
    uint64_t expected = 0;
    for (int op = 0; op < EARLIER; op++) /* the simulator keeps some types out of bundles, the last one the seventh */
        queue_step(context, &other, 100 + op);
    for (int pass = 0; pass < PASSES; pass++) {
        assert_int_equal(acs_repeat_begin(context, 1), ACS_OK);
        for (int op = 0; op < OPS_OF_PASS; op++) {
            if (pass == PASSES - 1 && (op == 2 || op == 3))
                continue;
            expected++;
            queue_step(context, &chain, op);
        }
        assert_int_equal(acs_repeat_end(context), ACS_OK);
    }
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    assert_true(s.replayed >= (PASSES - 3) * OPS_OF_PASS - 2);
    assert_int_equal(s.levels, expected);
    close_and_read(context, text, sizeof text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_chain_is_that_of_the_conflicts),
        cmocka_unit_test(parts_that_ended_count_for_the_whole),
        cmocka_unit_test(replays_count_as_the_chains_that_they_are),
        cmocka_unit_test(ops_left_out_are_no_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

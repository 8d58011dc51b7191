/*
 * Ops that the device decides: grids that are read, sections, loops; in contexts on CPU threads and simulated. What ran
 * is compared with plain C.
 */
#include "simulator/sim.h"
#include "api/context.h"
#include "api_fixture.h"

#include <stdlib.h>

enum { WORLDS = 12, STEPS = 40, MANY = 90 };

static void add_body(const acs_grid *grid, void *const *args)
{
    uint32_t *x = *(uint32_t *const *)args[0];
    const uint32_t by = *(const uint32_t *)args[1];
    *x = *x * 3 + by * grid->grid.x * grid->grid.y * grid->grid.z;
}

static void set_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    **(uint32_t *const *)args[0] = *(const uint32_t *)args[1];
}

static const acs_kernel g_add = ACS_KERNEL_HOST_INIT("add", add_body), g_set = ACS_KERNEL_HOST_INIT("set", set_body);

static acs_op add_grid(acs_context *context, uint32_t *x, uint32_t by, acs_read_grid grid)
{
    return ACS_LAUNCH_ON(context, &g_add, grid, 1, 0, ACS_ARGS(x, by), ACS_USES(ACS_INOUT(x, sizeof *x)));
}

static void add(acs_context *context, uint32_t *x, uint32_t by)
{
    assert_true(ACS_LAUNCH_ON(context, &g_add, 1, 1, 0, ACS_ARGS(x, by), ACS_USES(ACS_INOUT(x, sizeof *x))) > 0);
}

static void set(acs_context *context, uint32_t *x, uint32_t to)
{
    assert_true(ACS_LAUNCH_ON(context, &g_set, 1, 1, 0, ACS_ARGS(x, to), ACS_USES(ACS_OUT(x, sizeof *x))) > 0);
}

static acs_statistics stats(acs_context *context)
{
    acs_statistics s = {.size = sizeof s};
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    return s;
}

/* ------------------------------------------------------------------------------------------------------------- grids */

static void a_grid_is_read_when_the_launch_may_run(void **state)
{
    acs_context *context = *state;
    uint32_t count = 0, *counts = &count, x = 1, want = 1;
    acs_dim3 grid = {1, 1, 1}, *at = &grid;
    for (uint32_t i = 0; i < 20; i++) {
        set(context, counts, i);
        assert_true(add_grid(context, &x, i + 1, ACS_GRID_FOR(counts, 4, 5)) > 0);
        if (i)
            want = want * 3 + (i + 1) * ((i + 3) / 4);
    }
    set(context, &at->y, 3);
    assert_true(add_grid(context, &x, 7, ACS_GRID_AT(at, ((acs_dim3){1, 3, 1}))) > 0);
    want = want * 3 + 7 * 3;
    set(context, &at->z, 0);
    assert_true(add_grid(context, &x, 7, ACS_GRID_AT(at, ((acs_dim3){1, 3, 1}))) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(x, want);
    assert_int_equal(stats(context).not_run, 2);
}

static void a_grid_above_its_maximum_is_an_error_and_no_overrun(void **state)
{
    acs_context *context = *state;
    uint32_t count = 21, *counts = &count, x = 1, y = 1;
    acs_error error = {.size = sizeof error};
    const acs_op op = add_grid(context, &x, 5, ACS_GRID_FOR(counts, 4, 5));
    add(context, &y, 2);
    assert_int_equal(acs_wait(context, op), ACS_ERR_ARGUMENT);
    assert_error(ACS_ERR_ARGUMENT, "6 x 1 x 1 blocks, and its maximum is 5 x 1 x 1");
    assert_int_equal(acs_sync(context), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_context_error(context, &error), ACS_ERR_ARGUMENT);
    assert_string_equal(error.site.name, "&g_add");
    assert_int_equal(x, 1);
    assert_int_equal(y, 5);
    assert_int_equal(acs_clear(context), ACS_OK);
    count = UINT32_MAX;
    for (int i = 0; i < 100; i++)
        (void)add_grid(context, &x, 5, ACS_GRID_FOR(counts, 1, 1000));
    assert_int_equal(acs_sync(context), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_clear(context), ACS_OK);
    count = 4;
    assert_true(add_grid(context, &x, 5, ACS_GRID_FOR(counts, 4, 5)) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(x, 8);
}

static void bad_words_are_refused(void **state)
{
    acs_context *context = *state;
    uint32_t word = 1, x = 1;
    const uint32_t *odd = (const uint32_t *)(const void *)((const char *)&word + 1);
    assert_int_equal(add_grid(context, &x, 5, ACS_GRID_FOR(odd, 4, 5)), 0);
    assert_error(ACS_ERR_ARGUMENT, "not a multiple of 4");
    assert_int_equal(acs_if(context, odd), ACS_ERR_ARGUMENT);
    assert_int_equal(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE), 0);
    assert_error(ACS_ERR_ARGUMENT, "refused");
    assert_int_equal(acs_end_if(context), ACS_OK);
    assert_int_equal(acs_end_if(context), ACS_ERR_STATE);
    assert_int_equal(acs_else(context), ACS_ERR_STATE);
    assert_int_equal(acs_if(context, NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_end_if(context), ACS_OK);
    for (int i = 0; i < 32; i++)
        assert_int_equal(acs_if(context, &word), ACS_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(acs_if(context, &word), ACS_ERR_UNSUPPORTED);
    assert_int_equal(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE), 0);
    assert_error(ACS_ERR_UNSUPPORTED, "more than 32 deep");
    for (int i = 0; i < 35; i++)
        assert_int_equal(acs_end_if(context), ACS_OK);
    assert_int_equal(acs_end_if(context), ACS_ERR_STATE);
    (void)acs_clear(context);
}

static int no_iteration(acs_context *context, uint32_t iteration, void *user)
{
    (void)context;
    (void)iteration;
    ++*(uint32_t *)user;
    return 0;
}

static void bad_loops_are_refused(void **state)
{
    acs_context *context = *state;
    uint32_t word = 0, called = 0;
    const acs_loop_params good = {.size = sizeof good, .stop = &word, .most = 3, .body = no_iteration, .user = &called};
    acs_loop_params bad[] = {good, good, good, good, good};
    const char *const texts[] = {"the size must be", "the word is at", "the word is at", "most is 0", "the body is NULL"};
    bad[0].size--;
    bad[1].stop = NULL;
    bad[2].stop = (const uint32_t *)(const void *)((const char *)&word + 1);
    bad[3].most = 0;
    bad[4].body = NULL;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(acs_loop(context, &bad[i]), ACS_ERR_ARGUMENT);
        assert_error(ACS_ERR_ARGUMENT, texts[i]);
        assert_int_equal(acs_sync(context), ACS_ERR_ARGUMENT); /* the context keeps it */
        assert_int_equal(acs_clear(context), ACS_OK);
    }
    assert_int_equal(acs_loop(context, NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_clear(context), ACS_OK);
    for (int i = 0; i < 32; i++)
        assert_int_equal(acs_if(context, &word), ACS_OK);
    assert_int_equal(acs_loop(context, &good), ACS_ERR_UNSUPPORTED);
    assert_int_equal(acs_context_error(context, NULL), ACS_ERR_UNSUPPORTED);
    for (int i = 0; i < 32; i++)
        assert_int_equal(acs_end_if(context), ACS_OK);
    assert_int_equal(called, 0);
    (void)acs_clear(context);
}

/* ---------------------------------------------------------------------------------------------------------- sections */

static int count_body(void *closure)
{
    (**(uint32_t **)closure)++;
    return 0;
}

static int call_body(const acs_call_env *env, void *closure)
{
    (void)env;
    return count_body(closure);
}

/* All kinds of ops, in both branches. */
static void one_branch_runs_and_is_decided_once(void **state)
{
    acs_context *context = *state;
    for (uint32_t run = 0; run < 2; run++) {
        uint32_t word = 9, x = 1, y = 1, copied = 0, filled = 0, called = 0, *calls = &called;
        const acs_statistics before = stats(context);
        set(context, &word, run);
        assert_int_equal(acs_if(context, &word), ACS_OK);
        set(context, &word, !run); /* which does not change the decision */
        add(context, &x, 1);
        assert_true(acs_memcpy(context, &copied, &x, sizeof x) > 0);
        assert_true(acs_memset(context, &filled, 255, sizeof filled) > 0);
        assert_true(acs_host(context, count_body, &calls, sizeof calls, ACS_USES(ACS_INOUT(calls, sizeof called))) > 0);
        const acs_call_params call = {.size = sizeof call, .function = call_body, .closure = &calls,
                                      .closure_bytes = sizeof calls, .uses = ACS_USES(ACS_INOUT(calls, sizeof called))};
        assert_true(acs_call(context, &call) > 0);
        assert_int_equal(acs_else(context), ACS_OK);
        add(context, &y, 1);
        assert_int_equal(acs_else(context), ACS_ERR_STATE);
        assert_int_equal(acs_end_if(context), ACS_OK);
        add(context, &y, 5);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(x, run ? 4 : 1);
        assert_int_equal(y, run ? 8 : 17);
        assert_int_equal(copied, run ? 4 : 0);
        assert_int_equal(filled, run ? UINT32_MAX : 0);
        assert_int_equal(called, run ? 2 : 0);
        assert_int_equal(word, 0);
        assert_int_equal(stats(context).not_run - before.not_run, run ? 1 : 6);
    }
}

static void sections_are_nested(void **state)
{
    acs_context *context = *state;
    for (uint32_t bits = 0; bits < 8; bits++) {
        uint32_t word[3] = {bits & 1, bits >> 1 & 1, bits >> 2 & 1}, x = 1, want = 1, *at = word;
        assert_int_equal(acs_if(context, at), ACS_OK);
        assert_int_equal(acs_unless(context, at + 1), ACS_OK);
        add(context, &x, 1);
        (void)add_grid(context, &x, 3, ACS_GRID_FOR(at + 2, 1, 1));
        assert_int_equal(acs_else(context), ACS_OK);
        add(context, &x, 2);
        assert_int_equal(acs_end_if(context), ACS_OK);
        assert_int_equal(acs_else(context), ACS_OK);
        assert_int_equal(acs_if(context, at + 2), ACS_OK);
        add(context, &x, 7);
        assert_int_equal(acs_end_if(context), ACS_OK);
        assert_int_equal(acs_end_if(context), ACS_OK);
        assert_int_equal(acs_sync(context), ACS_OK);
        if (word[0]) {
            want = want * 3 + (word[1] ? 2 : 1);
            if (!word[1] && word[2])
                want = want * 3 + 3;
        } else if (word[2]) {
            want = want * 3 + 7;
        }
        assert_int_equal(x, want);
    }
}

/* More ops than one decision has targets. */
static void a_section_may_be_long(void **state)
{
    acs_context *context = *state;
    for (uint32_t run = 0; run < 2; run++) {
        uint32_t word = run, x = 1, want = 1;
        assert_int_equal(acs_if(context, &word), ACS_OK);
        for (uint32_t i = 0; i < MANY; i++) {
            add(context, &x, i);
            want = run ? want * 3 + i : want;
        }
        assert_int_equal(acs_end_if(context), ACS_OK);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(x, want);
    }
}

/* Worlds whose words change from step to step, as what recurs. */
static void decided_ops_recur(void **state)
{
    acs_context *context = *state;
    static uint32_t word[WORLDS], x[WORLDS], y[WORLDS], want_x[WORLDS], want_y[WORLDS];
    memset(x, 0, sizeof x);
    memset(y, 0, sizeof y);
    memset(want_x, 0, sizeof want_x);
    memset(want_y, 0, sizeof want_y);
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t w = 0; w < WORLDS; w++) {
            const uint32_t contacts = (step * 7 + w * 5) % 6;
            set(context, &word[w], contacts);
            (void)add_grid(context, &x[w], step, ACS_GRID_FOR(&word[w], 2, 3));
            assert_int_equal(acs_if(context, &word[w]), ACS_OK);
            add(context, &y[w], step);
            add(context, &x[w], step + 1);
            assert_int_equal(acs_else(context), ACS_OK);
            add(context, &y[w], step + 100);
            assert_int_equal(acs_end_if(context), ACS_OK);
            if (contacts)
                want_x[w] = want_x[w] * 3 + step * ((contacts + 1) / 2);
            want_y[w] = want_y[w] * 3 + (contacts ? step : step + 100);
            if (contacts)
                want_x[w] = want_x[w] * 3 + step + 1;
        }
        if (step % 4 == 3)
            assert_int_equal(acs_sync(context), ACS_OK);
    }
    assert_int_equal(acs_sync(context), ACS_OK);
    for (uint32_t w = 0; w < WORLDS; w++) {
        assert_int_equal(x[w], want_x[w]);
        assert_int_equal(y[w], want_y[w]);
    }
    if (acs_context_backend(context) == ACS_BACKEND_SIM)
        assert_true(stats(context).replayed > 0);
}

static void a_failed_word_skips_the_section(void **state)
{
    acs_context *context = *state;
    uint32_t word = 1, x = 1, y = 1, *at = &word;
    assert_true(acs_host(context, failing_function, NULL, 0, ACS_USES(ACS_OUT(at, sizeof word))) > 0);
    assert_int_equal(acs_if(context, at), ACS_OK);
    add(context, &x, 1);
    assert_int_equal(acs_end_if(context), ACS_OK);
    add(context, &y, 1);
    assert_int_equal(acs_sync(context), ACS_ERR_HOST);
    assert_int_equal(x, 1);
    assert_int_equal(y, 4);
    assert_int_equal(acs_clear(context), ACS_OK);
    add(context, &x, 1);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(x, 4);
}

/* Sections that are opened so have one site. */
static void open_section(acs_context *context, const uint32_t *word)
{
    assert_int_equal(acs_if(context, word), ACS_OK);
}

/* Of two sections with one word and site each has a cell that no other decision has. */
static void a_failure_in_a_nested_section_reaches_nothing_else(void **state)
{
    acs_context *context = *state;
    uint32_t word = 1, counts[2] = {1, 1}, *at = &word, *first = &counts[0], *second = &counts[1], x = 1, y = 1;
    assert_true(acs_host(context, failing_function, NULL, 0, ACS_USES(ACS_OUT(&x, sizeof x))) > 0);
    open_section(context, at);
    open_section(context, at);
    const acs_op skipped = add_grid(context, &x, 1, ACS_GRID_FOR(first, 1, 5));
    assert_int_equal(acs_end_if(context), ACS_OK);
    const acs_op runs = add_grid(context, &y, 1, ACS_GRID_FOR(second, 1, 5));
    assert_int_equal(acs_end_if(context), ACS_OK);
    assert_int_equal(acs_wait(context, skipped), ACS_ERR_SKIPPED);
    assert_int_equal(acs_wait(context, runs), ACS_OK);
    assert_int_equal(y, 4);
}

/* Nothing has written the cells of sections whose decisions were skipped. They are decided anew once that is forgotten. */
static void an_open_section_is_decided_anew_after_a_clear(void **state)
{
    acs_context *context = *state;
    uint32_t word = 1, x = 1, y = 1, *at = &word;
    assert_int_equal(acs_if(context, at), ACS_OK);
    add(context, &x, 1); /* 4 */
    assert_int_equal(acs_clear(context), ACS_OK); /* nothing had failed: the section stays as it is */
    set(context, at, 0);
    add(context, &x, 1); /* 13 */
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(word, 0);
    assert_int_equal(acs_end_if(context), ACS_OK);
    assert_true(acs_host(context, failing_function, NULL, 0, ACS_USES(ACS_OUT(at, sizeof word))) > 0);
    assert_int_equal(acs_unless(context, at), ACS_OK);
    add(context, &y, 1);
    assert_int_equal(acs_if(context, at), ACS_OK);
    add(context, &y, 1);
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(y, 1);
    word = 0;
    add(context, &y, 1); /* of the inner section: not run */
    assert_int_equal(acs_else(context), ACS_OK);
    add(context, &y, 2); /* 5 */
    assert_int_equal(acs_end_if(context), ACS_OK);
    add(context, &y, 3); /* 18 */
    assert_int_equal(acs_end_if(context), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(x, 13);
    assert_int_equal(y, 18);
}

/* ------------------------------------------------------------------------------------------------------------- loops */

typedef struct countdown {
    uint32_t *stop, *left, *x;
    uint32_t called;
} countdown;

static void countdown_kernel(const acs_grid *grid, void *const *args)
{
    uint32_t *left = *(uint32_t *const *)args[0], *stop = *(uint32_t *const *)args[1];
    (void)grid;
    *left -= 1;
    *stop = *left == 0;
}

static int countdown_body(acs_context *context, uint32_t iteration, void *user)
{
    static const acs_kernel count = ACS_KERNEL_HOST_INIT("count", countdown_kernel);
    countdown *c = user;
    assert_int_equal(iteration, c->called);
    c->called++;
    assert_true(ACS_LAUNCH_ON(context, &count, 1, 1, 0, ACS_ARGS(c->left, c->stop),
                              ACS_USES(ACS_INOUT(c->left, 4), ACS_OUT(c->stop, 4))) > 0);
    add(context, c->x, 1); /* behind the op that ends the loop: it still runs */
    return 0;
}

static void a_loop_ends_when_its_word_says_so(void **state)
{
    acs_context *context = *state;
    const uint32_t lengths[] = {1, 2, 5, 30, 31, 200};
    for (uint32_t turn = 0; turn < sizeof lengths / sizeof lengths[0]; turn++) {
        uint32_t stop = 7, left = 0, x = 0, want = 0;
        countdown c = {.stop = &stop, .left = &left, .x = &x};
        const acs_loop_params loop = {.size = sizeof loop, .stop = &stop, .most = 60, .body = countdown_body, .user = &c};
        set(context, &stop, 0);
        set(context, &left, lengths[turn]);
        assert_int_equal(acs_loop(context, &loop), ACS_OK);
        add(context, &x, 1000);
        assert_int_equal(acs_sync(context), ACS_OK);
        const uint32_t ran = lengths[turn] < 60 ? lengths[turn] : 60;
        for (uint32_t i = 0; i < ran; i++)
            want = want * 3 + 1;
        assert_int_equal(x, want * 3 + 1000);
        assert_in_range(c.called, ran, ran + 20);
    }
}

/* In iteration 2 the word's writer fails. Iteration 3, whose decision was skipped, forgets that and is decided anew. */
static int clearing_body(acs_context *context, uint32_t iteration, void *user)
{
    countdown *c = user;
    if (iteration == 2)
        assert_true(acs_host(context, failing_function, NULL, 0, ACS_USES(ACS_OUT(c->stop, 4))) > 0);
    if (iteration == 3)
        assert_int_equal(acs_clear(context), ACS_OK);
    return countdown_body(context, iteration, user);
}

static void a_loop_goes_on_after_a_clear_in_its_body(void **state)
{
    acs_context *context = *state;
    uint32_t stop = 0, left = 5, x = 0;
    countdown c = {.stop = &stop, .left = &left, .x = &x};
    const acs_loop_params loop = {.size = sizeof loop, .stop = &stop, .most = 60, .body = clearing_body, .user = &c};
    assert_int_equal(acs_loop(context, &loop), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(left, 0);
    assert_int_equal(stop, 1);
    assert_in_range(c.called, 6, 26); /* all five but the one that was skipped, and some behind the end */
}

static void a_loop_whose_word_is_set_does_not_begin(void **state)
{
    acs_context *context = *state;
    uint32_t stop = 1, left = 9, x = 0, word = 0;
    countdown c = {.stop = &stop, .left = &left, .x = &x};
    const acs_loop_params loop = {.size = sizeof loop, .stop = &stop, .most = 1000, .body = countdown_body, .user = &c};
    assert_int_equal(acs_loop(context, &loop), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(left, 9);
    stop = c.called = 0;
    assert_int_equal(acs_if(context, &word), ACS_OK);
    assert_int_equal(acs_loop(context, &loop), ACS_OK);
    assert_int_equal(acs_end_if(context), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(left, 9);
    assert_in_range(c.called, 1, 20);
}

typedef struct nest {
    uint32_t *stop, *inner_stop, *left, *inner_left, *x, *odd;
} nest;

static int inner_body(acs_context *context, uint32_t iteration, void *user)
{
    nest *n = user;
    countdown c = {.stop = n->inner_stop, .left = n->inner_left, .x = n->x, .called = iteration};
    assert_int_equal(acs_if(context, n->odd), ACS_OK);
    add(context, n->x, 5);
    assert_int_equal(acs_end_if(context), ACS_OK);
    return countdown_body(context, iteration, &c);
}

static int outer_body(acs_context *context, uint32_t iteration, void *user)
{
    nest *n = user;
    countdown c = {.stop = n->stop, .left = n->left, .x = n->x, .called = iteration};
    const acs_loop_params loop = {.size = sizeof loop, .stop = n->inner_stop, .most = 50, .body = inner_body, .user = n};
    set(context, n->inner_stop, 0);
    set(context, n->inner_left, 3);
    set(context, n->odd, iteration % 2);
    assert_int_equal(acs_loop(context, &loop), ACS_OK);
    return countdown_body(context, iteration, &c);
}

static void loops_are_nested(void **state)
{
    acs_context *context = *state;
    uint32_t words[6] = {0, 0, 4, 0, 0, 0}, want = 0;
    nest n = {words, words + 1, words + 2, words + 3, words + 4, words + 5};
    const acs_loop_params loop = {.size = sizeof loop, .stop = n.stop, .most = 50, .body = outer_body, .user = &n};
    assert_int_equal(acs_loop(context, &loop), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = 0; k < 3; k++)
            want = (i % 2 ? want * 3 + 5 : want) * 3 + 1;
        want = want * 3 + 1;
    }
    assert_int_equal(*n.x, want);
}

static int open_body(acs_context *context, uint32_t iteration, void *user)
{
    (void)iteration;
    return acs_if(context, user) == ACS_OK ? 0 : 1;
}

static void a_body_may_not_leave_sections_open(void **state)
{
    acs_context *context = *state;
    uint32_t stop = 0;
    const acs_loop_params loop = {.size = sizeof loop, .stop = &stop, .most = 5, .body = open_body, .user = &stop};
    assert_int_equal(acs_loop(context, &loop), ACS_ERR_STATE);
    assert_int_equal(acs_end_if(context), ACS_ERR_STATE);
}

/* A thread that closes contexts with open sections, again and again, can go on with others. */
static void sections_end_with_their_context(void **state)
{
    uint32_t word = 1;
    (void)state;
    for (int i = 0; i < 50; i++) {
        acs_context *other = open_on(ACS_BACKEND_SIM, 1);
        assert_int_equal(acs_if(other, &word), ACS_OK);
        assert_int_equal(acs_if(other, &word), ACS_OK);
        add(other, &word, 1);
        assert_int_equal(acs_close(other), ACS_OK);
    }
    acs_context *last = open_on(ACS_BACKEND_SIM, 1);
    assert_int_equal(acs_end_if(last), ACS_ERR_STATE);
    (void)acs_close(last);
}

/* The time that the simulator predicts for a section of kernels of 100 us, with this word. */
static uint64_t predicted_ns(uint32_t word, int64_t issue)
{
    uint32_t x = 1, at = 0, *words = &at;
    acs_context *context = NULL;
    acs_options options;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    options.sim_order = ACS_SIM_ORDER_TIME;
    options.sim_kernel_us = 100;
    options.issue = issue;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    set(context, words, word);
    assert_int_equal(acs_if(context, words), ACS_OK);
    for (int i = 0; i < MANY; i++)
        add(context, &x, 1);
    assert_int_equal(acs_end_if(context), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(stats(context).not_run, word ? 0 : MANY);
    const uint64_t ns = acs_sim_backend_now(context->backend);
    assert_int_equal(acs_close(context), ACS_OK);
    return ns;
}

static void kernels_that_do_not_run_take_little_predicted_time(void **state)
{
    static const int64_t issues[] = {ACS_ISSUE_LAUNCH, ACS_ISSUE_REPLAY};
    (void)state;
    for (size_t i = 0; i < sizeof issues / sizeof *issues; i++) {
        assert_true(predicted_ns(1, issues[i]) > UINT64_C(100000) * MANY);
        assert_true(predicted_ns(0, issues[i]) < UINT64_C(30000) * MANY);
    }
}

#define EVERYWHERE(test) SIM(test), HOST(test), INLINE(test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVERYWHERE(a_grid_is_read_when_the_launch_may_run),
        EVERYWHERE(a_grid_above_its_maximum_is_an_error_and_no_overrun),
        EVERYWHERE(bad_words_are_refused),
        EVERYWHERE(bad_loops_are_refused),
        EVERYWHERE(one_branch_runs_and_is_decided_once),
        EVERYWHERE(sections_are_nested),
        EVERYWHERE(a_section_may_be_long),
        EVERYWHERE(decided_ops_recur),
        EVERYWHERE(a_failed_word_skips_the_section),
        EVERYWHERE(an_open_section_is_decided_anew_after_a_clear),
        EVERYWHERE(a_failure_in_a_nested_section_reaches_nothing_else),
        EVERYWHERE(a_loop_goes_on_after_a_clear_in_its_body),
        EVERYWHERE(a_loop_ends_when_its_word_says_so),
        EVERYWHERE(a_loop_whose_word_is_set_does_not_begin),
        EVERYWHERE(loops_are_nested),
        EVERYWHERE(a_body_may_not_leave_sections_open),
        cmocka_unit_test(sections_end_with_their_context),
        cmocka_unit_test(kernels_that_do_not_run_take_little_predicted_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

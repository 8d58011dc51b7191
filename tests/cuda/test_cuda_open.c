/*
 * What opening a context asks of the driver: little. Streams and device code come when the program needs them. Over the
 * twin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acs.h"
#include "base/tuning.h"
#include "twin.h"

enum { WORDS = 8 };

static CUkernel g_kernel;

static void add_body(void *const *args)
{
    ++**(uint64_t *const *)args[0];
}

static int reset(void **state)
{
    static const uint32_t bytes[] = {8};
    const twin_kernel_spec spec = {.name = "add", .body = add_body, .param_count = 1, .param_bytes = bytes};
    (void)state;
    twin_reset();
    twin_set_strategy(TWIN_EAGER);
    g_kernel = twin_kernel(&spec);
    return 0;
}

static acs_context *open_with(int64_t issue, int64_t workers)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_CUDA;
    options.issue = issue;
    options.workers = workers;
    options.repeats = ACS_REPEATS_NAMED; /* a replay would open the code at once */
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

static void launch(acs_context *context, uint64_t *word)
{
    const acs_kernel kernel = {"add", (const void *)g_kernel, NULL, ACS_KERNEL_HANDLE, 0};
    const acs_arg arg = {&word, sizeof word, ACS_ARG_POINTER};
    const uint64_t at = (uint64_t)(uintptr_t)word;
    const acs_segment segment = acs_make_segment(ACS_EXTENT_BYTES, ACS_UPDATE, at, sizeof *word, 1, 0);
    const acs_launch_params params = {.size = sizeof params, .kernel = &kernel, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                      .args = {&arg, 1}, .uses = {.segments = &segment, .count = 1}};
    assert_int_not_equal(acs_launch(context, &params), 0);
}

static bool has_code(void)
{
    return twin_count("cuLibraryLoadData") > 0;
}

static void opening_makes_one_stream_and_no_memory(void **state)
{
    (void)state;
    acs_context *context = open_with(ACS_ISSUE_AUTO, 1);
    assert_int_equal(twin_count("cuStreamCreate"), 1);
    assert_int_equal(twin_count("cuMemHostAlloc") + twin_count("cuMemAlloc") + twin_count("cuEventCreate"), 0);
    assert_false(has_code());
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(twin_count("cuStreamDestroy"), 1);
    assert_null(twin_breach());
}

/* A chain needs one slot, and no code. Behind a small copy code comes after as many ops as a bundle holds. */
static void code_is_opened_once_many_ops_follow_a_small_copy(void **state)
{
    (void)state;
    for (int64_t workers = 0; workers < 2; workers++) {
        (void)reset(NULL);
        acs_context *context = open_with(ACS_ISSUE_AUTO, workers);
        void *memory = NULL;
        uint32_t ops = 0;
        assert_int_equal(acs_malloc(context, WORDS * sizeof(uint64_t), ACS_MEMORY_HOST, &memory), ACS_OK);
        uint64_t *word = memory;
        *word = 0;
        for (; ops < 5 * TUNE_BUNDLE_MOST - 2; ops++) {
            launch(context, word);
            assert_int_equal(acs_sync(context), ACS_OK);
            if (ops == 4 * TUNE_BUNDLE_MOST - 1) {
                assert_int_equal(twin_count("cuStreamCreate"), 1);
                assert_int_not_equal(acs_memset(context, word + 1, 0, sizeof *word), 0);
            }
        }
        assert_false(has_code());
        for (; !has_code(); ops++) { /* with a worker a thread opens it, soon */
            launch(context, word);
            assert_int_equal(acs_sync(context), ACS_OK);
        }
        for (int i = 0; i < 2000; i++, ops++)
            launch(context, word);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(*word, ops);
        assert_int_not_equal(acs_free(context, memory), 0);
        assert_int_equal(acs_close(context), ACS_OK);
        assert_null(twin_breach());
    }
}

static void method_that_is_asked_for_is_there_from_the_first_op(void **state)
{
    (void)state;
    acs_context *context = open_with(ACS_ISSUE_REPLAY, 1);
    assert_true(has_code());
    assert_int_equal(acs_close(context), ACS_OK);
    (void)reset(NULL);
    context = open_with(ACS_ISSUE_LAUNCH, 1);
    assert_false(has_code());
    assert_int_equal(acs_close(context), ACS_OK);
    assert_null(twin_breach());
}

/* Closed at any moment of the opening. */
static void closing_waits_for_code_that_is_being_opened(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        (void)reset(NULL);
        acs_context *context = open_with(ACS_ISSUE_AUTO, 1);
        void *memory = NULL;
        assert_int_equal(acs_malloc(context, WORDS * sizeof(uint64_t), ACS_MEMORY_HOST, &memory), ACS_OK);
        assert_int_not_equal(acs_memset(context, memory, 0, sizeof(uint64_t)), 0);
        for (int i = 0; i < (int)TUNE_BUNDLE_MOST + round; i++)
            launch(context, (uint64_t *)memory + i % WORDS);
        assert_int_equal(acs_close(context), ACS_OK);
        assert_null(twin_breach());
    }
}

/* Slots that cannot have a stream of their own share the first one. */
static void slots_without_a_stream_share_one(void **state)
{
    (void)state;
    acs_context *context = open_with(ACS_ISSUE_LAUNCH, 0);
    void *memory = NULL;
    assert_int_equal(acs_malloc(context, WORDS * sizeof(uint64_t), ACS_MEMORY_HOST, &memory), ACS_OK);
    uint64_t *word = memory;
    for (int i = 0; i < WORDS; i++)
        word[i] = 0;
    twin_fail("cuStreamCreate", CUDA_ERROR_OUT_OF_MEMORY, 0, UINT64_MAX);
    for (int i = 0; i < 100; i++)
        launch(context, &word[i % WORDS]);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_true(twin_count("cuStreamCreate") > 1);
    for (int i = 0; i < WORDS; i++)
        assert_int_equal(word[i], (99 - i) / WORDS + 1);
    assert_int_not_equal(acs_free(context, memory), 0);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_null(twin_breach());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(opening_makes_one_stream_and_no_memory, reset),
        cmocka_unit_test_setup(code_is_opened_once_many_ops_follow_a_small_copy, reset),
        cmocka_unit_test_setup(method_that_is_asked_for_is_there_from_the_first_op, reset),
        cmocka_unit_test_setup(closing_waits_for_code_that_is_being_opened, reset),
        cmocka_unit_test_setup(slots_without_a_stream_share_one, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

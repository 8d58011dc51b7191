/*
 * Every operation of acs_blas in every form, run on the CPU by its prepared call: the result against definitions, what is
 * read and written element by element, and the footprint byte by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "blas_reference.h"

static int run_on_host(const acs_call_params *params)
{
    acs_call_env env = {.device = -1};
    return params->function(&env, (void *)(uintptr_t)params->closure);
}

/* Marks the arena's bytes that a segment of this access names. */
static void add_segment(unsigned char *named, const blas_arena *arena, const acs_segment *s)
{
    const uint64_t base = (uint64_t)(uintptr_t)arena->bytes;
    for (uint64_t row = 0; row < s->rows; row++)
        for (uint64_t byte = 0; byte < s->row_bytes; byte++) {
            uint64_t at = s->base + row * s->pitch_bytes + byte - base;
            assert_true(at < sizeof arena->bytes);
            named[at] |= (unsigned char)((s->access & ACS_READ ? CASE_NAMED_IN : 0) |
                                         (s->access & ACS_WRITE ? CASE_NAMED_OUT : 0));
        }
}

/* The footprint names exactly the bytes of the operands' rectangles, with the access that each needs. */
static void footprint_is_exact(const blas_arena *arena, const acs_blas_call *call, bool info)
{
    unsigned char named[sizeof arena->bytes] = {0};
    const size_t size = case_size(&arena->what);
    size_t count = call->params.uses.count;

    if (info) {
        assert_ptr_equal((void *)(uintptr_t)call->segments[--count].base, &arena->info);
        assert_int_equal(call->segments[count].access, ACS_WRITE);
        assert_int_equal(call->segments[count].row_bytes * call->segments[count].rows, sizeof(int));
    }
    for (size_t i = 0; i < count; i++)
        add_segment(named, arena, &call->params.uses.segments[i]);
    for (size_t byte = 0; byte < CASE_ELEMENTS * size; byte++)
        if (named[byte] != (arena->purpose[byte / size] & (CASE_NAMED_IN | CASE_NAMED_OUT)))
            fail_msg("%s: the footprint says %d of byte %zu, it must say %d", case_name(&arena->what), named[byte], byte,
                     arena->purpose[byte / size] & (CASE_NAMED_IN | CASE_NAMED_OUT));
}

static void run_case(const blas_case *c, void *user)
{
    static blas_arena before, after;
    acs_blas_call call;
    bool info = case_is_factorization(c) && c->gap;

    (*(int *)user)++;
    case_fill(&before, c);
    after = before;
    assert_int_equal(case_prepare(&call, c, before.bytes, info ? &before.info : NULL), ACS_OK);
    footprint_is_exact(&before, &call, info);
    assert_int_equal(case_prepare(&call, c, after.bytes, info ? &after.info : NULL), ACS_OK);
    assert_int_equal(run_on_host(&call.params), 0);
    assert_true(reference_agrees(&before, &after));
    assert_true(reference_rest_untouched(&before, &after));
    assert_int_equal(after.info, info ? 0 : CASE_INFO_BEFORE);
}

/* Forms times precisions times sizes and variants: none is left out unseen. */
static void every_form_is_right(int operation, int cases)
{
    int count = 0;
    case_each(operation, run_case, &count);
    assert_int_equal(count, cases);
}

static void gemm_is_right(void **state)
{
    (void)state;
    every_form_is_right(CASE_GEMM, 4 * 2 * 32);
}

static void syrk_is_right(void **state)
{
    (void)state;
    every_form_is_right(CASE_SYRK, 4 * 2 * 32);
}

static void trsm_is_right(void **state)
{
    (void)state;
    every_form_is_right(CASE_TRSM, 16 * 2 * 32);
}

static void gemv_is_right(void **state)
{
    (void)state;
    every_form_is_right(CASE_GEMV, 2 * 2 * 32);
}

static void axpy_is_right(void **state)
{
    (void)state;
    every_form_is_right(CASE_AXPY, 1 * 2 * 32);
}

/* Of eight sizes one has no columns and, for getrf, another no rows. */
static void potrf_is_right(void **state)
{
    (void)state;
    every_form_is_right(CASE_POTRF, 2 * 2 * 7 * 2);
}

static void getrf_is_right(void **state)
{
    (void)state;
    every_form_is_right(CASE_GETRF, 1 * 2 * 6 * 2);
}

/* ---------------------------------------------------------------------------------------------- factorizations that fail */

static void a_breakdown_is_told_by_info_alone(void **state)
{
    (void)state;
    double indefinite[9] = {4, 0, 0, 0, -1, 0, 0, 0, 1}, singular[9] = {2, 4, 6, 1, 2, 3, 0, 0, 5};
    int info = CASE_INFO_BEFORE;
    acs_blas_call call;

    assert_int_equal(acs_blas_dpotrf_prepare(&call, ACS_BLAS_LOWER, 3, indefinite, 3, &info), ACS_OK);
    assert_int_equal(run_on_host(&call.params), 0);
    assert_int_equal(info, 2);
    assert_int_equal(acs_blas_dgetrf_nopiv_prepare(&call, 3, 3, singular, 3, &info), ACS_OK);
    assert_int_equal(run_on_host(&call.params), 0);
    assert_int_equal(info, 2);
    /* nothing is divided by the pivot of 0 */
    assert_true(singular[1] == 2 && singular[2] == 3 && singular[4] == 0 && singular[5] == 0);
}

static void nan_is_not_positive_definite(void **state)
{
    (void)state;
    float a[1] = {NAN};
    int info = CASE_INFO_BEFORE;
    acs_blas_call call;

    assert_int_equal(acs_blas_spotrf_prepare(&call, ACS_BLAS_UPPER, 1, a, 1, &info), ACS_OK);
    assert_int_equal(run_on_host(&call.params), 0);
    assert_int_equal(info, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_is_right),
        cmocka_unit_test(syrk_is_right),
        cmocka_unit_test(trsm_is_right),
        cmocka_unit_test(gemv_is_right),
        cmocka_unit_test(axpy_is_right),
        cmocka_unit_test(potrf_is_right),
        cmocka_unit_test(getrf_is_right),
        cmocka_unit_test(a_breakdown_is_told_by_info_alone),
        cmocka_unit_test(nan_is_not_positive_definite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * What acs_blas asks of cuBLAS and cuSOLVER, without a GPU: stand-ins (fake_cuda.h) are found under the libraries' names,
 * execute on the CPU what they are asked for, and watch over streams, workspaces and handles.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "blas_reference.h"
#include "fake_cuda.h"

#include <stdlib.h>

fake_cuda g_fake_cuda;

/* A slot: what ACS gives a call. Two of them take turns. */
typedef struct slot {
    acs_call_env env;
    void *place;
    void (*destroy)(void *);
} slot;

static slot g_slots[2];

static int start(void **state)
{
    (void)state;
    g_fake_cuda = (fake_cuda){.run = acs_blas_host_run, .want_elements = 100};
    for (int i = 0; i < 2; i++) {
        g_slots[i] = (slot){.env = {.stream = &g_slots[i], .slot = i, .scratch = malloc(ACS_BLAS_WORKSPACE_BYTES),
                                    .scratch_bytes = ACS_BLAS_WORKSPACE_BYTES, .place = &g_slots[i].place}};
        assert_non_null(g_slots[i].env.scratch);
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        if (g_slots[i].place)
            g_slots[i].destroy(g_slots[i].place);
        free(g_slots[i].env.scratch);
    }
    assert_int_equal(g_fake_cuda.handles_live, 0);
    return 0;
}

static int issue(slot *s, const acs_call_params *params)
{
    s->destroy = params->place_destroy;
    g_fake_cuda.stream = s->env.stream;
    g_fake_cuda.workspace = s->env.scratch;
    return params->function(&s->env, (void *)(uintptr_t)params->closure);
}

static void run_case(const blas_case *c, void *user)
{
    static blas_arena before, after;
    acs_blas_call call;
    const bool info = case_is_factorization(c) && c->gap;
    const int calls = g_fake_cuda.calls;
    int *const turn = user;

    case_fill(&before, c);
    after = before;
    assert_int_equal(case_prepare(&call, c, after.bytes, info ? &after.info : NULL), ACS_OK);
    assert_int_equal(issue(&g_slots[(*turn)++ % 2], &call.params), 0);
    assert_true(reference_agrees(&before, &after));
    assert_true(reference_rest_untouched(&before, &after));
    assert_int_equal(after.info, info ? 0 : CASE_INFO_BEFORE);
    assert_int_equal(g_fake_cuda.calls - calls, c->m > 0 && c->n > 0); /* empty ops ask for nothing */
    if (g_fake_cuda.broken)
        fail_msg("%s: not kept: %s", case_name(c), g_fake_cuda.broken);
}

static void every_form_is_asked_for_rightly(void **state)
{
    (void)state;
    int turn = 0;
    for (int operation = 0; operation < CASE_OPERATIONS; operation++)
        case_each(operation, run_case, &turn);
    assert_int_equal(g_fake_cuda.handles_made, 4); /* one of each library in each slot, whatever the number of ops */
}

static void failures_of_the_libraries_are_codes(void **state)
{
    (void)state;
    double a[1] = {4}, b[1] = {1};
    char text[200];
    acs_blas_call axpy, potrf;
    assert_int_equal(acs_blas_daxpy_prepare(&axpy, 1, 1, a, 1, b, 1), ACS_OK);
    assert_int_equal(acs_blas_dpotrf_prepare(&potrf, ACS_BLAS_LOWER, 1, a, 1, NULL), ACS_OK);

    g_fake_cuda.fail_with = 13;
    assert_int_equal(issue(&g_slots[0], &axpy.params), 1013);
    (void)acs_blas_code_text(1013, text, sizeof text);
    assert_string_equal(text, "cuBLAS returned cublasStatus_t 13: the fake failed");
    g_fake_cuda.fail_with = 7;
    assert_int_equal(issue(&g_slots[0], &potrf.params), 2007);
    assert_int_equal(issue(&g_slots[0], &potrf.params), 0);
    assert_true(a[0] == 2);
}

static void scratch_that_is_too_small_is_not_used(void **state)
{
    (void)state;
    double a[1] = {4}, b[1] = {1};
    acs_blas_call axpy, potrf;
    assert_int_equal(acs_blas_daxpy_prepare(&axpy, 1, 1, a, 1, b, 1), ACS_OK);
    assert_int_equal(acs_blas_dpotrf_prepare(&potrf, ACS_BLAS_LOWER, 1, a, 1, NULL), ACS_OK);

    g_fake_cuda.want_elements = (int)((ACS_BLAS_WORKSPACE_BYTES - ACS_BLAS_INFO_BYTES) / sizeof(double));
    assert_int_equal(issue(&g_slots[0], &potrf.params), 0);
    g_fake_cuda.want_elements++;
    assert_int_equal(issue(&g_slots[0], &potrf.params), 3);
    g_slots[1].env.scratch_bytes--;
    assert_int_equal(issue(&g_slots[1], &axpy.params), 3);
    assert_true(a[0] == 2 && b[0] == 1);
}

/* Small ops ask for one size, so that a slot's scratch is made once; large factorizations for more. */
static void scratch_grows_with_large_factorizations_alone(void **state)
{
    (void)state;
    double *a = (double *)(uintptr_t)4096; /* never looked at */
    acs_blas_call call;
    assert_int_equal(acs_blas_dgemm_prepare(&call, ACS_BLAS_N, ACS_BLAS_N, 9000, 9000, 9000, 1, a, 9000, a, 9000, 0, a,
                                            9000),
                     ACS_OK);
    assert_int_equal(call.params.scratch_bytes, ACS_BLAS_WORKSPACE_BYTES);
    assert_int_equal(acs_blas_dpotrf_prepare(&call, ACS_BLAS_LOWER, 1400, a, 1400, NULL), ACS_OK);
    assert_int_equal(call.params.scratch_bytes, ACS_BLAS_WORKSPACE_BYTES);
    assert_int_equal(acs_blas_dpotrf_prepare(&call, ACS_BLAS_LOWER, 5000, a, 5000, NULL), ACS_OK);
    assert_true(call.params.scratch_bytes > 2u * 5000 * 5000 * sizeof(double));
}

static void the_libraries_are_found(void **state)
{
    (void)state;
    assert_int_equal(acs_blas_load(), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_libraries_are_found),
        cmocka_unit_test_setup_teardown(every_form_is_asked_for_rightly, start, stop),
        cmocka_unit_test_setup_teardown(failures_of_the_libraries_are_codes, start, stop),
        cmocka_unit_test_setup_teardown(scratch_that_is_too_small_is_not_used, start, stop),
        cmocka_unit_test(scratch_grows_with_large_factorizations_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

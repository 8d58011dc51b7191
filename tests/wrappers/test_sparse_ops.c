/*
 * acs_sparse on the CPU: products against dense ones, footprints, errors, and products that are ops of a context.
 */
#include "host_call.h"

#include "acs_sparse.h"

#include <math.h>

/* 3 x 4: an empty row, and columns out of order. */
static const int g_offsets[4] = {0, 2, 2, 5}, g_indices[5] = {3, 0, 1, 2, 0};
static const double g_values[5] = {2, -1, 4, 0.5, 3};
static const float g_floats[5] = {2, -1, 4, 0.5f, 3};
static const double g_dense[3][4] = {{-1, 0, 0, 2}, {0, 0, 0, 0}, {3, 4, 0.5, 0}};

static acs_sparse_matrix matrix(int precise, int columns_of_b)
{
    acs_sparse_matrix a = {.size = sizeof a, .precise = precise, .rows = 3, .columns = 4, .nonzeros = 5,
                           .row_offsets = g_offsets, .column_indices = g_indices,
                           .values = precise ? (const void *)g_values : g_floats, .columns_of_b = columns_of_b};
    acs_context *const context = host_open();
    assert_int_equal(acs_sparse_prepare(context, &a), ACS_OK);
    assert_int_equal(a.prepared, 1);
    assert_int_equal(acs_close(context), ACS_OK);
    return a;
}

static double dense_element(const double *b, int i)
{
    double sum = 0;
    for (int k = 0; k < 4; k++)
        sum += g_dense[i][k] * b[k];
    return sum;
}

static void vectors_are_right(void **state)
{
    (void)state;
    const acs_sparse_matrix a = matrix(1, 0), f = matrix(0, 0);
    const double x[4] = {1, 2, 4, 8};
    const float xf[4] = {1, 2, 4, 8};
    double y[3] = {1, 2, 3}, z[3] = {NAN, NAN, NAN};
    float zf[3] = {1, 2, 3};
    acs_wrap_call call;
    assert_int_equal(acs_sparse_spmv_prepare(&call, 2, &a, x, -1, y), ACS_OK);
    assert_int_equal(host_run(&call), 0);
    assert_int_equal(acs_sparse_spmv_prepare(&call, 1, &a, x, 0, z), ACS_OK);
    assert_int_equal(host_run(&call), 0);
    assert_int_equal(acs_sparse_spmv_prepare(&call, 1, &f, xf, 1, zf), ACS_OK);
    assert_int_equal(host_run(&call), 0);
    for (int i = 0; i < 3; i++) {
        assert_true(y[i] == 2 * dense_element(x, i) - (i + 1));
        assert_true(z[i] == dense_element(x, i));
        assert_true((double)zf[i] == dense_element(x, i) + i + 1);
    }
}

static void matrices_are_right(void **state)
{
    (void)state;
    const acs_sparse_matrix a = matrix(1, 2);
    const double b[10] = {1, 2, 4, 8, NAN, -1, 3, 5, 7, NAN}; /* ldb 5 */
    double c[8] = {1, 1, 1, 77, 1, 1, 1, 77};                 /* ldc 4 */
    acs_wrap_call call;
    assert_int_equal(acs_sparse_spmm_prepare(&call, 2, 1, &a, b, 5, 0.5, c, 4), ACS_OK);
    assert_int_equal(host_run(&call), 0);
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 4; i++)
            assert_true(c[i + 4 * j] == (i < 3 ? dense_element(b + 5 * j, i) + 0.5 : 77));
}

static void footprints_name_arrays_and_operands(void **state)
{
    (void)state;
    const acs_sparse_matrix a = matrix(0, 2), empty = {.size = sizeof empty, .columns = 4, .row_offsets = g_offsets,
                                                       .prepared = 1};
    float x[16], y[16];
    acs_wrap_call call;
    assert_int_equal(acs_sparse_spmv_prepare(&call, 2, &a, x, 1, y), ACS_OK);
    HOST_USES(&call, ACS_IN(g_offsets, 16), ACS_IN(g_indices, 20), ACS_IN(g_floats, 20), ACS_TILE_IN(x, 16, 1, 16),
              ACS_TILE_INOUT(y, 12, 1, 12));
    assert_int_equal(acs_sparse_spmm_prepare(&call, 2, 2, &a, x, 5, 0, y, 6), ACS_OK);
    HOST_USES(&call, ACS_IN(g_offsets, 16), ACS_IN(g_indices, 20), ACS_IN(g_floats, 20), ACS_TILE_IN(x, 16, 2, 20),
              ACS_TILE_OUT(y, 12, 2, 24));
    assert_int_equal(acs_sparse_spmv_prepare(&call, 2, &empty, x, 1, y), ACS_OK);
    assert_int_equal(call.params.uses.count, 0);
    assert_int_equal(host_run(&call), 0);
}

static void bad_arguments_are_named(void **state)
{
    (void)state;
    acs_sparse_matrix a = matrix(1, 2);
    double x[16], y[16];
    acs_wrap_call call;
    host_refused(acs_sparse_spmv_prepare(&call, 1, &a, NULL, 0, y), "acs_sparse_spmv: x is NULL");
    host_refused(acs_sparse_spmm_prepare(&call, 3, 1, &a, x, 5, 0, y, 6),
                 "acs_sparse_spmm: n is 3; it must be 1 to a.columns_of_b, 2");
    host_refused(acs_sparse_spmm_prepare(&call, 2, 1, &a, x, 3, 0, y, 6),
                 "acs_sparse_spmm: ldb is 3; it must be at least 4");
    a.nonzeros = -1;
    host_refused(acs_sparse_prepare(NULL, &a), "acs_sparse_prepare: a.nonzeros is -1; it must not be negative");
    a.nonzeros = 5;
    host_refused(acs_sparse_spmv_prepare(&call, 1, &a, x, 0, y),
                 "acs_sparse_spmv: a is not prepared; call acs_sparse_prepare before");
}

/* The second product reads what the first one writes. */
static void products_are_ops(void **state)
{
    (void)state;
    acs_context *const context = host_open();
    const acs_sparse_matrix a = matrix(1, 0);
    const double x[4] = {1, 2, 4, 8};
    double y[4] = {0}, z[3] = {0};
    assert_true(acs_sparse_spmv(context, 1, &a, x, 0, y) != 0);
    assert_true(acs_sparse_spmv(context, 1, &a, y, 0, z) != 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    for (int i = 0; i < 3; i++)
        assert_true(z[i] == dense_element(y, i) && y[i] == dense_element(x, i));
    assert_int_equal(acs_close(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_right),        cmocka_unit_test(matrices_are_right),
        cmocka_unit_test(footprints_name_arrays_and_operands), cmocka_unit_test(bad_arguments_are_named),
        cmocka_unit_test(products_are_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

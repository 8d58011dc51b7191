/*
 * acs_blas through contexts: what is refused and how that is told, ops that touch nothing, and a tiled Cholesky whose bits
 * are those of the serial run whatever order its ops are issued in.
 */
#include "unit/api_fixture.h"

#include "tiled_cholesky.h"

#include <stdlib.h>

/* The latest error of the wrapper says `word`, and which function it is about. */
static void assert_blas_error(acs_status status, const char *function, const char *word)
{
    acs_error e = {.size = sizeof e};
    assert_int_equal(acs_blas_last_error(&e), status);
    assert_int_equal(e.status, status);
    if (!strstr(e.text, word) || !strstr(e.text, function) || strcmp(e.where, function) != 0)
        fail_msg("the error '%s' of '%s' does not say '%s' of %s", e.text, e.where, word, function);
}

/* ---------------------------------------------------------------------------------------------------------- refusals */

static double g_a[64], g_b[64], g_c[64];
static int g_info;

/* Expects the call to be refused at once, with these words, and the context to know of it. */
#define REFUSED(function, words, ...)                                                                                  \
    do {                                                                                                               \
        acs_error kept = {.size = sizeof kept};                                                                        \
        assert_int_equal(function(*state, __VA_ARGS__), 0);                                                            \
        assert_blas_error(ACS_ERR_ARGUMENT, #function, words);                                                         \
        assert_int_equal(acs_sync(*state), ACS_ERR_ARGUMENT);                                                          \
        assert_int_equal(acs_context_error(*state, &kept), ACS_ERR_ARGUMENT);                                          \
        assert_string_equal(kept.site.name, #function);                                                                \
        assert_int_equal(acs_clear(*state), ACS_OK);                                                                   \
        acs_blas_call call;                                                                                            \
        assert_int_equal(function##_prepare(&call, __VA_ARGS__), ACS_ERR_ARGUMENT);                                    \
    } while (0)

static const acs_blas_trans g_n = ACS_BLAS_N, g_t = ACS_BLAS_T;
static const acs_blas_uplo g_lower = ACS_BLAS_LOWER;

static void bad_sizes_are_refused(void **state)
{
    REFUSED(acs_blas_dgemm, "m is -1", g_n, g_n, -1, 2, 3, 1, g_a, 4, g_b, 4, 0, g_c, 4);
    REFUSED(acs_blas_dgemm, "n is -2", g_n, g_n, 4, -2, 3, 1, g_a, 4, g_b, 4, 0, g_c, 4);
    REFUSED(acs_blas_dgemm, "k is -3", g_n, g_n, 4, 2, -3, 1, g_a, 4, g_b, 4, 0, g_c, 4);
    REFUSED(acs_blas_dsyrk, "n is -1", g_lower, g_n, -1, 3, 1, g_a, 4, 0, g_c, 4);
    REFUSED(acs_blas_daxpy, "n is -5", -5, 1, g_a, 1, g_b, 1);
    REFUSED(acs_blas_dpotrf, "n is 0; there is nothing to factor", g_lower, 0, g_a, 4, &g_info);
    REFUSED(acs_blas_dgetrf_nopiv, "m is 0; there is nothing to factor", 0, 4, g_a, 4, &g_info);
}

static void bad_distances_are_refused(void **state)
{
    REFUSED(acs_blas_dgemm, "lda is 3; it must be at least 4", g_n, g_n, 4, 2, 3, 1, g_a, 3, g_b, 3, 0, g_c, 4);
    REFUSED(acs_blas_dgemm, "lda is 2; it must be at least 3", g_t, g_n, 4, 2, 3, 1, g_a, 2, g_b, 3, 0, g_c, 4);
    REFUSED(acs_blas_dgemm, "ldb is 2; it must be at least 3", g_n, g_n, 4, 2, 3, 1, g_a, 4, g_b, 2, 0, g_c, 4);
    REFUSED(acs_blas_dgemm, "ldb is 1; it must be at least 2", g_n, g_t, 4, 2, 3, 1, g_a, 4, g_b, 1, 0, g_c, 4);
    REFUSED(acs_blas_dgemm, "ldc is -4; it must be at least 4", g_n, g_n, 4, 2, 3, 1, g_a, 4, g_b, 3, 0, g_c, -4);
    REFUSED(acs_blas_dgemm, "lda is 0; it must be at least 1", g_n, g_n, 0, 2, 3, 1, g_a, 0, g_b, 3, 0, g_c, 4);
    REFUSED(acs_blas_dtrsm, "lda is 3; it must be at least 5", ACS_BLAS_RIGHT, g_lower, g_n, ACS_BLAS_UNIT, 3, 5, 1, g_a, 3,
            g_b, 3);
    REFUSED(acs_blas_dtrsm, "ldb is 2; it must be at least 3", ACS_BLAS_LEFT, g_lower, g_n, ACS_BLAS_UNIT, 3, 5, 1, g_a, 3,
            g_b, 2);
    REFUSED(acs_blas_dgemv, "incx is 0", g_n, 3, 3, 1, g_a, 3, g_b, 0, 0, g_c, 1);
    REFUSED(acs_blas_daxpy, "incy is 0", 3, 1, g_a, 1, g_b, 0);
    REFUSED(acs_blas_dpotrf, "lda is 3; it must be at least 4", g_lower, 4, g_a, 3, NULL);
}

static void bad_choices_are_refused(void **state)
{
    REFUSED(acs_blas_dgemm, "transa is 7; it must be 111 or 112", (acs_blas_trans)7, g_n, 2, 2, 2, 1, g_a, 2, g_b, 2, 0, g_c,
            2);
    REFUSED(acs_blas_dgemm, "transb is 0", g_n, (acs_blas_trans)0, 2, 2, 2, 1, g_a, 2, g_b, 2, 0, g_c, 2);
    REFUSED(acs_blas_dsyrk, "uplo is 111", (acs_blas_uplo)111, g_n, 2, 2, 1, g_a, 2, 0, g_c, 2);
    REFUSED(acs_blas_dsyrk, "trans is 367; it must be", g_lower, (acs_blas_trans)(111 + 256), 2, 2, 1, g_a, 2, 0, g_c, 2);
    REFUSED(acs_blas_dtrsm, "side is 1", (acs_blas_side)1, g_lower, g_n, ACS_BLAS_UNIT, 2, 2, 1, g_a, 2, g_b, 2);
    REFUSED(acs_blas_dtrsm, "diag is 2", ACS_BLAS_LEFT, g_lower, g_n, (acs_blas_diag)2, 2, 2, 1, g_a, 2, g_b, 2);
}

static void null_is_refused_where_bytes_are_touched(void **state)
{
    REFUSED(acs_blas_dgemm, "a is NULL", g_n, g_n, 2, 2, 2, 1, NULL, 2, g_b, 2, 0, g_c, 2);
    REFUSED(acs_blas_dgemm, "b is NULL", g_n, g_n, 2, 2, 2, 1, g_a, 2, NULL, 2, 0, g_c, 2);
    REFUSED(acs_blas_dgemm, "c is NULL", g_n, g_n, 2, 2, 2, 1, g_a, 2, g_b, 2, 0, NULL, 2);
    REFUSED(acs_blas_dgemv, "x is NULL", g_n, 2, 2, 1, g_a, 2, NULL, 1, 0, g_c, 1);
    REFUSED(acs_blas_dgetrf_nopiv, "a is NULL", 2, 2, NULL, 2, NULL);
    assert_int_equal(acs_blas_daxpy_prepare(NULL, 2, 1, g_a, 1, g_b, 1), ACS_ERR_ARGUMENT);
    assert_blas_error(ACS_ERR_ARGUMENT, "acs_blas_daxpy", "call is NULL");
}

/* What the library refuses is told by the wrapper too. */
static void errors_of_the_library_are_passed_on(void **state)
{
    acs_error e = {.size = sizeof e};
    double *end = (double *)(UINTPTR_MAX - 15); /* a vector of four would end behind the address space */
    assert_int_equal(acs_blas_daxpy(*state, 4, 1, g_a, 1, end, 1), 0);
    assert_int_equal(acs_blas_last_error(&e), ACS_ERR_ARGUMENT);
    acs_error of_acs = {.size = sizeof of_acs};
    assert_int_equal(acs_last_error(&of_acs), ACS_ERR_ARGUMENT);
    assert_string_equal(e.text, of_acs.text);
    assert_int_equal(acs_clear(*state), ACS_OK);
}

static void a_shorter_error_struct_is_not_overrun(void **state)
{
    acs_error e;
    const size_t known = offsetof(acs_error, text) + 16;
    memset(&e, 0x5a, sizeof e);
    e.size = known;
    assert_int_equal(acs_blas_daxpy(*state, -1, 1, g_a, 1, g_b, 1), 0);
    assert_int_equal(acs_blas_last_error(&e), ACS_ERR_ARGUMENT);
    assert_int_equal(e.size, known);
    assert_int_equal(strlen(e.text), 15);
    assert_int_equal(e.text[16], 0x5a);
    assert_int_equal(acs_blas_last_error(NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_clear(*state), ACS_OK);
}

static void codes_have_texts(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *word;
    } codes[] = {{2, "handles"}, {3, "scratch"}, {1003, "cublasStatus_t 3"}, {2007, "cusolverStatus_t 7"}, {77, "77 is no"}};
    char text[200], cut[4];
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        const size_t length = acs_blas_code_text(codes[i].code, text, sizeof text);
        assert_int_equal(length, strlen(text));
        assert_non_null(strstr(text, codes[i].word));
        assert_int_equal(acs_blas_code_text(codes[i].code, NULL, 0), length);
        assert_int_equal(acs_blas_code_text(codes[i].code, cut, sizeof cut), length);
        assert_int_equal(strlen(cut), 3);
    }
}

/* ----------------------------------------------------------------------------------------------------------------- ops */

static void empty_ops_touch_nothing(void **state)
{
    const acs_op first = acs_blas_dgemm(*state, g_n, g_n, 0, 4, 4, 1, NULL, 1, NULL, 4, 0, NULL, 1);
    const acs_op second = acs_blas_sgemv(*state, g_n, 4, 0, 1, NULL, 4, NULL, 1, 0, NULL, 1);
    const acs_op third = acs_blas_daxpy(*state, 0, 1, NULL, 1, NULL, -1);
    assert_true(first && second && third);
    assert_int_equal(acs_sync(*state), ACS_OK);
}

static int set_to_five(void *closure)
{
    **(double **)closure = 5;
    return 0;
}

/* A call site in a program: ops of the wrapper follow others by the bytes alone. */
static void ops_follow_what_writes_their_operands(void **state)
{
    double x[2] = {1, 2}, y[2] = {10, 20}, *first = x;
    assert_int_not_equal(acs_host(*state, set_to_five, &first, sizeof first, ACS_USES(ACS_OUT(x, sizeof *x))), 0);
    assert_int_not_equal(acs_blas_daxpy(*state, 2, 2, x, 1, y, 1), 0);
    assert_int_not_equal(acs_blas_daxpy(*state, 2, 1, y, -1, x, 1), 0);
    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_true(y[0] == 20 && y[1] == 24);
    assert_true(x[0] == 29 && x[1] == 22);
}

static void prepared_calls_are_queued_by_acs_call(void **state)
{
    static const acs_site here = {"here", __FILE__, 1};
    double a[4] = {4, 2, 0, 5};
    int info = -1;
    acs_blas_call call;
    assert_int_equal(acs_blas_dpotrf_prepare(&call, g_lower, 2, a, 2, &info), ACS_OK);
    call.params.site = &here;
    assert_int_not_equal(acs_call(*state, &call.params), 0);
    assert_int_equal(acs_wait_range(*state, &info, sizeof info, ACS_READ), ACS_OK);
    assert_int_equal(info, 0);
    assert_true(a[0] == 2 && a[1] == 1 && a[3] == 2);
}

/* --------------------------------------------------------------------------------------------------------- a program */

enum { TILES = 6, TILE = 8, LD = TILES * TILE + 3, BYTES = LD * TILES * TILE * (int)sizeof(double), OPS = 56 };

/* Factors the matrix in a context with these options; the caller frees the result. */
static double *factor(const acs_options *options)
{
    double *matrix = malloc(BYTES);
    const tiled t = {matrix, TILES, TILE, LD};
    acs_context *context = NULL;
    acs_statistics stats = {.size = sizeof stats};

    assert_non_null(matrix);
    memset(matrix, 0, BYTES);
    tiled_fill(&t, matrix);
    assert_int_equal(acs_open(options, &context), ACS_OK);
    assert_int_equal(tiled_queue(context, &t), OPS);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_stats(context, &stats), ACS_OK);
    assert_int_equal(stats.calls, OPS);
    assert_int_equal(acs_close(context), ACS_OK);
    return matrix;
}

static acs_options options_on(int backend)
{
    acs_options options;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = backend;
    return options;
}

static double *factor_serially(void)
{
    acs_options options = options_on(ACS_BACKEND_HOST);
    options.serial = 1;
    return factor(&options);
}

static void the_serial_factor_is_right(void **state)
{
    (void)state;
    double *original = calloc(1, BYTES), *factored = factor_serially();
    const tiled t = {original, TILES, TILE, LD};
    assert_non_null(original);
    tiled_fill(&t, original);
    assert_true(tiled_residual(&t, original, factored) < 1e-11);
    factored[tiled_at(&t, 20, 10)] += 1e-6;
    assert_false(tiled_residual(&t, original, factored) < 1e-11);
    free(original);
    free(factored);
}

static void threads_give_the_bits_of_the_serial_run(void **state)
{
    (void)state;
    double *serial = factor_serially();
    for (int run = 0; run < 40; run++) {
        acs_options options = options_on(ACS_BACKEND_HOST);
        options.streams = 1 + run % 8;
        options.workers = run % 3;
        options.window = run % 2 ? 256 : 16;
        double *parallel = factor(&options);
        assert_memory_equal(serial, parallel, BYTES);
        free(parallel);
    }
    free(serial);
}

/* The sim backend issues in an order of the seed's choice: what the footprints allow, it does. */
static void every_order_gives_the_bits_of_the_serial_run(void **state)
{
    (void)state;
    double *serial = factor_serially();
    for (int seed = 0; seed < 200; seed++) {
        acs_options options = options_on(ACS_BACKEND_SIM);
        options.seed = seed;
        options.workers = 1 + seed % 4;
        double *parallel = factor(&options);
        assert_memory_equal(serial, parallel, BYTES);
        free(parallel);
    }
    free(serial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST(bad_sizes_are_refused),
        HOST(bad_distances_are_refused),
        HOST(bad_choices_are_refused),
        HOST(null_is_refused_where_bytes_are_touched),
        HOST(errors_of_the_library_are_passed_on),
        HOST(a_shorter_error_struct_is_not_overrun),
        cmocka_unit_test(codes_have_texts),
        HOST(empty_ops_touch_nothing),
        HOST(ops_follow_what_writes_their_operands),
        INLINE(prepared_calls_are_queued_by_acs_call),
        cmocka_unit_test(the_serial_factor_is_right),
        cmocka_unit_test(threads_give_the_bits_of_the_serial_run),
        cmocka_unit_test(every_order_gives_the_bits_of_the_serial_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

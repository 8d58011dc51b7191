/*
 * Footprints that are declared once for a kernel: which bytes an op then touches, what is refused, what is counted and
 * logged. On the host backend without threads, and with threads that declare.
 */
#include "declared_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static size_t saxpy_uses(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    ACS_PARAMS(in, (int, n), (float, a), (const float *, x), (float *, y));
    return ACS_SEGMENTS(out, capacity, ACS_IN(x, (size_t)n * sizeof *x), ACS_INOUT(y, ACS_WHOLE));
}

/* Before main, and before any context: as generated headers do. */
__attribute__((constructor)) static void declare_early(void)
{
    (void)acs_declare(&(acs_kernel){.name = "early"}, saxpy_uses, NULL);
}

static void assert_saxpy(const trial *t)
{
    assert_true(reads(t, t->x) && reads(t, (char *)t->x + 3));
    assert_true(leaves(t, t->x + 1));
    assert_true(writes(t, t->y) && writes(t, (char *)t->y + BYTES - 1));
}

/* --------------------------------------------------------------------------------------------------------- identities */

static void a_kernel_is_known_by_function_body_or_name(void **state)
{
    (void)state;
    static char function, handle, elsewhere;
    const struct {
        acs_kernel declared, launched;
        bool known;
    } rows[] = {
        {ACS_KERNEL_HOST_INIT(NULL, saxpy_body), g_saxpy, true},
        {ACS_KERNEL_INIT("f", &function, NULL), {"other", &function, saxpy_body, ACS_KERNEL_HANDLE, 0}, true},
        {ACS_KERNEL_INIT("f", &function, NULL), {"f", &elsewhere, saxpy_body, ACS_KERNEL_HANDLE, 0}, false},
        {ACS_KERNEL_INIT("f", &handle, saxpy_body), g_saxpy, false}, /* by its function alone */
        {{.name = "saxpy"}, g_saxpy, true},
        {{.name = "saxpy2"}, g_saxpy, false},
        {{.name = "_ZN45_GLOBAL__N__4e00d1ad_12_polybench_cu_5b1518fa5saxpyEv"},
         ACS_KERNEL_HOST_INIT("_ZN5saxpyEv", saxpy_body), true},
        {{.name = "_ZN37_INTERNAL_e47546b9_7_task_cu_8a685f575saxpyEv"},
         ACS_KERNEL_HOST_INIT("_ZN5saxpyEv", saxpy_body), true},
        {{.name = "_ZN37_INTERNAL_e47546b9_7_task_cu_8a685f575saxpyEv"},
         ACS_KERNEL_HOST_INIT("_ZN37_INTERNAL_11111111_7_task_cu_222222225saxpyEv", saxpy_body), true},
        {{.name = "__nv_static_23__afcd86ef_4_x_cu__Z1fPi__Z5saxpyv"},
         ACS_KERNEL_HOST_INIT("__nv_static_23__2959f441_4_x_cu__Z1fPi__Z5saxpyv", saxpy_body), true},
        {{.name = "__nv_static_99__afcd86ef_4_x_cu__Z1fPi__Z5saxpyv"}, ACS_KERNEL_HOST_INIT("_Z5saxpyv", saxpy_body), false},
        {{.name = "_ZN99_GLOBAL__N__4e00d1ad5saxpyEv"}, ACS_KERNEL_HOST_INIT("_ZN5saxpyEv", saxpy_body), false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        acs_context *context = open_inline(ACS_CHECK_OFF, ACS_POOL_ON);
        assert_int_equal(acs_declare(&rows[i].declared, saxpy_uses, NULL), ACS_OK);
        const trial t = trial_of(context, &rows[i].launched, ACS_USES_DECLARED);
        if (rows[i].known)
            assert_saxpy(&t);
        else
            assert_true(writes(&t, t.x));
        assert_int_equal(statistics_of(context).undeclared, rows[i].known ? 0 : 1);
        assert_int_equal(acs_declare(&rows[i].declared, NULL, NULL), ACS_OK);
        assert_true(writes(&t, t.x + 5));
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void what_was_declared_before_main_counts(void **state)
{
    (void)state;
    static const acs_kernel early = ACS_KERNEL_HOST_INIT("early", saxpy_body);
    acs_context *context = open_inline(ACS_CHECK_OFF, ACS_POOL_ON);
    const trial t = trial_of(context, &early, ACS_USES_DECLARED);
    assert_saxpy(&t);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* acs_launch_params.stub: a launch has a handle, and the declaration the function that it is of. */
static void a_stub_stands_for_its_handle(void **state)
{
    static char stub, handle;
    const acs_kernel declared = ACS_KERNEL_INIT(NULL, &stub, NULL), by_handle = ACS_KERNEL_INIT(NULL, &handle, NULL);
    const acs_kernel launched = {"k", &handle, nothing_body, ACS_KERNEL_HANDLE, 0};
    acs_launch_params p = good_launch();
    p.kernel = &launched;
    p.stub = &stub;
    p.uses = ACS_USES_DECLARED;
    assert_int_equal(acs_declare(&declared, saxpy_uses, NULL), ACS_OK);
    assert_launch_refused(*state, &p, ACS_ERR_ARGUMENT, "0 arguments were given, its footprint function expects 4");
    p.stub = NULL;
    assert_true(acs_launch(*state, &p) > 0);
    p.stub = &stub;
    assert_int_equal(acs_declare(&by_handle, saxpy_uses, NULL), ACS_OK);
    assert_int_equal(acs_declare(&declared, NULL, NULL), ACS_OK);
    assert_launch_refused(*state, &p, ACS_ERR_ARGUMENT, "0 arguments");
    assert_int_equal(acs_declare(&by_handle, NULL, NULL), ACS_OK);
    assert_true(acs_launch(*state, &p) > 0);
}

static size_t token_of_user(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    return ACS_SEGMENTS(out, capacity, ACS_TOKEN(in->user));
}

static void declaring_again_replaces(void **state)
{
    static const char first = 0, second = 0;
    const acs_kernel *kernel = &g_nothing;
    assert_int_equal(acs_declare(kernel, token_of_user, &first), ACS_OK);
    assert_int_equal(acs_declare(kernel, token_of_user, &second), ACS_OK);
    acs_launch_params p = good_launch();
    p.uses = ACS_USES_DECLARED;
    assert_true(acs_host(*state, failing_function, NULL, 0, ACS_USES(ACS_TOKEN(&first))) > 0);
    assert_int_equal(acs_wait(*state, acs_launch(*state, &p)), ACS_OK);
    assert_true(acs_host(*state, failing_function, NULL, 0, ACS_USES(ACS_TOKEN(&second))) > 0);
    assert_int_equal(acs_wait(*state, acs_launch(*state, &p)), ACS_ERR_SKIPPED);
    assert_int_equal(acs_declare(kernel, NULL, NULL), ACS_OK);
}

static void bad_declarations_are_refused(void **state)
{
    (void)state;
    assert_int_equal(acs_declare(NULL, saxpy_uses, NULL), ACS_ERR_ARGUMENT);
    assert_error(ACS_ERR_ARGUMENT, "NULL");
    assert_int_equal(acs_declare(&(acs_kernel){0}, saxpy_uses, NULL), ACS_ERR_ARGUMENT);
    assert_error(ACS_ERR_ARGUMENT, "no name");
    assert_int_equal(acs_declare(&(acs_kernel){.name = "never declared"}, NULL, NULL), ACS_OK);
}

enum { THREADS = 3, NAMES = 300, LAUNCHES = 30000 };
static char g_names[NAMES][16];
static _Atomic(bool) g_stop, g_mixed;

static size_t pair_uses(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    if ((const char *)in->user < g_names[0] || (const char *)in->user > g_names[NAMES - 1])
        atomic_store(&g_mixed, true);
    return ACS_SEGMENTS(out, capacity, ACS_TOKEN(in->user));
}

static size_t other_pair_uses(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    if (in->user != &g_stop)
        atomic_store(&g_mixed, true);
    return ACS_SEGMENTS(out, capacity, ACS_TOKEN(in->user));
}

/* All kernels once, and then the first again and again. */
static void *declare_all(void *user)
{
    (void)user;
    for (int i = 0; i < NAMES || !atomic_load(&g_stop); i++) {
        const char *name = g_names[i < NAMES ? i : 0];
        const bool other = i % 2;
        (void)acs_declare(&(acs_kernel){.name = name}, other ? other_pair_uses : pair_uses,
                          other ? (const void *)&g_stop : name);
    }
    return NULL;
}

static void launch_named(acs_context *context, int i)
{
    const acs_kernel kernel = ACS_KERNEL_HOST_INIT(g_names[i], nothing_body);
    assert_true(ACS_LAUNCH_ON(context, &kernel, 1, 1, 0, ACS_NO_ARGS) > 0);
}

/* Function and user pointer of a launch are of one declaration, whoever declares meanwhile. */
static void threads_declare_and_launch(void **state)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < NAMES; i++)
        (void)snprintf(g_names[i], sizeof g_names[i], "kernel%d", i);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, declare_all, NULL), 0);
    for (int i = 0; i < LAUNCHES && !atomic_load(&g_mixed); i++)
        launch_named(*state, i % 8 ? 0 : i / 8 % NAMES);
    atomic_store(&g_stop, true);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(atomic_load(&g_mixed));
    const acs_statistics before = statistics_of(*state);
    for (int i = 0; i < NAMES; i++)
        launch_named(*state, i);
    assert_int_equal(statistics_of(*state).undeclared, before.undeclared);
}

/* ---------------------------------------------------------------------------------------------------------- launches */

/* A kernel whose declaration was forgotten is still in the table: the footprint that the launch gives counts. */
static void without_a_declaration_the_given_footprint_counts(void **state)
{
    (void)state;
    const acs_uses given = {NULL, 0, saxpy_uses, NULL, ACS_LOOK_UP};
    for (int forgotten = 0; forgotten < 2; forgotten++) {
        acs_context *context = open_inline(ACS_CHECK_OFF, ACS_POOL_ON);
        if (forgotten) {
            assert_int_equal(acs_declare(&g_saxpy, saxpy_uses, NULL), ACS_OK);
            assert_int_equal(acs_declare(&g_saxpy, NULL, NULL), ACS_OK);
        }
        const trial t = trial_of(context, &g_saxpy, given);
        assert_saxpy(&t);
        assert_int_equal(statistics_of(context).undeclared, 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void a_launch_without_uses_takes_the_declared_ones(void **state)
{
    (void)state;
    acs_context *context = open_inline(ACS_CHECK_OFF, ACS_POOL_ON);
    float *x = (float *)(void *)block_of(context, ACS_MEMORY_HOST, BYTES);
    float *y = (float *)(void *)block_of(context, ACS_MEMORY_HOST, BYTES);
    assert_int_equal(acs_declare(&g_saxpy, saxpy_uses, NULL), ACS_OK);
    x[0] = 2;
    y[0] = 1;
    assert_true(ACS_LAUNCH_ON(context, &g_saxpy, 1, 1, 0, ACS_ARGS(1, 3.0f, x, y)) > 0);
    assert_true(ACS_LAUNCH_WITH(context, ACS_ON(0), &g_saxpy, 1, 1, 0, ACS_ARGS(1, 3.0f, x, y)) > 0);
    assert_int_equal(acs_wait_range(context, y, 4, ACS_READ), ACS_OK);
    assert_true(y[0] == 13);
    const acs_statistics s = statistics_of(context);
    assert_int_equal(s.undeclared + s.unknown_memory, 0);
    assert_int_equal(acs_declare(&g_saxpy, NULL, NULL), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void wrong_arguments_are_refused_before_they_are_read(void **state)
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("wrong", nothing_body);
    float *x = NULL;
    assert_int_equal(acs_declare(&kernel, saxpy_uses, NULL), ACS_OK);
    assert_int_equal(ACS_LAUNCH_ON(*state, &kernel, 1, 1, 0, ACS_ARGS(1, 2.0f, x)), 0);
    assert_error(ACS_ERR_ARGUMENT, "'wrong': 3 arguments were given, its footprint function expects 4");
    assert_int_equal(ACS_LAUNCH_ON(*state, &kernel, 1, 1, 0, ACS_ARGS(1, 2.0, x, x)), 0);
    assert_error(ACS_ERR_ARGUMENT, "'wrong': argument 1 (from 0) is 8 bytes, its footprint function expects 4");
    assert_int_equal(acs_sync(*state), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_clear(*state), ACS_OK);
    assert_int_equal(acs_declare(&kernel, NULL, NULL), ACS_OK);
}

static size_t refusing(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    (void)in, (void)out, (void)capacity;
    return ACS_FOOTPRINT_REFUSED;
}

static size_t many_uses(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    const size_t count = *(const size_t *)in->user;
    for (size_t i = 0; i < count && count <= capacity; i++)
        out[i] = i ? ACS_TOKEN(i) : ACS_ALL_MEMORY_IN;
    return count;
}

static void footprint_functions_refuse_and_grow(void **state)
{
    const size_t many = 5000, huge = SIZE_MAX / 2;
    assert_int_equal(ACS_LAUNCH_ON(*state, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES_FN(refusing, NULL)), 0);
    assert_error(ACS_ERR_ARGUMENT, "refuses the arguments");
    assert_int_equal(acs_host(*state, succeed, NULL, 0, ACS_USES_FN(many_uses, &huge)), 0);
    assert_error(ACS_ERR_ARGUMENT, "segments");
    assert_int_equal(acs_clear(*state), ACS_OK);
    assert_true(acs_host(*state, failing_function, NULL, 0, ACS_USES(ACS_TOKEN(4999))) > 0);
    const acs_op op = ACS_LAUNCH_ON(*state, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES_FN(many_uses, &many));
    assert_int_equal(acs_wait(*state, op), ACS_ERR_SKIPPED);
    assert_int_equal(acs_clear(*state), ACS_OK);
}

static void other_ops_have_no_declaration(void **state)
{
    acs_call_params call = {.size = sizeof call, .uses = ACS_USES_DECLARED};
    assert_int_equal(acs_host(*state, succeed, NULL, 0, ACS_USES_DECLARED), 0);
    assert_error(ACS_ERR_ARGUMENT, "ACS_USES_DECLARED is for kernels");
    assert_int_equal(acs_after_stream(*state, NULL, ACS_USES_DECLARED), 0);
    assert_error(ACS_ERR_ARGUMENT, "ACS_USES_DECLARED is for kernels");
    assert_int_equal(acs_call(*state, &call), 0);
    assert_int_equal(acs_clear(*state), ACS_OK);
}

/* ----------------------------------------------------------------------------------------------------------------- log */

static int count_in(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        count++;
    return count;
}

static void launch_unknown(acs_context *context)
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("mystery", nothing_body);
    static char own[8];
    char *at = own;
    assert_true(ACS_LAUNCH_ON(context, &kernel, 1, 1, 0, ACS_NO_ARGS) > 0);
    assert_true(ACS_LAUNCH_ON(context, &kernel, 1, 1, 0, ACS_ARGS(1, at), ACS_USES(ACS_IN(at, ACS_WHOLE))) > 0);
}

/* Raises the log's level for good, so this test is the last. */
static void what_is_not_known_is_logged_once_for_each_site(void **state)
{
    (void)state;
    static char text[8192];
    acs_options options = host_options();
    acs_context *context = NULL;
    options.log = ACS_LOG_INFO;
    FILE *to = tmpfile();
    const int before = dup(STDERR_FILENO);
    assert_true(to && before >= 0 && dup2(fileno(to), STDERR_FILENO) >= 0);
    acs_status status = acs_open(&options, &context);
    for (int i = 0; i < 3 && status == ACS_OK; i++)
        launch_unknown(context);
    if (status == ACS_OK)
        status = acs_close(context);
    assert_true(dup2(before, STDERR_FILENO) >= 0 && close(before) == 0);
    rewind(to);
    text[fread(text, 1, sizeof text - 1, to)] = 0;
    assert_int_equal(fclose(to), 0);
    assert_int_equal(status, ACS_OK);
    assert_int_equal(count_in(text, "'mystery' at "), 2);
    assert_int_equal(count_in(text, "the kernel has no declared footprint (acs_declare), so it may touch anything"), 1);
    assert_int_equal(count_in(text, "(argument 1), which is not known: it is no memory of acs_malloc, nor registered"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_is_known_by_function_body_or_name),
        cmocka_unit_test(what_was_declared_before_main_counts),
        INLINE(a_stub_stands_for_its_handle),
        INLINE(declaring_again_replaces),
        cmocka_unit_test(bad_declarations_are_refused),
        HOST(threads_declare_and_launch),
        cmocka_unit_test(without_a_declaration_the_given_footprint_counts),
        cmocka_unit_test(a_launch_without_uses_takes_the_declared_ones),
        INLINE(wrong_arguments_are_refused_before_they_are_read),
        INLINE(footprint_functions_refuse_and_grow),
        INLINE(other_ops_have_no_declaration),
        cmocka_unit_test(what_is_not_known_is_logged_once_for_each_site),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

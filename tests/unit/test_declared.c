/*
 * Footprints that are declared once for a kernel, and whole allocations: which bytes an op then touches, as failures tell,
 * which spread to what conflicts with them; what is refused, and what is counted and logged. On the host backend without
 * threads, and in virtual time.
 */
#include "api_fixture.h"
#include "memory_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 1000 };

static void saxpy_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    const int n = *(const int *)args[0];
    const float a = *(const float *)args[1];
    const float *x = *(const float *const *)args[2];
    float *y = *(float *const *)args[3];
    for (int i = 0; i < n; i++)
        y[i] += a * x[i];
}

static const acs_kernel g_saxpy = ACS_KERNEL_HOST_INIT("saxpy", saxpy_body);

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

static acs_context *open_inline(int check, int pool)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    options.check = check;
    options.pool = pool;
    options.rename = pool == ACS_POOL_ON ? -1 : 0;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* What is to be tried: an op of this kernel or kind, with these uses. */
typedef struct trial {
    acs_context *context;
    const acs_kernel *kernel; /* NULL: a host function */
    acs_uses uses;
    float *x, *y;
} trial;

static int succeed(void *closure)
{
    (void)closure;
    return 0;
}

static acs_op queue(const trial *t)
{
    const float *x = t->x;
    float *y = t->y;
    if (!t->kernel)
        return acs_host(t->context, succeed, NULL, 0, t->uses);
    return ACS_LAUNCH_ON(t->context, t->kernel, 1, 1, 0, ACS_ARGS(1, 0.0f, x, y), t->uses);
}

/* Whether the op conflicts with one that touched a byte so: it is then skipped behind that one, which fails. */
static bool conflicts(const trial *t, const void *byte, acs_access access)
{
    const acs_segment segment = ACS_BYTES_(access, byte, 1);
    assert_true(acs_host(t->context, failing_function, NULL, 0, ACS_USES_LIST(&segment, 1)) > 0);
    const acs_op op = queue(t);
    assert_true(op > 0);
    const acs_status status = acs_wait(t->context, op);
    assert_true(status == ACS_OK || status == ACS_ERR_SKIPPED);
    assert_int_equal(acs_clear(t->context), ACS_OK);
    return status == ACS_ERR_SKIPPED;
}

static bool reads(const trial *t, const void *byte)
{
    return conflicts(t, byte, ACS_UPDATE) && !conflicts(t, byte, ACS_READ);
}

static bool writes(const trial *t, const void *byte)
{
    return conflicts(t, byte, ACS_READ);
}

static bool leaves(const trial *t, const void *byte)
{
    return !conflicts(t, byte, ACS_UPDATE);
}

static trial trial_of(acs_context *context, const acs_kernel *kernel, acs_uses uses)
{
    return (trial){context, kernel, uses, (float *)(void *)block_of(context, ACS_MEMORY_DEVICE, BYTES),
                   (float *)(void *)block_of(context, ACS_MEMORY_DEVICE, BYTES)};
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

enum { THREADS = 3, NAMES = 300 };
static char g_names[NAMES][16];
static _Atomic(bool) g_stop, g_mixed;

static size_t pair_uses(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    if ((const char *)in->user < g_names[0] || (const char *)in->user >= g_names[NAMES])
        atomic_store(&g_mixed, true);
    return ACS_SEGMENTS(out, capacity, ACS_TOKEN(in->user));
}

static size_t other_pair_uses(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    if (in->user != &g_stop)
        atomic_store(&g_mixed, true);
    return ACS_SEGMENTS(out, capacity, ACS_TOKEN(in->user));
}

static void *declare_all(void *user)
{
    (void)user;
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < NAMES; i++) {
            const bool other = (round + i) % 2;
            (void)acs_declare(&(acs_kernel){.name = g_names[i]}, other ? other_pair_uses : pair_uses,
                              other ? (const void *)&g_stop : g_names[i]);
        }
    return NULL;
}

/* Function and user pointer of a launch are of one declaration, whoever declares meanwhile. */
static void threads_declare_and_launch(void **state)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < NAMES; i++)
        (void)snprintf(g_names[i], sizeof g_names[i], "kernel%d", i);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, declare_all, NULL), 0);
    for (int i = 0; i < 20 * NAMES; i++) {
        const acs_kernel kernel = ACS_KERNEL_HOST_INIT(g_names[i % NAMES], nothing_body);
        assert_true(ACS_LAUNCH_ON(*state, &kernel, 1, 1, 0, ACS_NO_ARGS) > 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(atomic_load(&g_mixed));
    const acs_statistics before = statistics_of(*state);
    for (int i = 0; i < NAMES; i++) {
        const acs_kernel kernel = ACS_KERNEL_HOST_INIT(g_names[i], nothing_body);
        assert_true(ACS_LAUNCH_ON(*state, &kernel, 1, 1, 0, ACS_NO_ARGS) > 0);
    }
    assert_int_equal(statistics_of(*state).undeclared, before.undeclared);
}

/* ---------------------------------------------------------------------------------------------------------- launches */

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
    assert_error(ACS_ERR_ARGUMENT, "'wrong': argument 2 (from 1) is 8 bytes, its footprint function expects 4");
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

/* ------------------------------------------------------------------------------------------------------------- whole */

static void whole_blocks_from_any_address_in_them(void **state)
{
    (void)state;
    static const struct {
        int kind, pool;
    } rows[] = {{ACS_MEMORY_DEVICE, ACS_POOL_ON},  {ACS_MEMORY_HOST, ACS_POOL_ON},
                {ACS_MEMORY_DEVICE, ACS_POOL_OFF}, {ACS_MEMORY_DEVICE | ACS_RELOCATABLE, ACS_POOL_ON},
                {ACS_MEMORY_DEVICE | ACS_LAZY, ACS_POOL_ON}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        acs_context *context = open_inline(ACS_CHECK_OVERLAP, rows[i].pool);
        unsigned char *before = block_of(context, rows[i].kind, BYTES), *b = block_of(context, rows[i].kind, BYTES);
        unsigned char *behind = block_of(context, rows[i].kind, BYTES);
        const bool lazy = rows[i].kind & ACS_LAZY;
        const trial t = {context, lazy ? &g_saxpy : NULL, ACS_USES(ACS_IN(b + 500, ACS_WHOLE)), (float *)(void *)(b + 500),
                         (float *)(void *)(b + 500)};
        const trial w = {context, &g_saxpy, ACS_USES(ACS_INOUT(b + 996, ACS_WHOLE)), (float *)(void *)b, (float *)(void *)b};
        for (int end = 0; end < 2 && !lazy; end++) {
            assert_true(reads(&t, b + end * (BYTES - 1)));
            assert_true(writes(&w, b + end * (BYTES - 1)));
            assert_true(leaves(&w, end ? behind : before + BYTES - 1));
        }
        if (lazy) { /* a host function cannot be on it, so a fill stands before */
            assert_true(acs_memset(context, b, 0, BYTES) > 0 && queue(&t) > 0 && queue(&w) > 0);
            assert_int_equal(acs_sync(context), ACS_OK);
        }
        assert_int_equal(statistics_of(context).unknown_memory, 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void null_is_nothing_and_freed_memory_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const bool check = i % 2;
        acs_context *context = open_inline(check ? ACS_CHECK_OVERLAP : ACS_CHECK_OFF, i < 2 ? ACS_POOL_ON : ACS_POOL_OFF);
        trial t = {context, NULL, ACS_USES(ACS_INOUT(NULL, ACS_WHOLE), ACS_ESCAPES(NULL)), NULL, NULL};
        unsigned char *b = block_of(context, ACS_MEMORY_DEVICE, BYTES);
        assert_true(leaves(&t, b));
        assert_true(acs_free(context, b) > 0);
        t.uses = ACS_USES(ACS_IN(b + 3, ACS_WHOLE));
        refused(queue(&t), check ? ACS_ERR_CHECK : ACS_ERR_ARGUMENT, "names memory freed by op");
        assert_int_equal(acs_clear(context), ACS_OK);
        assert_int_equal(statistics_of(context).unknown_memory, 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void unknown_memory_is_any_memory(void **state)
{
    (void)state;
    static unsigned char own[100];
    acs_context *context = open_inline(ACS_CHECK_OFF, ACS_POOL_ON);
    unsigned char *b = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    trial t = {context, NULL, ACS_USES(ACS_IN(own, ACS_WHOLE), ACS_IN(own + 5, ACS_WHOLE)), NULL, NULL};
    assert_true(reads(&t, b));
    assert_int_equal(statistics_of(context).unknown_memory, 2); /* reads() queues it twice: ops are counted */
    t.uses = ACS_USES(ACS_OUT(own, ACS_WHOLE));
    assert_true(writes(&t, b));
    assert_int_equal(acs_close(context), ACS_OK);

    context = open_inline(ACS_CHECK_WRITES, ACS_POOL_ON); /* registered memory is known */
    assert_int_equal(acs_check_register(context, own, sizeof own), ACS_OK);
    assert_int_equal(acs_check_register(context, own + 10, 5), ACS_OK);
    b = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    t = (trial){context, NULL, ACS_USES(ACS_INOUT(own + 12, ACS_WHOLE)), NULL, NULL};
    assert_true(leaves(&t, b) && writes(&t, own) && writes(&t, own + 99));
    assert_int_equal(statistics_of(context).unknown_memory, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void memory_of_another_context(void **state)
{
    (void)state;
    for (int check = 0; check < 2; check++) {
        acs_context *context = open_inline(check ? ACS_CHECK_OVERLAP : ACS_CHECK_OFF, ACS_POOL_ON);
        acs_context *other = open_inline(ACS_CHECK_OFF, ACS_POOL_ON);
        unsigned char *b = block_of(other, ACS_MEMORY_DEVICE, BYTES);
        const trial t = {context, NULL, ACS_USES(ACS_INOUT(b + 10, ACS_WHOLE)), NULL, NULL};
        if (check)
            refused(queue(&t), ACS_ERR_CHECK, "names memory of context");
        else
            assert_true(queue(&t) > 0);
        assert_int_equal(statistics_of(context).unknown_memory, 0);
        (void)acs_close(context);
        assert_int_equal(acs_close(other), ACS_OK);
    }
}

static void copies_and_waits_have_sizes(void **state)
{
    unsigned char *b = block_of(*state, ACS_MEMORY_HOST, BYTES);
    assert_int_equal(acs_memset(*state, b, 0, ACS_WHOLE), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_wait_range(*state, b, ACS_WHOLE, ACS_READ), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_clear(*state), ACS_OK);
}

/* A lazy block of a group has a size before it has memory. */
static void groups_know_whole_blocks(void **state)
{
    acs_context *context = *state;
    void *b = NULL;
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    assert_int_equal(acs_malloc(context, BYTES, ACS_MEMORY_DEVICE | ACS_LAZY, &b), ACS_OK);
    assert_true(acs_memset(context, b, 0, BYTES) > 0);
    assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_ARGS(b), ACS_USES(ACS_INOUT((char *)b + 9, ACS_WHOLE))) > 0);
    assert_true(acs_free(context, b) > 0);
    assert_int_equal(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_ARGS(b), ACS_USES(ACS_INOUT(b, ACS_WHOLE))), 0);
    assert_int_equal(acs_group_submit(context, NULL, NULL), ACS_OK);
    assert_int_equal(acs_clear(context), ACS_OK);
}

/* Launches whose footprints are computed recur like others. */
static void passes_know_declared_kernels_and_whole_blocks(void **state)
{
    acs_context *context = *state;
    void *fixed = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    assert_int_equal(acs_declare(&g_nothing, token_of_user, NULL), ACS_OK);
    for (int pass = 0; pass < 20; pass++) {
        assert_int_equal(acs_repeat_begin(context, 1), ACS_OK);
        for (int i = 0; i < 40; i++) {
            assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS) > 0);
            assert_true(ACS_LAUNCH_ON(context, &g_increment, 1, 1, 0, ACS_ARGS(fixed),
                                      ACS_USES(ACS_INOUT(fixed, ACS_WHOLE))) > 0);
        }
        assert_int_equal(acs_repeat_end(context), ACS_OK);
    }
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_true(statistics_of(context).replayed > 500);
    assert_int_equal(acs_declare(&g_nothing, NULL, NULL), ACS_OK);
}

/* ----------------------------------------------------------------------------------------------------------- escapes */

static void keep_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    **(unsigned char ***)args[0] = *(unsigned char **)args[1];
}

/* What a kernel keeps the address of lies at it from then on, whatever renames would do. */
static void escaped_blocks_stay(void **state)
{
    (void)state;
    static const acs_kernel keep = ACS_KERNEL_HOST_INIT("keep", keep_body);
    acs_context *context = open_inline(ACS_CHECK_OFF, ACS_POOL_ON);
    unsigned char *b = block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES);
    unsigned char **table = (unsigned char **)(void *)block_of(context, ACS_MEMORY_DEVICE, 64);
    assert_true(acs_memset(context, b, 1, BYTES) > 0 && acs_memset(context, b, 2, BYTES) > 0);
    assert_int_equal(statistics_of(context).memory_versions, 1);
    assert_true(ACS_LAUNCH_ON(context, &keep, 1, 1, 0, ACS_ARGS(table, b),
                              ACS_USES(ACS_OUT(table, sizeof *table), ACS_ESCAPES(b + 1))) > 0);
    assert_int_equal(statistics_of(context).memory_homed, 1);
    assert_true(acs_memset(context, b, 3, BYTES) > 0);
    assert_int_equal(statistics_of(context).memory_versions, 1);
    assert_int_equal(acs_wait_range(context, table, 8, ACS_READ), ACS_OK);
    assert_ptr_equal(*table, b);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal((*table)[BYTES - 1], 3);

    unsigned char *lazy = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
    refused(ACS_LAUNCH_ON(context, &keep, 1, 1, 0, ACS_ARGS(table, lazy), ACS_USES(ACS_ESCAPES(lazy))), ACS_ERR_UNSUPPORTED,
            "ACS_LAZY");
    (void)acs_close(context);
}

static void follow_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    unsigned char *const *table = *(unsigned char *const **)args[0];
    **(unsigned char **)args[1] = table[0][BYTES - 1];
}

/*
 * An op that may touch anything finds what a table leads to at its address: contents of blocks that move come home for it.
 * With the table's targets named it need not be ordered with everything.
 */
static void tables_of_pointers(void **state)
{
    (void)state;
    static const acs_kernel follow = ACS_KERNEL_HOST_INIT("follow", follow_body);
    for (int way = 0; way < 3; way++) {
        acs_context *context = open_inline(ACS_CHECK_OFF, ACS_POOL_ON);
        unsigned char *b = block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES);
        unsigned char *to = block_of(context, ACS_MEMORY_HOST, 1), *host[1] = {b};
        unsigned char *table = block_of(context, ACS_MEMORY_DEVICE, sizeof host);
        assert_true(acs_memcpy(context, table, host, sizeof host) > 0);
        assert_true(acs_memset(context, b, 1, BYTES) > 0 && acs_memset(context, b, 2, BYTES) > 0);
        const acs_segment named[] = {ACS_IN(table, ACS_WHOLE), ACS_IN(b, ACS_WHOLE), ACS_OUT(to, 1)};
        const acs_segment all[] = {ACS_ALL_MEMORY_IN, ACS_OUT(to, 1)};
        const acs_uses uses[] = {ACS_USES_ANY, ACS_USES_LIST(named, 3), ACS_USES_LIST(all, 2)};
        assert_true(ACS_LAUNCH_ON(context, &follow, 1, 1, 0, ACS_ARGS(table, to), uses[way]) > 0);
        assert_int_equal(statistics_of(context).memory_homed, 1);
        assert_true(acs_memset(context, b, 3, BYTES) > 0);
        assert_int_equal(acs_wait_range(context, to, 1, ACS_READ), ACS_OK);
        assert_int_equal(*to, 2);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(acs_close(context), ACS_OK);
    }
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
        cmocka_unit_test(a_launch_without_uses_takes_the_declared_ones),
        INLINE(wrong_arguments_are_refused_before_they_are_read),
        INLINE(footprint_functions_refuse_and_grow),
        INLINE(other_ops_have_no_declaration),
        cmocka_unit_test(whole_blocks_from_any_address_in_them),
        cmocka_unit_test(null_is_nothing_and_freed_memory_is_refused),
        cmocka_unit_test(unknown_memory_is_any_memory),
        cmocka_unit_test(memory_of_another_context),
        INLINE(copies_and_waits_have_sizes),
        SIM(groups_know_whole_blocks),
        SIM(passes_know_declared_kernels_and_whole_blocks),
        cmocka_unit_test(escaped_blocks_stay),
        cmocka_unit_test(tables_of_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

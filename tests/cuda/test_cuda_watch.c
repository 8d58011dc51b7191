/*
 * Unit tests of backend/cuda_watch: what is learnt of how long kernels take, from looks at the right time and from late
 * ones. No driver is called; the state that a device would have is made here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda/graphs/graphs.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2, OPS = 4, TYPE = 1 };

static acs_cuda *g_device;
static acs_batch g_batch;
static acs_record g_records[OPS];
static acs_cuda_type *g_type;

static int setup(void **state)
{
    (void)state;
    g_device = calloc(1, sizeof *g_device);
    acs_cuda_methods *v = calloc(1, sizeof *v);
    g_type = calloc(1, sizeof *g_type);
    assert_true(g_device && v && g_type);
    g_device->slots = SLOTS;
    g_device->methods = v;
    assert_int_equal(acs_lock_init(&v->lock, ACS_RANK_BACKEND), 0);
    v->words = calloc(SLOTS, sizeof *v->words);
    v->known = calloc(SLOTS, sizeof *v->known);
    v->watches = calloc(SLOTS, sizeof *v->watches);
    assert_true(v->words && v->known && v->watches);
    atomic_store(&v->types[TYPE], g_type);
    memset(&g_batch, 0, sizeof g_batch);
    g_batch.bundle = true;
    g_batch.items_used = OPS;
    for (uint32_t i = 0; i < OPS; i++) {
        g_records[i].type = TYPE;
        g_batch.items[i].op = &g_records[i];
        g_batch.items[i].value = 1 + i;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    acs_cuda_methods *v = g_device->methods;
    acs_lock_fini(&v->lock);
    free(v->words);
    free(v->known);
    free(v->watches);
    free(g_type);
    free(v);
    free(g_device);
    return 0;
}

static acs_cuda_times *watch(void)
{
    return &g_device->methods->watches[0];
}

static void begin(uint64_t value, uint64_t others_ns)
{
    const acs_cuda_issued issued = {.value = value, .levels = 1, .others_ns = others_ns};
    acs_cuda_times_begin(g_device, &g_batch, &issued);
}

static uint32_t known(void)
{
    return atomic_load(&g_type->kernel_ns);
}

/* Into an idle slot, and seen to be over by a look that comes right behind another one. */
static void bundle_that_is_looked_at_in_time_is_learnt_from(void **state)
{
    (void)state;
    for (int i = 0; i < 1000 && !known(); i++) { /* this thread may lose its CPU between the two looks */
        begin(OPS, 0);
        assert_true(atomic_load(&watch()->on));
        acs_cuda_times_look(g_device, 0, 0);
        acs_cuda_times_look(g_device, 0, OPS);
        assert_false(atomic_load(&watch()->on));
    }
    assert_true(known() > 0);
}

/* A thread that was busy elsewhere meanwhile cannot tell when it ended. */
static void end_that_is_seen_late_is_not_believed(void **state)
{
    (void)state;
    begin(OPS, 0);
    watch()->began_ns = 1;
    watch()->looked_ns = 1;
    acs_cuda_times_look(g_device, 0, OPS);
    assert_int_equal(known(), 0);
    assert_false(atomic_load(&watch()->on)); /* and the next one can be watched */
}

static void beginning_that_is_seen_late_is_not_believed(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < OPS; i++)
        g_batch.items[i].value = 11 + i; /* behind ops that are not complete */
    begin(10 + OPS, 0);
    assert_int_equal(watch()->began_ns, 0);
    watch()->looked_ns = 1;
    acs_cuda_times_look(g_device, 0, 10);
    assert_false(atomic_load(&watch()->on));
    acs_cuda_times_look(g_device, 0, 10 + OPS);
    assert_int_equal(known(), 0);
}

/* Many kernels that take no time, in bundles beside each other: each bundle takes as long as all. */
static void bundle_that_took_the_time_of_others_is_not_learnt_from(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        begin(OPS, UINT64_MAX);
        watch()->began_ns = 1;
        watch()->looked_ns = acs_clock_ns();
        acs_cuda_times_look(g_device, 0, OPS);
        assert_false(atomic_load(&watch()->on)); /* and the next one can be watched */
    }
    assert_int_equal(known(), 0);
}

/* Ten seconds, once: a kernel is called long only when that was seen again and again. */
static void one_very_long_time_makes_no_long_kernel(void **state)
{
    (void)state;
    for (int i = 0; i < 1000 && !known(); i++) {
        begin(OPS, 0);
        watch()->began_ns = 1;
        acs_cuda_times_look(g_device, 0, OPS);
    }
    assert_in_range(known(), 1, 10000);
}

static void doubt_takes_a_little_off_each_time(void **state)
{
    (void)state;
    atomic_store(&g_type->kernel_ns, 1000000);
    acs_cuda_times_doubt(g_device, &g_batch);
    assert_in_range(known(), 900000, 999999);
}

/* Their bundle took long, they did not. */
static void of_small_copies_nothing_is_learnt(void **state)
{
    (void)state;
    g_type->brief = true;
    for (int i = 0; i < 100; i++) {
        begin(OPS, 0);
        watch()->began_ns = 1;
        acs_cuda_times_look(g_device, 0, OPS);
        assert_false(atomic_load(&watch()->on));
    }
    assert_int_equal(known(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bundle_that_is_looked_at_in_time_is_learnt_from, setup, teardown),
        cmocka_unit_test_setup_teardown(end_that_is_seen_late_is_not_believed, setup, teardown),
        cmocka_unit_test_setup_teardown(beginning_that_is_seen_late_is_not_believed, setup, teardown),
        cmocka_unit_test_setup_teardown(bundle_that_took_the_time_of_others_is_not_learnt_from, setup, teardown),
        cmocka_unit_test_setup_teardown(one_very_long_time_makes_no_long_kernel, setup, teardown),
        cmocka_unit_test_setup_teardown(of_small_copies_nothing_is_learnt, setup, teardown),
        cmocka_unit_test_setup_teardown(doubt_takes_a_little_off_each_time, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

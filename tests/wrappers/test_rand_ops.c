/*
 * acs_rand on the CPU: footprints, errors, positions, and the numbers: those of cuRAND's host generator, which needs no
 * GPU, where the library is there; without it known ones.
 */
#include "host_call.h"

#include "acs_rand.h"

#include <math.h>

#if TEST_HAVE_CURAND
#include <curand.h>
#include <dlfcn.h>
#endif

enum { MANY = 600000, SEVERAL = 1000 };

static const uint64_t g_seed = 0x123456789abcdef;
static uint32_t g_bits[MANY];
static double g_wide[MANY];

static void make(acs_rand_generator *g, uint32_t *out, size_t count)
{
    acs_wrap_call call;
    assert_int_equal(acs_rand_bits_prepare(&call, g, out, count), ACS_OK);
    assert_int_equal(host_run(&call), 0);
}

/* The test vector of Random123 for a counter and a key of zeros. */
static void the_generator_is_philox(void **state)
{
    (void)state;
    const uint32_t wanted[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    acs_rand_generator g = acs_rand_begin(0);
    make(&g, g_bits, 4);
    assert_memory_equal(g_bits, wanted, sizeof wanted);
}

static void parts_are_the_whole(void **state)
{
    (void)state;
    static uint32_t parts[SEVERAL];
    acs_rand_generator whole = acs_rand_begin(g_seed), g = acs_rand_begin(g_seed);
    make(&whole, g_bits, SEVERAL);
    for (size_t at = 0, count = 1; at < SEVERAL; at += count, count = count % 7 + 1) {
        count = at + count > SEVERAL ? SEVERAL - at : count;
        make(&g, parts + at, count);
        assert_int_equal(g.position, at + count);
    }
    assert_memory_equal(parts, g_bits, sizeof parts);
}

static void normal_numbers_have_mean_and_deviation(void **state)
{
    (void)state;
    acs_rand_generator g = acs_rand_begin(g_seed);
    acs_wrap_call call;
    double sum = 0, squares = 0;
    assert_int_equal(acs_rand_normal_double_prepare(&call, &g, g_wide, MANY, 3, 2), ACS_OK);
    assert_int_equal(host_run(&call), 0);
    for (int i = 0; i < MANY; i++)
        sum += g_wide[i];
    for (int i = 0; i < MANY; i++)
        squares += (g_wide[i] - sum / MANY) * (g_wide[i] - sum / MANY);
    assert_true(fabs(sum / MANY - 3) < 0.02);
    assert_true(fabs(sqrt(squares / MANY) - 2) < 0.02);
}

static void footprints_are_the_numbers(void **state)
{
    (void)state;
    acs_rand_generator g = acs_rand_begin(1);
    acs_wrap_call call;
    assert_int_equal(acs_rand_bits_prepare(&call, &g, g_bits, 7), ACS_OK);
    HOST_USES(&call, ACS_OUT(g_bits, 7 * 4));
    assert_int_equal(acs_rand_uniform_double_prepare(&call, &g, g_wide, 7), ACS_OK);
    HOST_USES(&call, ACS_OUT(g_wide, 7 * 8));
    assert_int_equal(acs_rand_normal_prepare(&call, &g, (float *)g_wide, 8, 0, 1), ACS_OK);
    HOST_USES(&call, ACS_OUT(g_wide, 8 * 4));
    assert_int_equal(acs_rand_uniform_prepare(&call, &g, NULL, 0), ACS_OK);
    assert_int_equal(call.params.uses.count, 0);
    assert_int_equal(host_run(&call), 0);
    assert_int_equal(g.position, 3 * 262144 + 8);
    assert_int_equal(acs_rand_uniform_double_prepare(&call, &g, NULL, 0), ACS_OK);
    assert_int_equal(g.position, 3 * 262144 + 8);
    g.position++; /* odd */
    assert_int_equal(acs_rand_normal_prepare(&call, &g, NULL, 0, 0, 1), ACS_OK);
    assert_int_equal(g.position, 3 * 262144 + 9);
}

/* Doubles begin with a pass of their own behind other numbers, which begin with the next one behind doubles. */
static void widths_do_not_share_a_pass(void **state)
{
    (void)state;
    acs_rand_generator g = acs_rand_begin(1);
    acs_wrap_call call;
    assert_int_equal(acs_rand_bits_prepare(&call, &g, g_bits, 262144 + 1), ACS_OK);
    assert_int_equal(g.position, 262144 + 1);
    assert_int_equal(acs_rand_uniform_double_prepare(&call, &g, g_wide, 262144 + 2), ACS_OK);
    assert_int_equal(g.position, 4 * 262144 + 2);
    assert_int_equal(acs_rand_uniform_double_prepare(&call, &g, g_wide, 262142), ACS_OK);
    assert_int_equal(g.position, 6 * 262144);
    assert_int_equal(acs_rand_uniform_prepare(&call, &g, (float *)g_wide, 2), ACS_OK);
    assert_int_equal(g.position, 6 * 262144 + 2);
}

static void bad_arguments_leave_the_position(void **state)
{
    (void)state;
    acs_rand_generator g = acs_rand_begin(1);
    acs_wrap_call call;
    host_refused(acs_rand_uniform_prepare(&call, &g, NULL, 1), "acs_rand_uniform: out is NULL");
    host_refused(acs_rand_normal_prepare(&call, &g, (float *)g_wide, 3, 0, 1),
                 "acs_rand_normal: count is 3; it must be even");
    host_refused(acs_rand_bits_prepare(&call, &g, (uint32_t *)((char *)g_bits + 2), 1),
                 "acs_rand_bits: out is not aligned to 4 bytes");
    host_refused(acs_rand_bits_prepare(&call, NULL, g_bits, 1), "acs_rand_bits: generator is NULL");
    g.position = 5;
    g.wide = 1;
    host_refused(acs_rand_normal_double_prepare(&call, &g, g_wide, 2, 0, 1),
                 "acs_rand_normal_double: the generator's position is 5; it must be even");
    assert_int_equal(g.position, 5);
}

/* Two ops of one generator, and one refused between them. */
static void ops_of_a_generator_follow_its_position(void **state)
{
    (void)state;
    acs_context *const context = host_open();
    acs_rand_generator g = acs_rand_begin(g_seed), whole = acs_rand_begin(g_seed);
    static uint32_t parts[SEVERAL];
    assert_true(acs_rand_bits(context, &g, parts, SEVERAL / 2) != 0);
    assert_true(acs_rand_bits(context, &g, NULL, SEVERAL / 2) == 0);
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_true(acs_rand_bits(context, &g, parts + SEVERAL / 2, SEVERAL / 2) != 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    make(&whole, g_bits, SEVERAL);
    assert_memory_equal(parts, g_bits, sizeof parts);
}

#if TEST_HAVE_CURAND
static double g_other[MANY];
static __typeof__(&curandCreateGeneratorHost) g_create;
static __typeof__(&curandSetPseudoRandomGeneratorSeed) g_set_seed;
static __typeof__(&curandSetGeneratorOffset) g_set_offset;
static __typeof__(&curandDestroyGenerator) g_destroy;
static __typeof__(&curandGenerate) g_generate;
static __typeof__(&curandGenerateUniform) g_uniform;
static __typeof__(&curandGenerateUniformDouble) g_uniform_double;
static __typeof__(&curandGenerateNormalDouble) g_normal_double;

static void find(void *library, const char *name, void *function)
{
    void *const found = dlsym(library, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof found);
}

static bool find_curand(void)
{
    void *const library = dlopen(TEST_CURAND, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    find(library, "curandCreateGeneratorHost", &g_create);
    find(library, "curandSetPseudoRandomGeneratorSeed", &g_set_seed);
    find(library, "curandSetGeneratorOffset", &g_set_offset);
    find(library, "curandDestroyGenerator", &g_destroy);
    find(library, "curandGenerate", &g_generate);
    find(library, "curandGenerateUniform", &g_uniform);
    find(library, "curandGenerateUniformDouble", &g_uniform_double);
    find(library, "curandGenerateNormalDouble", &g_normal_double);
    return true;
}

static curandGenerator_t curand_at(uint64_t position)
{
    curandGenerator_t made = NULL;
    assert_int_equal(g_create(&made, CURAND_RNG_PSEUDO_PHILOX4_32_10), 0);
    assert_int_equal(g_set_seed(made, g_seed), 0);
    assert_int_equal(g_set_offset(made, position), 0);
    return made;
}

/* One generator of each, called in the same way: calls begin in the middle of a pass, and go over its end. */
static void narrow_numbers_are_those_of_curand(uint64_t position)
{
    acs_rand_generator g = {g_seed, position, 0};
    const curandGenerator_t other = curand_at(position);
    acs_wrap_call call;
    for (int turn = 0; turn < 2; turn++) {
        make(&g, g_bits, MANY);
        assert_int_equal(g_generate(other, (unsigned *)g_other, MANY), 0);
        assert_memory_equal(g_bits, g_other, sizeof g_bits);
        assert_int_equal(acs_rand_uniform_prepare(&call, &g, (float *)g_wide, MANY - 2), ACS_OK);
        assert_int_equal(host_run(&call), 0);
        assert_int_equal(g_uniform(other, (float *)g_other, MANY - 2), 0);
        assert_memory_equal(g_wide, g_other, (MANY - 2) * sizeof(float));
    }
    assert_int_equal(g_destroy(other), 0);
}

static void wide_numbers_are_those_of_curand(void)
{
    acs_rand_generator g = acs_rand_begin(g_seed);
    const curandGenerator_t other = curand_at(0);
    acs_wrap_call call;
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(acs_rand_uniform_double_prepare(&call, &g, g_wide, MANY - 2), ACS_OK);
        assert_int_equal(host_run(&call), 0);
        assert_int_equal(g_uniform_double(other, g_other, MANY - 2), 0);
        assert_memory_equal(g_wide, g_other, (MANY - 2) * sizeof(double));
        assert_int_equal(acs_rand_normal_double_prepare(&call, &g, g_wide, SEVERAL, 1, 2), ACS_OK);
        assert_int_equal(host_run(&call), 0);
        assert_int_equal(g_normal_double(other, g_other, SEVERAL, 1, 2), 0);
        for (int k = 0; k < SEVERAL; k++)
            assert_true(fabs(g_wide[k] - g_other[k]) < 1e-10);
    }
    assert_int_equal(g_destroy(other), 0);
}

static void numbers_are_those_of_curand(void **state)
{
    (void)state;
    if (!find_curand())
        skip();
    narrow_numbers_are_those_of_curand(0);
    narrow_numbers_are_those_of_curand(262144 * 3 + 6);
    wide_numbers_are_those_of_curand();
}
#else
static void numbers_are_those_of_curand(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_is_philox),
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(normal_numbers_have_mean_and_deviation),
        cmocka_unit_test(footprints_are_the_numbers),
        cmocka_unit_test(widths_do_not_share_a_pass),
        cmocka_unit_test(bad_arguments_leave_the_position),
        cmocka_unit_test(ops_of_a_generator_follow_its_position),
        cmocka_unit_test(numbers_are_those_of_curand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Files with the times of kernels' versions: what is written is read again, what is wrong is refused with its line, and
 * acs_open refuses a file of another GPU.
 */
#include "variants_fixture.h"

#include "variants/profile.h"

#include <math.h>

static acs_status read_text(acs_profile *profile, const char *text)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(file);
    const acs_status status = acs_profile_read(profile, file, "F");
    assert_int_equal(fclose(file), 0);
    return status;
}

static void what_is_written_is_read_again(void **state)
{
    (void)state;
    static const char text[] = "acs-variants 1\ngpu \"A GPU\" sms 7\n# a remark\n\n"
                               "kernel a name<int, 3>\nversion base\nversion t64:x-1.2_y\n"
                               "problem grid 3 2 1 block 64 1 1 shared 8 reads 100 writes 200\n"
                               "time base 100 12.5 # measured by hand\ntime base 10 100\ntime t64:x-1.2_y 100 -1\n"
                               "beside base 10 150 memory\nbeside base 10 300 itself\n"
                               "mix a 1 b 2.5\nsetting a fit 30 share 50\nsetting b fit 0 share 100\nthroughput 1000.5\n";
    acs_profile first, second;
    char *written = NULL;
    size_t bytes = 0;
    acs_profile_init(&first, "A GPU", 7);
    acs_profile_init(&second, "A GPU", 7);
    assert_int_equal(read_text(&first, text), ACS_OK);
    for (acs_profile *p = &first;; p = &second) {
        const acs_profile_kernel *kernel = p->kernels;
        assert_string_equal(kernel->name, "a name<int, 3>");
        assert_int_equal(kernel->count, 2);
        const acs_problem *problem = kernel->problems;
        assert_int_equal(problem->key.grid[1], 2);
        assert_int_equal(problem->key.writes, 200);
        assert_true(problem->profiled);
        assert_true(problem->times[0].us[9] == 12.5f && problem->times[0].us[0] == 100.f && problem->times[0].us[4] == 0);
        assert_true(isinf(problem->times[1].us[9]));
        assert_true(problem->times[0].beside_us[ACS_COMPANY_MEMORY] == 150.f);
        assert_true(problem->times[0].beside_us[ACS_COMPANY_ITSELF] == 300.f);
        assert_int_equal(p->mixes->count, 2);
        assert_int_equal(p->mixes->settings[0].share, 50);
        assert_int_equal(p->mixes->settings[1].fit, 0);
        assert_true(p->mixes->throughput == 1000.5);
        if (p == &second)
            break;
        FILE *file = open_memstream(&written, &bytes);
        assert_int_equal(acs_profile_write(&first, file), ACS_OK);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(read_text(&second, written), ACS_OK);
        free(written);
    }
    acs_profile_fini(&first);
    acs_profile_fini(&second);
}

static void names_of_kernels_become_lines(void **state)
{
    (void)state;
    static const struct {
        const char *name, *plain;
    } rows[] = {{"k<1, 2>", "k<1, 2>"}, {" a  b\tc ", "a b c"}, {"a\nb", "a_b"}, {"a #b", "a _b"}, {"a#2", "a#2"}, {"", "_"},
                {"#", "_"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char plain[ACS_PROFILE_KERNEL_BYTES];
        acs_profile_name(rows[i].name, plain);
        assert_string_equal(plain, rows[i].plain);
    }
    acs_profile profile;
    acs_profile_init(&profile, "A GPU", 7);
    assert_int_equal(read_text(&profile, "acs-variants 1\ngpu \"A GPU\" sms 7\n\t kernel\ta b # remark\n version  base\n"),
                     ACS_OK);
    assert_string_equal(profile.kernels->name, "a b");
    assert_int_equal(profile.kernels->count, 1);
    acs_profile_fini(&profile);
}

#define HEAD "acs-variants 1\ngpu \"A GPU\" sms 7\n"
#define PROBLEM "kernel k\nversion base\nproblem grid 1 1 1 block 1 1 1 shared 0 reads 1 writes 1\n"

static void wrong_lines_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } rows[] = {
        {"", "line 1: the file ends, but there is no 'acs-variants 1'"},
        {"acs-variants 2\n", "line 1: 'acs-variants 2' is not 'acs-variants 1'"},
        {"acs-variants 1\n", "line 2: the file ends, but there is no 'gpu"},
        {"acs-variants 1\nkernel k\n", "line 2: 'kernel k' is not 'gpu"},
        {"acs-variants 1\ngpu \"B GPU\" sms 7\n", "another GPU: \"B GPU\" with 7 multiprocessors, not \"A GPU\" with 7"},
        {"acs-variants 1\ngpu \"A GPU\" sms 8\n", "with 8 multiprocessors"},
        {HEAD "nonsense\n", "line 3: 'nonsense' is not 'kernel, version"},
        {HEAD "version a\n", "is not 'kernel NAME'"},
        {HEAD "kernel k\nversion a b\n", "is not 'version NAME'"},
        {HEAD "kernel k\nversion a/b\n", "is not 'version NAME'"},
        {HEAD "kernel k\nproblem grid 1 1 block 1 1 1\n", "is not 'problem grid X Y Z"},
        {HEAD "kernel k\nversion base\ntime base 10 1\n", "below a problem"},
        {HEAD PROBLEM "time other 10 1\n", "line 6: 'time other 10 1'"},
        {HEAD PROBLEM "time base 15 1\n", "SHARE is 10, 20 .. 100"},
        {HEAD PROBLEM "time base 110 1\n", "SHARE is 10, 20 .. 100"},
        {HEAD PROBLEM "time base 10 0\n", "'time base 10 0' is not"},
        {HEAD PROBLEM "time base 10 -2\n", "'time base 10 -2' is not"},
        {HEAD PROBLEM "time base 10 nan\n", "'time base 10 nan' is not"},
        {HEAD PROBLEM "time base 10 1 2\n", "'time base 10 1 2' is not"},
        {HEAD PROBLEM "beside base 10 1 nobody\n", "memory|itself"},
        {HEAD PROBLEM "time base 10 1\ntime base 10 1\n", "line 7: 'time base 10 1' is there already"},
        {HEAD PROBLEM "beside base 10 1 itself\nbeside base 10 1 itself\n", "line 7: 'beside base 10 1 itself' is there"},
        {HEAD PROBLEM PROBLEM, "line 6: 'kernel k' is there already"},
        {HEAD "kernel k\nversion a\nversion a\n", "line 5: 'version a' is there already"},
        {HEAD PROBLEM "problem grid 1 1 1 block 1 1 1 shared 0 reads 1 writes 1\n", "writes 1' is there already"},
        {HEAD "mix\n", "is not 'kernel, version"},
        {HEAD "mix a\n", "is not 'mix MODEL RATE"},
        {HEAD "mix a 0\n", "is not 'mix MODEL RATE"},
        {HEAD "mix a 1 a 2\n", "each model once"},
        {HEAD "mix a inf\n", "is not 'mix MODEL RATE"},
        {HEAD PROBLEM "time base 10 1e400\n", "'time base 10 1e400' is not"},
        {HEAD "setting a fit 10 share 10\n", "for each model of a mix"},
        {HEAD "mix a 1\nsetting b fit 10 share 10\n", "'setting b fit 10 share 10'"},
        {HEAD "mix a 1\nsetting a fit 101 share 10\n", "'setting a fit 101"},
        {HEAD "mix a 1\nsetting a fit 10 share 0\n", "'setting a fit 10 share 0'"},
        {HEAD "mix a 1\nthroughput 3\n", "below the settings"},
        {HEAD "mix a 1\nsetting a fit 10 share 10\nthroughput -3\n", "'throughput -3'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        acs_profile profile;
        acs_profile_init(&profile, "A GPU", 7);
        const char *text = rows[i].text[0] ? rows[i].text : "\n";
        assert_int_equal(read_text(&profile, text), ACS_ERR_OPTION);
        if (rows[i].text[0])
            assert_error(ACS_ERR_OPTION, rows[i].word);
        acs_profile_fini(&profile);
    }
}

static void a_kernel_has_so_many_versions_at_most(void **state)
{
    (void)state;
    char text[8192] = HEAD "kernel k\n";
    for (int i = 0; i <= ACS_VERSIONS_MOST; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "version v%d\n", i);
    acs_profile profile;
    acs_profile_init(&profile, "A GPU", 7);
    assert_int_not_equal(read_text(&profile, text), ACS_OK);
    assert_int_equal(profile.kernels->count, ACS_VERSIONS_MOST);
    acs_profile_fini(&profile);
}

static void a_context_refuses_a_profile_that_does_not_fit(void **state)
{
    (void)state;
    acs_context *context = NULL;
    acs_options options = variant_options("/nonexistent/profile");
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
    assert_error(ACS_ERR_OPTION, "ACS_PROFILE: '/nonexistent/profile' cannot be read");
    const profile_file file = write_profile("gpu \"CPU\" sms 3\n");
    options = variant_options(file.path);
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
    assert_error(ACS_ERR_OPTION, "line 3");
    options.executors = EXECUTORS + 1;
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
    assert_error(ACS_ERR_OPTION, "is the profile of another GPU: \"CPU\" with 2 multiprocessors, not \"CPU\" with 3");
    assert_null(context);
    assert_int_equal(unlink(file.path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(names_of_kernels_become_lines),
        cmocka_unit_test(wrong_lines_are_refused),
        cmocka_unit_test(a_kernel_has_so_many_versions_at_most),
        cmocka_unit_test(a_context_refuses_a_profile_that_does_not_fit),
    };
    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}

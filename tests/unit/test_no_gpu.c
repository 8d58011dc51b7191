/*
 * Kernels without a host body where no GPU answers: each refused launch has its error, and a context logs one line that says
 * why it has no GPU.
 */
#include "report_fixture.h"

#include <stdbool.h>
#include <stdlib.h>

enum { LAUNCHES = 64, TEXT_BYTES = 16384 };

static char g_gpu_code; /* stands for a __global__ function */
static const acs_kernel g_first = ACS_KERNEL_INIT("first", &g_gpu_code, NULL);
static const acs_kernel g_second = ACS_KERNEL_INIT("second", &g_gpu_code, NULL);
static const char g_cannot[] = " has no host body, without which it cannot run on this backend";

static acs_context *open_logging(int backend)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = backend;
    options.log = ACS_LOG_ERROR;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* Many launches, of which none runs. `reason`: what the errors say beyond the kernel. */
static void launch_in_vain(acs_context *context, const char *reason)
{
    for (int i = 0; i < LAUNCHES; i++) {
        const acs_kernel *kernel = i < LAUNCHES / 2 ? &g_first : &g_second;
        acs_error error = {.size = sizeof error};
        char start[128];
        (void)snprintf(start, sizeof start, "kernel '%s'%s", kernel->name, g_cannot);
        assert_int_equal(ACS_LAUNCH_ON(context, kernel, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE), 0);
        assert_int_equal(acs_last_error(&error), ACS_ERR_UNSUPPORTED);
        assert_memory_equal(error.text, start, strlen(start));
        assert_string_equal(error.site.name, kernel->name);
        assert_says(error.text + strlen(start), reason);
    }
}

/* A context that refuses all of them; what it logged. */
static const char *log_of(int backend, const char *reason)
{
    static char text[TEXT_BYTES];
    acs_error first = {.size = sizeof first};
    capture c;
    capture_begin(&c);
    acs_context *context = open_logging(backend);
    launch_in_vain(context, reason);
    capture_end(&c, text, sizeof text);
    assert_int_equal(acs_context_error(context, &first), ACS_ERR_UNSUPPORTED);
    assert_says(first.text, "kernel 'first' has no host body");
    assert_int_equal(acs_sync(context), ACS_ERR_UNSUPPORTED);
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    return text;
}

static void assert_told_once(const char *text)
{
    assert_says(text, " acs: error: context ");
    assert_says(text, ": kernel 'first'");
    assert_int_equal(times_said(text, g_cannot), 1);
    assert_int_equal(times_said(text, "\n"), 1);
}

static void a_context_logs_the_first_kernel_without_a_body(void **state)
{
    (void)state;
    for (int backend = ACS_BACKEND_HOST; backend <= ACS_BACKEND_SIM; backend++) {
        const char *text = log_of(backend, "");
        assert_told_once(text);
        assert_null(strstr(text, "since")); /* the program chose it */
    }
}

static void where_auto_finds_no_gpu_the_reason_is_told(void **state)
{
    (void)state;
    const char *text = log_of(ACS_BACKEND_AUTO, " (host, since ");
    const bool built_in = strstr(text, "built without CUDA") == NULL;
    assert_told_once(text);
    assert_says(text, built_in ? " (host, since no GPU answers: cuda: "
                               : " (host, since this library was built without CUDA)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_logs_the_first_kernel_without_a_body),
        cmocka_unit_test(where_auto_finds_no_gpu_the_reason_is_told),
    };
    setenv("CUDA_VISIBLE_DEVICES", "-1", 1); /* also where there are GPUs */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * A test program without a test library, for machines that have nothing but a driver: CHECK, a list of tests, exit status
 * 0 (passed), 1 (failed) or 77 (skipped: no GPU answers). A program's argument picks the tests whose names contain it.
 */
#ifndef GPU_CHECK_H
#define GPU_CHECK_H

#include <acs.h>

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECK_SKIPPED = 77 };

static int g_check_failures;

/* Of a struct, in C and in C++ without a warning. */
#ifdef __cplusplus
#define CHECK_ZERO {}
#else
#define CHECK_ZERO {0}
#endif

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                  \
            g_check_failures++;                                                                                        \
        }                                                                                                              \
    } while (0)

#define CHECK_EQ(is, wanted)                                                                                           \
    do {                                                                                                               \
        const long long is_ = (long long)(is), wanted_ = (long long)(wanted);                                          \
        if (is_ != wanted_) {                                                                                          \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld (%s)\n", __FILE__, __LINE__, #is, is_, wanted_, #wanted);     \
            g_check_failures++;                                                                                        \
        }                                                                                                              \
    } while (0)

#define CHECK_STATUS(is, wanted)                                                                                       \
    do {                                                                                                               \
        const acs_status is_ = (is);                                                                                   \
        if (is_ != (wanted)) {                                                                                         \
            acs_error error_ = CHECK_ZERO;                                                                             \
            error_.size = sizeof error_;                                                                               \
            (void)acs_last_error(&error_);                                                                             \
            fprintf(stderr, "%s:%d: %s is %s, not %s; last error: %s\n", __FILE__, __LINE__, #is, acs_status_name(is_), \
                    #wanted, error_.text);                                                                             \
            g_check_failures++;                                                                                        \
        }                                                                                                              \
    } while (0)

#define CHECK_CUDA(call)                                                                                               \
    do {                                                                                                               \
        const cudaError_t error_ = (call);                                                                             \
        if (error_ != cudaSuccess) {                                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));                 \
            g_check_failures++;                                                                                        \
        }                                                                                                              \
    } while (0)

typedef struct check_test {
    const char *name;
    void (*run)(void);
} check_test;
#define CHECK_TEST(function) {#function, function}

/* Options of the environment, on the CUDA backend. */
static inline acs_options check_options(void)
{
    acs_options options;
    if (acs_options_init(&options, sizeof options) != ACS_OK) {
        fprintf(stderr, "the environment has a bad ACS_* option\n");
        exit(1);
    }
    options.backend = ACS_BACKEND_CUDA;
    return options;
}

/* Open a context; ends the program where that fails, since nothing could be tested then. */
static inline acs_context *check_open(const acs_options *options)
{
    acs_context *context = NULL;
    if (acs_open(options, &context) != ACS_OK || acs_context_backend(context) != ACS_BACKEND_CUDA) {
        acs_error error = CHECK_ZERO;
        error.size = sizeof error;
        (void)acs_last_error(&error);
        fprintf(stderr, "no context on a GPU: %s\n", error.text);
        exit(1);
    }
    return context;
}

static inline acs_context *check_open_default(void)
{
    const acs_options options = check_options();
    return check_open(&options);
}

/* The error that the thread's last failed call left. */
static inline acs_error check_last_error(void)
{
    acs_error error = CHECK_ZERO;
    error.size = sizeof error;
    (void)acs_last_error(&error);
    return error;
}

static inline acs_statistics check_stats(acs_context *context)
{
    acs_statistics stats = CHECK_ZERO;
    stats.size = sizeof stats;
    CHECK_STATUS(acs_stats(context, &stats), ACS_OK);
    return stats;
}

/* Whether a GPU answers, by ACS's own judgement. */
static inline int check_has_gpu(void)
{
    const acs_options options = check_options();
    acs_context *context = NULL;
    const acs_status status = acs_open(&options, &context);
    if (status == ACS_OK)
        CHECK_STATUS(acs_close(context), ACS_OK);
    else if (status != ACS_ERR_UNSUPPORTED)
        CHECK_STATUS(status, ACS_OK);
    return status != ACS_ERR_UNSUPPORTED;
}

static inline int check_main(int argc, char **argv, const check_test *tests, size_t count)
{
    int failed = 0;
    if (!check_has_gpu()) {
        printf("skipped: %s\n", check_last_error().text);
        return CHECK_SKIPPED;
    }
    failed += g_check_failures;
    for (size_t i = 0; i < count; i++) {
        if (argc > 1 && !strstr(tests[i].name, argv[1]))
            continue;
        g_check_failures = 0;
        tests[i].run();
        printf("%s %s\n", g_check_failures ? "FAILED" : "passed", tests[i].name);
        fflush(stdout);
        failed += g_check_failures;
    }
    return failed ? 1 : 0;
}
#define CHECK_MAIN(argc, argv, tests) check_main(argc, argv, tests, sizeof(tests) / sizeof(tests)[0])

#endif

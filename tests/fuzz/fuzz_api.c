/*
 * The entry of a fuzzer for the public API, and of the replayer: bytes in, silence if all is well. The environment is made
 * so that the default context can never open; what a context reads from it comes from the input.
 */
#include "program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "replay.h"

static fuzz_program g_program;

void fuzz_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "FUZZ: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\nof this program:\n");
    va_end(list);
    fuzz_print(&g_program);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    setenv("ACS_BACKEND", "none", 1);
    fuzz_decode(data, bytes, &g_program);
    fuzz_run(&g_program);
    return 0;
}

void replay_print(const uint8_t *data, size_t bytes)
{
    fuzz_decode(data, bytes, &g_program);
    fuzz_print(&g_program);
}

/* Blocks of contexts that were closed come back soon: less memory is touched, and an input takes half the time. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8:malloc_context_size=5:allocator_may_return_null=1";
}

/* What the tests of the twin itself share: calls that must succeed, and breaches that must be reported. */
#ifndef TWIN_CHECKS_H
#define TWIN_CHECKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "twin.h"

#include <string.h>

static inline void ok(CUresult result)
{
    assert_int_equal(result, CUDA_SUCCESS);
}

/* The first breach has these words; it is forgotten. */
static inline void assert_breach(const char *words)
{
    if (!twin_breach() || !strstr(twin_breach(), words))
        fail_msg("no breach with \"%s\" but %s", words, twin_breach() ? twin_breach() : "none");
    twin_forget_breaches();
}

#endif

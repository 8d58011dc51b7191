/*
 * Ends the program when the library finds a defect of its own: locks taken in the wrong order, an assertion that fails.
 * Called only in builds with ACS_ASSERTIONS, by lock.c and through ACS_ASSERT. Failures of calls never come here.
 */
#include "base/base.h"

#ifdef ACS_ASSERTIONS

#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 768 }; /* fits into a line of the log */

void acs_fatal(const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    acs_log_always(ACS_LOG_ERROR, "%s", text);
    abort();
}

#endif

/*
 * The end of a program in which the library found itself broken: locks taken in the wrong order, an assertion that is not
 * so. Called in builds with ACS_ASSERTIONS only, by lock.c and through ACS_ASSERT; failures of calls never come here.
 */
#include "base/base.h"

#ifdef ACS_ASSERTIONS

#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 768 }; /* a line of the log has room for it */

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

/*
 * Errors of threads: the function that detects a failure fills its thread's error (ACS_FAIL), and the program reads it
 * by acs_last_error. Contexts keep their errors in api/failures.c, which fills and copies them by functions of this
 * file. Never allocates, so that exhausted memory can be reported, too.
 */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

/* One per thread: a failure in one thread never hides another's. status ACS_OK: no error so far. */
static _Thread_local acs_error tl_error;
static _Thread_local bool tl_hushed; /* acs_error_hush */

static void fill_error(acs_error *error, acs_status status, int native, const char *where, const char *format,
                       va_list args)
{
    memset(error, 0, sizeof *error);
    error->size = sizeof *error;
    error->status = status;
    error->native = native;
    error->where = where;
    if (vsnprintf(error->text, sizeof error->text, format, args) < 0)
        error->text[0] = 0; /* the status still says what happened */
}

acs_status acs_fail(acs_status status, int native, const char *where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill_error(&tl_error, status, native, where, format, args);
    va_end(args);
    if (!tl_hushed && acs_log_enabled(ACS_LOG_ERROR))
        acs_error_log();
    return status;
}

void acs_error_log(void)
{
    acs_log(ACS_LOG_ERROR, "%s: %s: %s", tl_error.where, acs_status_name(tl_error.status), tl_error.text);
}

void acs_error_hush(bool hushed)
{
    tl_hushed = hushed;
}

void acs_error_at(const acs_site *site)
{
    const size_t used = strlen(tl_error.text);
    if (site->file && !tl_error.site.file)
        (void)snprintf(tl_error.text + used, sizeof tl_error.text - used, " (at %s:%d)", site->file, site->line);
    tl_error.site = *site;
}

acs_error *acs_error_thread(void)
{
    return &tl_error;
}

void acs_error_fill(acs_error *error, acs_status status, int native, const char *where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill_error(error, status, native, where, format, args);
    va_end(args);
}

void acs_error_copy(acs_error *to, const acs_error *from)
{
    /* A caller compiled against an older header has a shorter struct: it gets the fields that it knows. */
    size_t size = to->size;
    size_t known = size < sizeof *from ? size : sizeof *from;

    if (known < sizeof to->size)
        return; /* `size` was not set: nothing can be written safely */
    memcpy(to, from, known);
    to->size = size;
    if (known < sizeof *from && known > offsetof(acs_error, text))
        ((char *)to)[known - 1] = 0; /* the text was cut */
}

acs_status acs_last_error(acs_error *error)
{
    if (error && tl_error.status != ACS_OK)
        acs_error_copy(error, &tl_error);
    return tl_error.status;
}

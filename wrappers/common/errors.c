/*
 * Errors of the wrappers: the latest of each thread, and texts for the codes of ops. Called by every wrapper, and by
 * programs through acs_wrap_last_error. It never touches the errors of ACS itself, which only ACS can write.
 */
#include "common/wrap.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* One per thread, as acs_last_error has. status ACS_OK: no error so far. */
static _Thread_local acs_error tl_error;

acs_status acs_wrap_fail(acs_status status, const acs_site *site, const char *format, ...)
{
    va_list args;
    const int used = snprintf(tl_error.text, sizeof tl_error.text, "%s: ", site->name);

    tl_error.size = sizeof tl_error;
    tl_error.status = status;
    tl_error.native = 0;
    tl_error.op = tl_error.cause = 0;
    tl_error.where = site->name;
    tl_error.site = *site;
    va_start(args, format);
    (void)vsnprintf(tl_error.text + used, sizeof tl_error.text - (size_t)used, format, args);
    va_end(args);
    return status;
}

acs_status acs_wrap_last_error(acs_error *error)
{
    if (!error || tl_error.status == ACS_OK || error->size < sizeof error->size)
        return tl_error.status;
    /* A caller compiled against an older header has a shorter struct: it gets the fields that it knows. */
    const size_t size = error->size, known = size < sizeof tl_error ? size : sizeof tl_error;
    memcpy(error, &tl_error, known);
    error->size = size;
    if (known < sizeof tl_error && known > offsetof(acs_error, text))
        ((char *)error)[known - 1] = 0; /* the text was cut */
    return tl_error.status;
}

acs_op acs_wrap_refused_by_acs(void)
{
    tl_error.size = sizeof tl_error;
    (void)acs_last_error(&tl_error);
    return 0;
}

/* The meaning that a wrapper gave one of its own codes, or NULL. */
static const char *own_meaning(const acs_wrap_codes *codes, int code)
{
    for (int i = 0; codes->own && codes->own[i]; i++)
        if (code == ACS_WRAP_CODE_OTHER + i)
            return codes->own[i];
    return NULL;
}

static int library_text(const acs_wrap_codes *codes, int status, char *text, size_t bytes)
{
    const char *why;
    const char *words = codes->text && codes->load(&why) ? codes->text(status) : NULL;

    return snprintf(text, bytes, "%s returned %s %d%s%s", codes->library, codes->type, status, words ? ": " : "",
                    words ? words : "");
}

size_t acs_wrap_code_text(const acs_wrap_codes *codes, int code, char *text, size_t bytes)
{
    const char *why = own_meaning(codes, code);
    int length;

    if (why)
        length = snprintf(text, bytes, "%s", why);
    else if (code == ACS_WRAP_CODE_LIBRARY)
        length = snprintf(text, bytes, "%s", codes->load(&why) ? "a library was not found" : why);
    else if (code == ACS_WRAP_CODE_MEMORY)
        length = snprintf(text, bytes, "no host memory is left");
    else if (code == ACS_WRAP_CODE_SCRATCH)
        length = snprintf(text, bytes, "%s asks for more memory than the op's scratch_bytes", codes->library);
    else if (code >= ACS_WRAP_CODE_BASE)
        length = library_text(codes, code - ACS_WRAP_CODE_BASE, text, bytes);
    else
        length = snprintf(text, bytes, "%d is no code of this wrapper", code);
    return length > 0 ? (size_t)length : 0;
}

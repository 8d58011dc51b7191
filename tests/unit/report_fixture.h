/*
 * What a call writes to standard error, for tests of reports and logs.
 */
#ifndef REPORT_FIXTURE_H
#define REPORT_FIXTURE_H

#include "api_fixture.h"

#include <stdio.h>
#include <unistd.h>

typedef struct capture {
    FILE *file;
    int errors; /* standard error as it was */
} capture;

static inline void capture_begin(capture *c)
{
    c->file = tmpfile();
    c->errors = dup(STDERR_FILENO);
    assert_true(c->file && c->errors >= 0 && dup2(fileno(c->file), STDERR_FILENO) >= 0);
}

static inline void capture_end(capture *c, char *text, size_t bytes)
{
    assert_true(dup2(c->errors, STDERR_FILENO) >= 0 && close(c->errors) == 0);
    rewind(c->file);
    text[fread(text, 1, bytes - 1, c->file)] = '\0';
    assert_int_equal(fclose(c->file), 0);
}

/* Close a context and read its report. */
static inline void close_and_read(acs_context *context, char *text, size_t bytes)
{
    capture c;
    capture_begin(&c);
    const acs_status status = acs_close(context);
    capture_end(&c, text, bytes);
    assert_int_equal(status, ACS_OK);
}

static inline void assert_says(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("'%s' does not say '%s'", text, words);
}

static inline uint32_t times_said(const char *text, const char *words)
{
    uint32_t count = 0;
    while ((text = strstr(text, words))) {
        count++;
        text++;
    }
    return count;
}

#endif

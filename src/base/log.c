/*
 * The log: lines "acs: warn: text" on standard error, at most at the level that a context asked for (ACS_LOG). Called
 * by every module; only reports (ACS_STATS) and files that options name are printed elsewhere. Each line is one write,
 * so lines of several threads do not mix. Never allocates and never changes errno.
 */
#include "base/base.h"
#include "base/inside.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define LINE_BYTES 1024

static atomic_int g_level = ACS_LOG_OFF;

void acs_log_set_level(int level)
{
    /* Relaxed, here and below: the level guards no other data. Only raised: contexts share one standard error. */
    int now = atomic_load_explicit(&g_level, memory_order_relaxed);
    while (now < level &&
           !atomic_compare_exchange_weak_explicit(&g_level, &now, level, memory_order_relaxed, memory_order_relaxed))
        ;
}

bool acs_log_enabled(int level)
{
    /* Relaxed: a thread that misses a change of level logs one line more or less. */
    return level > ACS_LOG_OFF && level <= atomic_load_explicit(&g_level, memory_order_relaxed);
}

static const char *level_name(int level)
{
    switch (level) {
    case ACS_LOG_ERROR:
        return "error";
    case ACS_LOG_WARN:
        return "warn";
    case ACS_LOG_INFO:
        return "info";
    default:
        return "debug";
    }
}

/* Write once. A line that a full pipe or a closed descriptor refuses is lost: the log must not hold up the program. */
static void write_line(const char *line, size_t bytes)
{
    ACS_NOT_CANCELLED;
    ssize_t written;
    do {
        written = write(STDERR_FILENO, line, bytes);
    } while (written < 0 && errno == EINTR);
}

static void log_list(int level, const char *format, va_list args)
{
    /* Callers log on their way out of a failure, often before they look at errno. */
    int saved_errno = errno;
    char line[LINE_BYTES];
    size_t used = (size_t)snprintf(line, sizeof line, "acs: %s: ", level_name(level));

    int text = vsnprintf(line + used, sizeof line - used, format, args);

    if (text > 0)
        used += (size_t)text;
    if (used > sizeof line - 1)
        used = sizeof line - 1; /* too long: cut, the newline takes the place of the final 0 */
    line[used++] = '\n';
    write_line(line, used);
    errno = saved_errno;
}

void acs_log(int level, const char *format, ...)
{
    if (!acs_log_enabled(level))
        return;
    va_list args;
    va_start(args, format);
    log_list(level, format, args);
    va_end(args);
}

void acs_log_always(int level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_list(level, format, args);
    va_end(args);
}

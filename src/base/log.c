/*
 * The log: lines on standard error, at most at the level that a context asked for (ACS_LOG). A line has the time of day
 * (UTC), and the context and the call site of the call that it belongs to, where there is one:
 *
 *     23:47:46.123456 acs: warn: context 1: main.c:42: text
 *
 * Called by every module; only reports (ACS_STATS) and files that options name are printed elsewhere. Each line is one
 * write, so lines of several threads do not mix. Never allocates and never changes errno.
 */
#include "base/base.h"
#include "base/inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 1024
#define SITE_BYTES 256

static atomic_int g_level = ACS_LOG_OFF;

static _Thread_local struct {
    uint64_t context;
    const acs_site *site;
} tl_origin, tl_before; /* tl_before: from before acs_log_hush */
static _Thread_local bool tl_hushed;

void acs_log_origin(uint64_t context, const acs_site *site)
{
    tl_origin.context = context;
    tl_origin.site = site;
}

void acs_log_hush(bool hush)
{
    if (hush)
        tl_before = tl_origin;
    else
        tl_origin = tl_before;
    tl_hushed = hush;
}

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
    return level > ACS_LOG_OFF && level <= atomic_load_explicit(&g_level, memory_order_relaxed) && !tl_hushed;
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

/* Write the head of a line; it always has room. The time of day is computed here, since gmtime_r may allocate. */
static size_t put_head(char *line, int level)
{
    static const char *const levels[] = {
        [ACS_LOG_ERROR] = "error", [ACS_LOG_WARN] = "warn", [ACS_LOG_INFO] = "info", [ACS_LOG_DEBUG] = "debug"};
    struct timespec now;
    char context[32] = "", place[SITE_BYTES] = "";
    const acs_site *site = tl_origin.site;
    clock_gettime(CLOCK_REALTIME, &now);
    const unsigned second = (unsigned)(now.tv_sec % (24 * 60 * 60));
    if (tl_origin.context)
        (void)snprintf(context, sizeof context, "context %" PRIu64 ": ", tl_origin.context);
    if (site && site->file)
        (void)snprintf(place, sizeof place, "%.*s:%d: ", SITE_BYTES - 20, site->file, site->line);
    return (size_t)snprintf(line, LINE_BYTES, "%02u:%02u:%02u.%06ld acs: %s: %s%s", second / 3600, second / 60 % 60,
                            second % 60, now.tv_nsec / 1000, levels[level], context, place);
}

static void log_list(int level, const char *format, va_list args)
{
    /* Callers log on their way out of a failure, often before they look at errno. */
    int saved_errno = errno;
    char line[LINE_BYTES];
    size_t used = put_head(line, level);

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

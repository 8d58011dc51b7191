/*
 * Owns the line of progress and the flag of interruptions (progress.h). Called by the benchmark programs and long tests
 * between measurements. Writes nothing to standard output or to results.
 */
#include "progress.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Least time between two lines, on a terminal and elsewhere. */
static const double TERMINAL_S = 0.2, LINES_S = 5;

static struct {
    const char *program;
    double steps, done;
    double skipped; /* of those done: by an earlier run */
    double begin_s, told_s, every_s;
    bool terminal, shown; /* the line is on the terminal now */
    FILE *to;             /* NULL: not begun */
    double (*now_s)(void);
} g;
static FILE *g_to;
static bool g_terminal;
static double (*g_now_s)(void);
static volatile sig_atomic_t g_interrupted;

static double monotonic_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void bench_progress_use(FILE *to, bool terminal, double (*now_s)(void))
{
    g_to = to;
    g_terminal = terminal;
    g_now_s = now_s;
    g.to = NULL; /* until the next run begins */
}

void bench_progress_begin(const char *program, double steps)
{
    const char *every = getenv("BENCH_PROGRESS_S");
    g.program = program;
    g.steps = steps;
    g.done = g.skipped = 0;
    g.to = g_to ? g_to : stderr;
    g.terminal = g_to ? g_terminal : isatty(STDERR_FILENO) != 0;
    g.now_s = g_now_s ? g_now_s : monotonic_s;
    g.every_s = every ? strtod(every, NULL) : g.terminal ? TERMINAL_S : LINES_S;
    g.shown = false;
    g.begin_s = g.told_s = g.now_s();
}

/* "40 s", "12 min" or "3 h". */
static void print_time(FILE *to, double s)
{
    if (s < 100)
        fprintf(to, "%.0f s", s);
    else if (s < 6000)
        fprintf(to, "%.0f min", s / 60);
    else
        fprintf(to, "%.0f h", s / 3600);
}

static void tell(double done, const char *what)
{
    const double now = g.now_s(), own = done - g.skipped;
    const bool last = done >= g.steps;
    if (now - g.told_s < g.every_s && !(last && !g.terminal))
        return;
    g.told_s = now;
    fprintf(g.to, "%s%s: %.0f of %.0f (%.0f %%)", g.terminal ? "\r\033[K" : "", g.program, g.done, g.steps,
            g.steps > 0 ? 100 * (done < g.steps ? done / g.steps : 1) : 100);
    if (own > 0 && !last) {
        fputs(", about ", g.to);
        print_time(g.to, (now - g.begin_s) * (g.steps - done) / own);
        fputs(" left", g.to);
    }
    fprintf(g.to, ": %s%s", what, g.terminal ? "" : "\n");
    fflush(g.to);
    g.shown = g.terminal;
}

void bench_progress_step(const char *what)
{
    if (!g.to)
        return;
    g.done += 1;
    tell(g.done, what);
}

void bench_progress_skip(void)
{
    g.done += 1;
    g.skipped += 1;
}

void bench_progress_part(double part, const char *what)
{
    if (g.to && part < 1)
        tell(g.done + part, what);
}

void bench_progress_hide(void)
{
    if (g.to && g.shown) {
        fputs("\r\033[K", g.to);
        fflush(g.to);
    }
    g.shown = false;
}

static void interrupt(int number)
{
    (void)number;
    g_interrupted = 1;
}

void bench_interrupts_catch(void)
{
    struct sigaction a = {.sa_handler = interrupt};
    a.sa_flags = (int)(SA_RESTART | SA_RESETHAND); /* the second one ends the program */
    (void)sigaction(SIGINT, &a, NULL);
    (void)sigaction(SIGTERM, &a, NULL);
}

bool bench_interrupted(void)
{
    return g_interrupted != 0;
}

void bench_interrupts_forget(void)
{
    g_interrupted = 0;
}

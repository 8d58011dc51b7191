/*
 * Progress of long runs, and their interruption; C, for programs of either language. One run per process, one thread.
 *
 * The line goes to standard error: "acs-bench: 3 of 24 (14 %), about 40 s left: fft". On a terminal it is one line that
 * changes. Elsewhere it is a line each 5 s, or each BENCH_PROGRESS_S seconds, and one at the end.
 *
 * Ctrl-C and SIGTERM set a flag: the program ends behind the current run, and keeps what it measured. The second one
 * ends it at once. Programs then have the exit status BENCH_INTERRUPTED.
 */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { BENCH_INTERRUPTED = 130 };

/* A run of so many steps begins. The name is in static storage. */
void bench_progress_begin(const char *program, double steps);
/* A step is done; `what` says which. */
void bench_progress_step(const char *what);
/* The step was done by an earlier run, and took no time now. */
void bench_progress_skip(void);
/* Of the step under way, this part (0 to 1) is done. */
void bench_progress_part(double part, const char *what);
/* Take the line off a terminal: something else is printed. */
void bench_progress_hide(void);
/* For tests: where lines go, whether that is a terminal, and the clock in seconds. */
void bench_progress_use(FILE *to, bool terminal, double (*now_s)(void));

void bench_interrupts_catch(void);
bool bench_interrupted(void);
/* For tests: as if nothing had happened. */
void bench_interrupts_forget(void);

#ifdef __cplusplus
}
#endif

#endif

/*
 * acs-micro: what the host pays, in nanoseconds: the caller's path, and the insertion of an op into the window beside
 * an all-pairs scan. Each figure is a median over many short bursts with its 10th and 90th percentile; figures are only
 * comparable within one run, so the ratios of a run are printed with it.
 */
#ifndef ACS_MICRO_H
#define ACS_MICRO_H

#include "base/base.h"

enum { MICRO_SAMPLES_MAX = 4096, MICRO_NAME_BYTES = 96 };

/* Nanoseconds per op, one for each burst. */
typedef struct micro_samples {
    uint32_t count;
    double ns[MICRO_SAMPLES_MAX];
} micro_samples;

typedef struct micro_options {
    uint32_t bursts; /* per figure, at most MICRO_SAMPLES_MAX */
    bool quick;      /* a look whether it runs: few bursts, small windows */
    const char *only; /* one group; NULL: all */
} micro_options;

void micro_samples_clear(micro_samples *samples);
/* A burst of `ops` ops took `ns`; the cost of reading the clock twice is taken off. */
void micro_samples_add(micro_samples *samples, uint64_t ns, uint32_t ops);
bool micro_samples_full(const micro_samples *samples, const micro_options *options);

/*
 * Record and print a figure. `edges`: dependencies found per op, negative where that has no meaning.
 * Returns its median. Sorts the samples.
 */
double micro_figure(const char *group, const char *name, micro_samples *samples, double edges);
/* Record and print upper / lower. */
void micro_ratio(const char *name, double upper, double lower);
/* Write everything recorded, with the machine, as JSON. 0, or an errno. */
int micro_write_json(const char *path, int argc, char **argv);
void micro_print_machine(void);

/* The groups. 0, or 1 after a message on standard error. */
int micro_parts(const micro_options *options);  /* record pool and FIFO alone */
int micro_caller(const micro_options *options); /* acs_launch and ACS_LAUNCH */
int micro_insert(const micro_options *options); /* the window's insertion beside an all-pairs scan */
int micro_life(const micro_options *options);   /* an op from its record to its end, by part */

#endif

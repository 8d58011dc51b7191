/*
 * Lives of blocks: what lives.c plays and judges, and test_memory_lives.c chooses.
 */
#ifndef TESTS_LIVES_H
#define TESTS_LIVES_H

#include <acs.h>

#include <stdint.h>

enum { SKIPPED_TEST = 77, THREADS_MOST = 8 };

typedef struct settings {
    acs_options options;
    uint64_t steps, seed;
    uint32_t threads;
    uint32_t lazy;  /* per cent of the blocks of device memory */
    uint32_t group; /* most steps of a group; 0: there are none. No op fails then, since held ops cannot be asked */
} settings;

/* Over all runs on the simulator: that something was put to the test. */
typedef struct lives_totals {
    uint64_t spilled, shared, moved, transfers;
} lives_totals;
extern lives_totals g_lives;

/* 0: all was right; SKIPPED_TEST: there is no such device. */
int lives_run(const settings *s);

#endif

/*
 * Several producers in one thread, by coroutines: on the sim backend a seed also picks which producer goes on, so that
 * a run with several of them can be replayed. One set of fibers at a time.
 */
#ifndef RANDOM_FIBERS_H
#define RANDOM_FIBERS_H

#include <stdbool.h>
#include <stdint.h>

enum { FIBERS_MOST = 8 };

/* Run main_of(arguments[i]) for each i < count, to the end of all; `seed` picks who goes on at each yield. */
void fibers_run(uint32_t count, void *(*main_of)(void *), void *const *arguments, uint64_t seed);
/* Let another fiber go on: perhaps, or (always) certainly if there is one. Outside of fibers_run: nothing. */
void fibers_yield(bool always);

#endif

/*
 * The clock of the threaded shell: spinning, time limits, statistics. The window and the scheduler never read it, so
 * that their runs can be replayed. Never goes backwards.
 */
#include "base/base.h"

#include <time.h>

uint64_t acs_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail: the clock exists on every Linux */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

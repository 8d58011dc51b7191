/*
 * The clock and the pauses of threads, for spinning, time limits and statistics. The window never uses them, and the
 * scheduler only for statistics, so that their runs can be replayed. The clock never goes backwards.
 */
#include "base/base.h"

#include "base/tuning.h"

#include <sched.h>
#include <time.h>

uint64_t acs_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail: the clock exists on every Linux */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t acs_clock_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return acs_clock_ns();
#endif
}

static void pauses(int count)
{
    for (int i = 0; i < count; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

void acs_pause(void)
{
    pauses(TUNE_LOCK_PAUSES);
}

void acs_pause_briefly(void)
{
    pauses(TUNE_SPIN_PAUSES);
    sched_yield();
}

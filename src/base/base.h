/*
 * Helpers for every module: errors, log, assertions, random numbers, clock. The lowest layer: of the library it
 * includes only acs.h.
 */
#ifndef ACS_BASE_H
#define ACS_BASE_H

#include "acs.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#define ACS_LIKELY(x) __builtin_expect(!!(x), 1)
#define ACS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ACS_CACHE_LINE 64
enum { ACS_DEVICES_MOST = 16 }; /* most devices of a context */
#define ACS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/*
 * Errors. The function that detects a failure calls ACS_FAIL once: it fills this thread's error, logs it and returns
 * the status. Everyone above only hands the status on, by ACS_TRY.
 */
acs_status acs_fail(acs_status status, int native, const char *where, const char *format, ...) ACS_PRINTF(4, 5);
#define ACS_FAIL(status, native, ...) acs_fail((status), (native), __func__, __VA_ARGS__)
#define ACS_TRY(expression)                                                                                            \
    do {                                                                                                               \
        acs_status acs_try_ = (expression);                                                                            \
        if (ACS_UNLIKELY(acs_try_ != ACS_OK))                                                                          \
            return acs_try_;                                                                                           \
    } while (0)

/* This thread's latest error, to be completed (op, site) by the layer that knows them. Never NULL. */
acs_error *acs_error_thread(void);
/* The call at `site` returns this thread's latest error: note it there, and in its text if that has no place yet. */
void acs_error_at(const acs_site *site);
/* true: this thread's failures are not logged, while the caller tries several ways. false: they are again. */
void acs_error_hush(bool hushed);
/* Log this thread's latest error, which was not logged while hushed. */
void acs_error_log(void);
/* Fill an error without touching this thread's. `error->size` is set. */
void acs_error_fill(acs_error *error, acs_status status, int native, const char *where, const char *format, ...)
    ACS_PRINTF(5, 6);
/* Copy to a program's struct, but no more than its `size` bytes. */
void acs_error_copy(acs_error *to, const acs_error *from);

/*
 * Log to standard error. The process has one level: the highest that any context asked for. Any thread. The lines of a
 * thread name the origin that it gave last: number of a context (0: none), and a call site in static storage, or NULL.
 */
void acs_log_origin(uint64_t context, const acs_site *site);
void acs_log_set_level(int level);
/* The thread writes no lines, but those of acs_log_always; its origin is kept until it does again. */
void acs_log_hush(bool hush);
bool acs_log_enabled(int level);
void acs_log(int level, const char *format, ...) ACS_PRINTF(2, 3);
/* Log whatever the level is: for the notices that acs.h promises. Callers write each of them once. */
void acs_log_always(int level, const char *format, ...) ACS_PRINTF(2, 3);

/* A defect in the library was found: log the text, whatever the level is, and abort. */
void acs_fatal(const char *format, ...) ACS_PRINTF(1, 2) __attribute__((noreturn));
/*
 * Assert an invariant, whose tag stands in a comment beside it (docs/invariants.md). Debug builds, and builds with a
 * sanitizer, define ACS_ASSERTIONS (cmake/AcsFlags.cmake). Other builds do not evaluate the condition.
 */
#ifdef ACS_ASSERTIONS
#define ACS_ASSERT(condition)                                                                                          \
    (ACS_LIKELY(condition) ? (void)0 : acs_fatal("%s:%d: %s: not so: %s", __FILE__, __LINE__, __func__, #condition))
#else
#define ACS_ASSERT(condition) ((void)(false && (condition)))
#endif

/* Deterministic random numbers (splitmix64): the same seed gives the same choices everywhere. */
typedef struct acs_random {
    uint64_t state;
} acs_random;
uint64_t acs_random_next(acs_random *random);
/* Uniform in [0, n); 0 when n is 0. */
uint32_t acs_random_below(acs_random *random, uint32_t n);

/*
 * The CPU's counter of time, of a rate that is not known: a third of the cost of acs_clock_ns. The same on all CPUs, as the
 * system's clock relies on it too.
 */
uint64_t acs_clock_ticks(void);
/* Monotonic clock, nanoseconds. */
uint64_t acs_clock_ns(void);
/* Pause for a fraction of a microsecond, between two tries to take a lock. */
void acs_pause(void);
/*
 * Pause for about a microsecond, between two looks of a spinning thread. Other threads may run on this CPU meanwhile.
 */
void acs_pause_briefly(void);

/*
 * Make room for `wanted` elements in a list, whose room grows to at least twice what it was. Its owner frees it. False:
 * no memory; the list is as before.
 */
#define ACS_GROW(list, room, wanted) acs_grow(&(list), &(room), (wanted), sizeof *(list))
bool acs_grow(void *list, uint32_t *room, uint64_t wanted, size_t bytes);
/* An array of zeros, at a cache line. Pages of it that nobody touches cost nothing. NULL: no memory. */
void *acs_zeros(size_t count, size_t bytes);
void acs_zeros_free(void *array);

static inline uint64_t acs_hash64(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    return x;
}

static inline uint64_t acs_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t acs_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint32_t acs_round_up_pow2(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p <<= 1;
    return p;
}

#endif

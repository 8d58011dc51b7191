/*
 * Group "parts": the pieces of the caller's path alone, from one thread: a record from the pool and back, with and
 * without a block for its arguments and segments, and a trip through the FIFO. Called by main.
 */
#include "micro.h"
#include "window/record.h"
#include "window/fifo.h"

#include <stdio.h>

enum { BURST = 256 };

static acs_record *g_held[BURST];

/* Acquire a burst, then release it, in the order in which ops retire. */
static void records(const micro_options *options, acs_record_pool *pool, const char *name, uint32_t args,
                    uint32_t arg_bytes, uint32_t segments)
{
    static micro_samples samples;
    micro_samples_clear(&samples);
    while (!micro_samples_full(&samples, options)) {
        uint64_t start = acs_clock_ns();
        for (int i = 0; i < BURST; i++) {
            g_held[i] = acs_record_acquire(pool);
            (void)acs_record_reserve(pool, g_held[i], args, arg_bytes, segments);
        }
        for (int i = 0; i < BURST; i++)
            acs_record_release(pool, g_held[i]);
        micro_samples_add(&samples, acs_clock_ns() - start, BURST);
    }
    micro_figure("parts", name, &samples, -1);
}

static void fifo_trips(const micro_options *options, acs_fifo *fifo)
{
    static micro_samples samples;
    static acs_record records[BURST];
    micro_samples_clear(&samples);
    while (!micro_samples_full(&samples, options)) {
        uint64_t start = acs_clock_ns();
        for (int i = 0; i < BURST; i++)
            (void)acs_fifo_push(fifo, &records[i]);
        for (int i = 0; i < BURST; i++)
            (void)acs_fifo_pop(fifo);
        micro_samples_add(&samples, acs_clock_ns() - start, BURST);
    }
    micro_figure("parts", "fifo push + pop", &samples, -1);
}

int micro_parts(const micro_options *options)
{
    acs_record_pool *pool = NULL;
    acs_fifo *fifo = NULL;
    bool ready = acs_record_pool_create(BURST, &pool) == ACS_OK && acs_fifo_create(BURST, BURST, &fifo) == ACS_OK;
    if (ready) {
        records(options, pool, "record acquire + release, 4 arguments, 3 segments", 4, 32, 3);
        records(options, pool, "record acquire + release, 24 arguments, 20 segments", 24, 192, 20);
        fifo_trips(options, fifo);
    } else {
        fprintf(stderr, "acs-micro: no memory\n");
    }
    acs_fifo_destroy(fifo);
    acs_record_pool_destroy(pool);
    return !ready;
}

/*
 * An explorer of interleavings for the library's lock-free code. The sources under test are compiled unchanged, with
 * shadow/ before the system's headers: every atomic operation, fence, lock and condition wait becomes a *visible
 * operation*, at which a scheduler of our own chooses who goes on, and what a load returns. Plain accesses are seen through
 * the calls that -fsanitize=thread compiles in; hooks.c stands in for that sanitizer's library.
 *
 * Memory. A machine with views after C11 and C++20 (machine.c): each location has its stores in modification order, each
 * thread a view of what it must have seen, each store the view that it hands on. A load may return any store that is not
 * older than its thread's view; acquire, release, their fences, release sequences, seq_cst fences and accesses move
 * views as the standard says. Two plain accesses, one a write, that happens-before does not order are a data race.
 *
 * Search. Depth first, without stored states: an execution is run from the start again with other choices. Dynamic
 * partial-order reduction with sleep sets leaves out interleavings that only swap independent operations, and stale reads
 * that equal an earlier place of the load. Without a bound the search is exhaustive, in this model; with one on preemptions
 * it runs all that the bound allows.
 *
 * What it cannot show: modification order is the order of execution, so no outcome that needs a store to be put before
 * one that was executed earlier (2+2W), and no load that returns what is stored later (load buffering, values out of thin
 * air). Compare-exchange fails only where the values differ. Timed waits do not time out, and nobody wakes without a
 * signal: a thread that relies on either is reported as a deadlock. seq_cst accesses beside fences are a little weaker
 * than the standard has them, which can give false alarms and misses nothing. Small scenarios only: what holds for three
 * threads and a few operations is not proved for more.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------------- for scenarios */

enum { MODEL_THREADS = 5 };

typedef struct model_scenario {
    const char *name;
    const char *what;            /* one line for the table */
    void (*setup)(void);         /* once; what it allocates is put back before every execution */
    void (*reset)(void);         /* before every execution, for what is not in the arena; or NULL */
    void (*threads[4])(void);    /* the scenario's threads; more may be made by pthread_create */
    void (*check)(void);         /* when all threads have ended; or NULL */
    uint64_t most;               /* executions in a short run; 0: all of them */
    int preemptions;             /* bound on how often a thread that could go on is interrupted; 0: none */
    uint64_t outcomes;           /* bits: exactly these numbers are told to model_outcome in a complete run; 0: any */
    bool fails;                  /* a test of the explorer: it must find a fault here */
} model_scenario;

/* The scenario is broken: print the interleaving, and end the exploration. */
#define model_require(condition)                                                                                       \
    ((condition) ? (void)0 : model_fail("%s:%d: not so: %s", __FILE__, __LINE__, #condition))
_Noreturn void model_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How an execution ended, a number below 64; for tests of the explorer. */
void model_outcome(uint32_t outcome);
/* Nobody waits for the calling thread: it may be asleep at the end. */
void model_daemon(void);

/* ------------------------------------------------------------------------- what the shadowed headers turn into */

typedef enum model_kind {
    MODEL_LOAD, MODEL_STORE, MODEL_ADD, MODEL_EXCHANGE, MODEL_CAS, MODEL_FENCE,
    MODEL_LOCK, MODEL_UNLOCK, MODEL_WAIT, MODEL_RELOCK, MODEL_WAKE, MODEL_SPAWN, MODEL_JOIN, MODEL_EXIT
} model_kind;

/* A place in a source that does a visible operation. */
typedef struct model_site {
    const char *file;
    int line;
    const char *function;
    const char *text;      /* the object as the source names it */
    model_kind kind;
    int order, fail_order; /* as written; -1: none */
    struct model_site *next;
    uint64_t scenarios;    /* by number: those that came here */
} model_site;

uint64_t model_load(model_site *site, const volatile void *at, size_t bytes, int order);
void model_store(model_site *site, volatile void *at, size_t bytes, uint64_t value, int order);
/* MODEL_ADD, MODEL_EXCHANGE: the value before. */
uint64_t model_change(model_site *site, volatile void *at, size_t bytes, uint64_t operand, int order);
bool model_compare(model_site *site, volatile void *at, size_t bytes, uint64_t *expected, uint64_t desired, int order,
                   int fail_order);
void model_fence(model_site *site, int order);

/* The object is known by its address alone. A wait gives the mutex up and takes it again. */
void model_mutex(model_site *site, model_kind kind, void *mutex);
void model_wait(model_site *site, void *cond, void *mutex);
void model_wake(model_site *site, void *cond);
int model_spawn(model_site *site, void *(*function)(void *), void *argument);
void model_join(model_site *site, int thread);

/* Memory that every execution finds as setup left it. A block is not used again in the same execution. */
void *model_alloc(size_t bytes, size_t align);
void *model_calloc(size_t count, size_t bytes);
void model_free(void *block);

#endif

/*
 * Between the files of the explorer: operations, objects, and what machine.c (memory), explore.c (choices) and arena.c
 * (the memory that executions share) ask of each other. Scenarios include model.h alone.
 */
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "model.h"

enum { MODEL_OBJECTS = 128, MODEL_STORES = 200, MODEL_STEPS = 1500, MODEL_TOUCHES = 3, MODEL_STACK = 256 << 10 };

typedef struct model_op {
    model_kind kind;
    const model_site *site;
    uintptr_t at;       /* location, mutex, condition; the thread of SPAWN, JOIN and EXIT */
    uintptr_t mutex;    /* of WAIT */
    uint32_t bytes;
    uint64_t operand, expected;
    int order, fail_order;
    /* result */
    uint64_t value;
    uint64_t newest;    /* LOAD, CAS: what the newest store holds */
    bool done;          /* CAS */
} model_op;

/* explore.c: whether event `index` of `of` is in the past of `thread`, by any dependency. */
bool model_in_past(int thread, int of, uint32_t index);
/* The thread that runs; -1 during setup and check. */
int model_current(void);
/* Threads made so far in this execution. */
int model_threads(void);
/* Every read is to be offered, not only those that no other order of the same operations shows. */
bool model_unreduced(void);
/* What the thread that runs did last, as file:line; for messages. */
const char *model_place(int thread);

/* machine.c */
void machine_reset(void);
void machine_spawn(int parent, int child);
void machine_join(int thread, int ended);
/* Choices that a perform of this operation would have now, at least 1. */
int machine_choices(int thread, const model_op *op);
/* `index`: the event's number among those of its thread, from 1. */
void machine_perform(int thread, model_op *op, int choice, uint32_t index);
bool machine_mutex_free(uintptr_t mutex);
void machine_plain(const void *at, size_t bytes, bool write, const void *caller);
void machine_freed(const void *at, size_t bytes);
/* A small number that stays with an address for the rest of the execution. */
int machine_name(uintptr_t at);
/* Give locations outside of the arena what they had before the execution. */
void machine_restore(void);

/* The order that counts: that of the source unless the site is the one being weakened. */
typedef struct model_weakened {
    const model_site *site;
    bool fail_order;
} model_weakened;
extern model_weakened g_weakened;
extern model_site *g_sites;  /* all that were reached */
extern uint32_t g_scenario;  /* number of the one that runs, for model_site.scenarios */

/* arena.c: one region for the memory of scenarios and the stacks of their threads */
void arena_init(void);
void arena_clear(void);
/* Setup is over: keep what there is. */
void arena_keep(void);
void arena_restore(void);
char *arena_stack(int thread);
/* Of the blocks that setup made. */
uint64_t arena_hash(void);
/* Number of the 8 bytes that `at` points into, or SIZE_MAX outside of the region. */
size_t arena_granule(const void *at);
size_t arena_granules(void);

typedef struct model_result {
    uint64_t executions, redundant, operations;
    uint64_t outcomes;
    uint64_t states;  /* different contents of the arena at the ends of executions, if limits.states */
    uint32_t longest;
    int threads;      /* most at once */
    bool failed, complete, cut_off; /* cut off: by the limit on executions */
    char text[400];
    char replay[MODEL_STEPS * 2 + 1];
} model_result;

typedef struct model_limits {
    uint64_t executions;   /* 0: no limit */
    int preemptions;       /* -1: no bound */
    const char *replay;    /* one execution only; or NULL */
    bool quiet;            /* no trace of a failure */
    bool states;           /* count what executions end in */
    enum { MODEL_REDUCED, MODEL_SLEEP_SETS, MODEL_NO_REDUCTION } reduction; /* less of it, to compare with */
} model_limits;

/* reduction.c: scenarios with and without reductions end in the same states. Returns how many do not. */
int compare_reduction(uint64_t most);
/* orders.c: weaken each memory order in turn; some scenario has to notice. Returns how many it was not so for. */
int weaken_orders(uint64_t most);

void explore(const model_scenario *scenario, const model_limits *limits, model_result *result);
void trace_print(const model_op *op, int thread, uint32_t step);
const char *order_name(int order);

#endif

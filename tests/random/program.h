/*
 * A random program: what generate.c makes from a seed, runner.c runs through the public API, and oracle.c runs
 * serially in program order and compares. The list of steps is the program order; with several producing threads
 * either each has arenas of its own (any merge of the threads gives the same bytes), or they pass a baton in the order
 * of the list.
 */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include "acs.h"
#include "mix.h"
#include "overlap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a program is run; derived from the seed and the command line, printed when something fails. */
typedef struct random_config {
    uint64_t seed;
    acs_options options;
    uint32_t slots_first, slots_deep; /* for acs_slots_shape: programs are too small to make many slots active else */
    bool slots_eager;
    uint32_t joins, edges, marks; /* room for so few, since programs are too small to run out of it else; 0: as usual */
    uint32_t ops;       /* steps */
    uint32_t threads;   /* producing threads */
    bool baton;         /* they pass a baton: one global order over shared arenas */
    bool crowded;       /* many read one whole, many write its parts: joins, which other programs hardly ever need */
    bool dense;         /* mostly kernels of few types, much of it again and again, and callers that run ahead: bundles */
    uint32_t ahead;     /* sim: workers get a turn after one of so many calls; 0: after each */
    bool relocatable;   /* several devices: blocks may be anywhere, and kernels tell where they have pointers to them */
    bool lazy;          /* and some of them are addresses alone; threads say where their ops are to run */
    bool tight;         /* there is little more memory than what does not move and one op take */
    bool failing;       /* host functions and calls fail at times */
    bool checker;       /* record the run and check soundness and precision */
    bool verbose;       /* print more about what fails */
    bool gpu;           /* device memory cannot be touched by the program */
    bool may_lose;      /* the device may be lost on purpose */
    bool trace;         /* print each step of the run */
    bool decides;       /* many ops are decided by words in memory: sections.h; other programs have some, too */
    bool variants;      /* kernels have versions, among which the runtime picks */
    bool shares;        /* some launches may take a part of the GPU only */
    unsigned char *drop; /* NULL, or for each step whether it is left out */
} random_config;

/* The section and branch that a step lies in (sections.h); index -1: none. */
typedef struct section_place {
    int index;
    bool other; /* behind acs_else */
} section_place;

typedef enum step_kind {
    STEP_KERNEL, STEP_MEMCPY, STEP_MEMSET, STEP_HOST, STEP_CALL, STEP_AFTER_STREAM, STEP_ALLOC, /* ops that can be skipped */
    STEP_FREE, STEP_CALLBACK,                                                                   /* ops that never are */
    STEP_WAIT, STEP_QUERY, STEP_WAIT_RANGE, STEP_STREAM_AFTER, STEP_SYNC, STEP_CLEAR, STEP_STEP, STEP_REFUSED,
    STEP_NOTHING, /* left out */
    STEP_KINDS
} step_kind;

typedef enum arena_kind { ARENA_PLAIN, ARENA_DEVICE, ARENA_HOST /* acs_malloc of pinned memory */ } arena_kind;

typedef struct arena {
    arena_kind kind;
    uint32_t bytes;
    uint32_t pitch;         /* of the tiles that are usual in it */
    uint32_t owner;         /* thread; 0 in programs with one order */
    bool temporary;         /* allocated by a step */
    bool words;             /* it holds words that decide (sections.h) */
    bool lazy;              /* ARENA_DEVICE: `real` is an address without memory */
    bool live;              /* while generating: may be used by the next step; later: not freed by a step */
    unsigned char *real;    /* what the library works on */
    unsigned char *truth;   /* what the oracle works on */
    uint32_t *writers;      /* step + 1 that wrote each byte of truth; only when a difference is explained */
} arena;

/* Bytes by arena, so that one description serves both memories. */
typedef struct span {
    int arena;              /* -1: no bytes: a token or all memory */
    uint32_t offset;        /* key of a token */
    uint32_t row_bytes, rows, pitch;
    uint8_t access, extent;
} span;

typedef struct step {
    step_kind kind;
    uint32_t thread;
    uint32_t index;         /* in the program */
    uint32_t id;            /* the op's id in its hash: the index, or that of a kernel with the same arguments */

    /* what it does */
    int signature;          /* KERNEL: -1 is the kernel without arguments, which touches nothing */
    uint32_t spin;
    uint32_t grid, block, shared_bytes;
    const span *work;       /* what is really touched; MEMCPY: dst, src; ranges and streams: the one span */
    uint32_t work_count;
    uint32_t extra_count;   /* HOST: further bytes in the closure */
    uint16_t extra_bytes[MIX_EXTRAS + 1];
    int value;              /* MEMSET, ALLOC */
    int fail;               /* HOST, CALL: nonzero: it reports this code and writes nothing */
    bool borrowed;          /* HOST: the closure is not copied */
    bool scratch;           /* CALL: wants scratch memory and a place */
    bool program_writes;    /* WAIT_RANGE: the program then writes the range itself */
    int arena;              /* ALLOC, FREE */
    struct step *target;    /* CALLBACK, WAIT, QUERY */

    section_place section;  /* that it lies in */
    bool counted;           /* KERNEL: its grid is read from the word `count` */
    span count;

    /* what it declares: `given` in the call, then the pieces from `computed_from` on by the footprint function */
    const span *given;
    uint32_t given_count;
    uint32_t computed_from; /* work_count: none */
    bool computed;
    bool any;

    /* what was observed */
    acs_op op;
    acs_status result;      /* what the call returned */
    acs_error error;        /* acs_op_error at the end, or before a clear */
    uint32_t callbacks;
    acs_op callback_op;
    acs_status callback_status;
    acs_segment *segments;  /* the declared footprint with addresses */
    uint32_t segment_count;
    unsigned char *closure; /* of a borrowed closure */
    unsigned char *seen;    /* WAIT_RANGE, STREAM_AFTER: the bytes as the program saw them */

    /* what the oracle says */
    acs_status fate;
    bool by_decision;       /* its failure may descend from a decision, which is no step */
    uint64_t *roots;        /* failed ops, by step, that a failed or skipped op descends from */
} step;

enum { REPEATED_PIECES = 5 }; /* with more the closure is too large for a repeatable call */

/* A library call that keeps the contract of repeatable ones: its function is the same for several steps. */
static inline bool step_repeats(const step *s)
{
    return s->kind == STEP_CALL && s->fail == 0 && s->extra_count == 0 && s->work_count <= REPEATED_PIECES;
}

/* What its op computes with: of all calls that repeat the same number, so that one may be like another. */
static inline uint32_t step_id(const step *s)
{
    return step_repeats(s) ? 0 : s->id;
}

typedef struct block block;

typedef struct program {
    random_config config;
    step *steps;
    uint32_t step_count;
    struct section *sections;
    uint32_t section_count;
    arena *arenas;
    uint32_t arena_count;
    uint32_t period;        /* of a dense program: steps after which much comes again; 0: it is none */
    bool direct_init;       /* new memory is filled by the program, because an op could be skipped */
    block *blocks;          /* all memory of the program */
    acs_error lost;         /* status ACS_ERR_DEVICE: the device was lost, and what the library said of it */
} program;

/* What its op is told. Versions may change the number of blocks, so results then do not depend on it. */
static inline mix_head step_head(const program *p, const step *s)
{
    return (mix_head){.id = step_id(s), .pieces = s->work_count, .extras = s->extra_count,
                      .spin = (uint16_t)(step_repeats(s) ? 0 : s->spin),
                      .counts_blocks = s->kind == STEP_KERNEL && !p->config.variants};
}

typedef struct dice {
    uint64_t state;
} dice;

static inline uint64_t dice_next(dice *d)
{
    d->state += 0x9e3779b97f4a7c15u;
    return mix_hash(d->state);
}
static inline uint32_t dice_below(dice *d, uint32_t n)
{
    return n ? (uint32_t)((dice_next(d) >> 16) % n) : 0;
}
static inline bool dice_percent(dice *d, uint32_t percent)
{
    return dice_below(d, 100) < percent;
}

/* Sizes of a signature's further arguments; returns how many, and how many pieces fit. */
uint32_t signature_extras(int signature, const uint16_t **bytes, uint32_t *pieces);

/* Zeroed memory that lives as long as the program. Ends the process when memory is exhausted. */
void *program_alloc(program *p, size_t bytes);
program *program_generate(const random_config *config);
void program_free(program *p);

enum { RANDOM_FAULTS = 9 }; /* ACS_FAULT_KINDS */

/* Totals over many programs, for the report: they show that the programs exercise what they should. */
typedef struct random_totals {
    uint64_t programs, ops, failed, skipped, edges, joins, same_slot, waits_sent, waits_implied, waits_complete;
    uint64_t caller_waits, barriers, checked, checked_pairs, checked_waits, late_marks, stale_waits, ranges;
    uint64_t copies_as_kernels, calls_as_kernels;
    uint64_t bundles, bundles_refused, issued_by[ACS_ISSUE_COUNT];
    uint64_t shares, shares_ignored;
    uint64_t variants, trials;
    uint64_t not_run;    /* ops that words in memory switched off */
    uint64_t replays, replayed; /* of repeats, and the kernels in them */
    uint64_t many_slots; /* programs with more than four active slots */
    uint64_t transfers;  /* copies between devices */
    uint64_t spilled;    /* bytes copied to the host, since memory was short */
    uint64_t lost;       /* programs that lost their device */
    uint64_t faults[RANDOM_FAULTS]; /* injected by the sim backend */
} random_totals;

/* Where a check that failed writes its one sentence. The first wins. */
typedef struct verdict {
    bool failed;
    char text[512];
} verdict;
void verdict_fail(verdict *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* All ops of the program have ended; the context is still open. */
void totals_add(random_totals *totals, acs_context *context, const program *p, verdict *v);
struct checker;
/* Check what was recorded, if anything was: `record` is NULL, or a checker. */
void totals_check(random_totals *totals, struct checker *record, const program *p, verdict *v);
/* Run through the library. */
void program_run(program *p, verdict *v, random_totals *totals);
/* Run serially and compare statuses and bytes. */
void program_verify(program *p, verdict *v, random_totals *totals);

/* The same after the device was lost. */
void program_verify_lost(program *p, verdict *v);
/* Of that the bytes: what ops did that ended well, but for what lost ops may have written. */
void program_verify_bytes(program *p, verdict *v);
/* A block was given back by step `at`: what earlier steps named in it moves to where nothing is. */
void program_forget_block(program *p, int arena, uint32_t at);

/* All steps to standard error. */
void program_dump(const program *p);
/* One line about a step, for messages. */
const char *step_name(const step *s);

/* The GPU's part: gpu.cu, or gpu_none.c where there is no CUDA. */
const void *gpu_kernel(int signature);
/* Fill memory that no op touches, and wait for it. */
int gpu_fill(void *memory, int value, size_t bytes);
/* Before the context is opened and after it was closed: a GPU that can be seeded, and judges what it was told. */
void gpu_begin(const random_config *config);
void gpu_end(verdict *v);
/* The context is open: kernels that are also bodies of an executor are made known to it. */
acs_status gpu_opened(acs_context *context);
/* From now on so many of 1000 pieces of work are refused. */
void gpu_faults(uint32_t per_mille);
/* Run the op in a stream; 0, or what CUDA said. */
int gpu_call(void *stream, const mix_head *head, const mix_piece *pieces);

#endif

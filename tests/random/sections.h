/*
 * Sections of decided ops in random programs (acs_if, acs_else, acs_end_if), loops (acs_loop), and grids that are read.
 * They are laid over a finished program: each step may lie in a section, whose word is in an arena of its own, where some
 * fills write zeros and other values. An iteration of a loop is a section whose word must be zero. Each has steps of its
 * own, those of the iterations in a row.
 */
#ifndef RANDOM_SECTIONS_H
#define RANDOM_SECTIONS_H

#include "program.h"

enum { SECTION_WORDS = 16, SECTION_DEPTH = 4, SECTION_ITEMS = 1 << 30 /* of a block: any word asks for 0 to 4 */ };

/* Whether the program has such ops. Sections belong to a thread: coroutines of one thread would share them. */
static inline bool program_decides(const random_config *config)
{
    const bool fibers = config->threads > 1 && config->options.backend == ACS_BACKEND_SIM;
    return !config->may_lose && !fibers && (config->decides || mix_hash(config->seed + 0x3f1c02d7) % 3 == 0);
}

typedef struct section {
    section_place around;
    int arena; /* of its word */
    uint32_t offset;
    bool unless;
    /* of an iteration */
    int before;                   /* index of the one before it; -1: none */
    uint32_t first, length, left; /* its steps, and iterations from this one on; 0: it is no iteration */
    /* what the oracle says */
    bool decided[2], runs[2], failed[2]; /* by branch; failed: its decision was skipped */
} section;

/* What becomes of a step, as far as decisions say. */
typedef enum section_fate {
    SECTION_RUNS,
    SECTION_OFF,
    SECTION_FAILED /* a decision that it obeys was skipped */
} section_fate;
/* Whether a failure reaches a decision that reads this word of an arena. */
typedef bool sections_failed(void *user, int arena, uint32_t offset);

/* Lay sections over the program's steps. `words`: the arena of words of each thread. */
void sections_generate(program *p, const int *words);

/* Where a producer is. */
typedef struct section_stack {
    section_place list[SECTION_DEPTH];
    uint32_t depth;
} section_stack;
/* Before the program: with faults, let the context make what sections need, so that launches do not fail for it. */
bool sections_begin(const program *p, acs_context *context);
/* Before a step of the producer, and behind its last one (`to` -1). False: a call failed. */
bool sections_move(section_stack *stack, const program *p, acs_context *context, section_place to);

/* A step of an iteration whose call the program has to make. */
typedef void section_step(void *user, step *s);
/* The step behind the loop that begins at step `at`; `at`: none begins there. */
uint32_t sections_loop_end(const program *p, uint32_t at);
/* Run that loop. False: a call failed. */
bool sections_loop(section_stack *stack, program *p, acs_context *context, uint32_t at, section_step *run, void *user);
/* Whether the loop was over before the step came, which was not queued therefore. */
bool sections_missed(const program *p, const step *s);

/* Let a kernel's grid be read, as its step says. */
void sections_count(acs_launch_params *launch, const program *p, const step *s);

/* The oracle forgets what it decided: it begins anew, or acs_clear forgot failures. */
void sections_reset(program *p);
/* Whether the step obeys a decision. */
bool sections_decide(const step *s);
/* Whether the step touches words that decide, which only fills and ops that fail to write them do. */
bool sections_writes_word(const program *p, const step *s);
/* The number of blocks that the word `count` asks for now. */
uint32_t sections_blocks(const program *p, const step *s);
/* The fate of a step. Steps are judged in program order. */
section_fate sections_judge(program *p, const step *s, sections_failed *failed, void *user);

#endif

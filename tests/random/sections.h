/*
 * Sections of decided ops in random programs (acs_if, acs_else, acs_end_if), and grids that are read. They are laid over a
 * finished program: each step may lie in a section, whose word is in an arena of its own, where some fills and kernels
 * write zeros and other values.
 */
#ifndef RANDOM_SECTIONS_H
#define RANDOM_SECTIONS_H

#include "program.h"

enum { SECTION_WORDS = 16, SECTION_DEPTH = 4, SECTION_ITEMS = 1 << 30 /* of a block: any word asks for 0 to 4 */ };

/* Whether the program has such ops. Sections belong to a thread: coroutines of one thread would share them. */
static inline bool program_decides(const random_config *config)
{
    const bool fails = config->failing || config->options.faults || config->may_lose;
    const bool fibers = config->threads > 1 && config->options.backend == ACS_BACKEND_SIM;
    return !fails && !fibers && (config->decides || mix_hash(config->seed + 0x3f1c02d7) % 3 == 0);
}

typedef struct section {
    section_place around;
    int arena; /* of its word */
    uint32_t offset;
    bool unless;
    /* what the oracle says */
    bool decided[2], runs[2]; /* by branch */
} section;

/* Lay sections over the program's steps. `words`: the arena of words of each thread. */
void sections_generate(program *p, const int *words);

/* Where a producer is. */
typedef struct section_stack {
    section_place list[SECTION_DEPTH];
    uint32_t depth;
} section_stack;
/* Before a step of the producer, and behind its last one (`to` -1). False: a call failed. */
bool sections_move(section_stack *stack, const program *p, acs_context *context, section_place to);

/* Let a kernel's grid be read, as its step says. */
void sections_count(acs_launch_params *launch, const program *p, const step *s);

/* The oracle forgets what it decided. */
void sections_reset(program *p);
/* Whether a step runs that the library queued in program order; it is judged in that order. */
bool sections_runs(program *p, const step *s);

#endif

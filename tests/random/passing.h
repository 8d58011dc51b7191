/*
 * Half of the dense programs say where they repeat themselves: a pass of a repeat begins with each period, or with some.
 * Threads use one key, or one each; a key that another thread's pass has is refused.
 */
#ifndef RANDOM_PASSING_H
#define RANDOM_PASSING_H

#include "program.h"

/* Whether the program says it. The checker knows no replays. */
static inline bool program_passes(const random_config *config)
{
    return config->dense && !config->checker && mix_hash(config->seed + 0x51ed270b) % 2 == 0;
}

/* The pass that a producer is in. All zero: none. */
typedef struct passing {
    uint32_t round; /* period of the program in which it began, plus 1 */
    bool open;
} passing;

/* Before a step of the producer. False: a pass that is open could not be ended. */
bool passing_next(passing *pass, const program *p, acs_context *context, const step *s);
/* Behind its last step; some passes stay open until the context is closed. */
void passing_last(const passing *pass, const program *p, acs_context *context);

#endif

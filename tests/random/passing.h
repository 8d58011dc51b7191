/*
 * Half of the dense programs repeat themselves in passes. They say so, where a period begins, or at some periods: threads
 * use one key, or one each; a key that another thread's pass has is refused. Or the context finds passes by itself: then
 * some periods begin with a wait for everything. A few programs do both.
 */
#ifndef RANDOM_PASSING_H
#define RANDOM_PASSING_H

#include "program.h"

/* Whether the program does. The checker knows no replays. */
static inline bool program_passes(const random_config *config)
{
    return config->dense && !config->checker && mix_hash(config->seed + 0x51ed270b) % 2 == 0;
}

static inline uint64_t passing_roll(const random_config *config)
{
    return mix_hash(config->seed + 0x51ed270b);
}

/* Whether the context finds the passes. */
static inline bool passing_automatic(const random_config *config)
{
    return program_passes(config) && passing_roll(config) >> 16 & 1;
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

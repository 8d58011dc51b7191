/* The passes of producers. Called by runner.c; the seed alone decides. */
#include "passing.h"

bool passing_next(passing *pass, const program *p, acs_context *context, const step *s)
{
    const uint64_t roll = mix_hash(p->config.seed + 0x51ed270b), now = roll ^ mix_hash(s->index);
    const uint32_t round = p->period ? s->index / p->period + 1 : 0;
    if (!program_passes(&p->config) || round == pass->round)
        return true;
    const bool ended = !pass->open || acs_repeat_end(context) == ACS_OK;
    pass->round = round;
    pass->open = now % 8 && acs_repeat_begin(context, roll % 8 ? s->thread : 7) == ACS_OK;
    return ended;
}

void passing_last(const passing *pass, const program *p, acs_context *context)
{
    if (pass->open && p->config.seed % 3)
        (void)acs_repeat_end(context);
}

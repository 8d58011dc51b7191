/* The passes of producers. Called by runner.c; the seed alone decides. */
#include "passing.h"

bool passing_next(passing *pass, const program *p, acs_context *context, const step *s)
{
    const uint64_t roll = passing_roll(&p->config), now = roll ^ mix_hash(s->index);
    const uint32_t round = p->period ? s->index / p->period + 1 : 0;
    if (!program_passes(&p->config) || round == pass->round)
        return true;
    const bool ended = !pass->open || acs_repeat_end(context) == ACS_OK;
    const bool automatic = passing_automatic(&p->config), names = !automatic || (roll >> 24) % 8 == 0;
    pass->round = round;
    if (automatic && now >> 8 & 3)
        (void)acs_sync(context); /* its errors are those of ops */
    pass->open = names && now % 8 && acs_repeat_begin(context, roll % 8 ? s->thread : 7) == ACS_OK;
    return ended;
}

void passing_last(const passing *pass, const program *p, acs_context *context)
{
    if (pass->open && p->config.seed % 3)
        (void)acs_repeat_end(context);
}

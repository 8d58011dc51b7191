/*
 * Programs of blocks that move (--lazy): how much memory they need at least, where they say that ops are to run, and
 * what is left at the end. Called by generate.c and runner.c. Hints have dice of their own: results do not depend on
 * them.
 */
#include "moving.h"

#include "declared.h"
#include "residency/relocatable.h"
#include "residency/device_choice.h"

#include <inttypes.h>

/* Blocks that move and the step names: they have to be on one device together. */
static uint32_t operands_of(const program *p, const step *s)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->arena_count; i++) {
        bool named = false;
        for (uint32_t k = 0; k < s->work_count; k++)
            named |= s->work[k].arena == (int)i;
        for (uint32_t k = 0; k < s->given_count; k++)
            named |= s->given[k].arena == (int)i;
        count += named && p->arenas[i].kind != ARENA_PLAIN;
    }
    return count;
}

/* For what does not move, as if all of it lived at once on one device, and for the op that names most. */
int64_t moving_least_memory(const program *p)
{
    uint32_t fixed = 0, most = 1;
    for (uint32_t i = 0; i < p->arena_count; i++)
        fixed += p->arenas[i].kind == ARENA_DEVICE && !p->arenas[i].lazy;
    for (uint32_t i = 0; i < p->step_count; i++) {
        const uint32_t count = operands_of(p, &p->steps[i]);
        most = count > most ? count : most;
    }
    return (int64_t)MOVING_TIGHT_BYTES * (fixed + most);
}

enum { TRIES_MOST = 50 };

static bool roll(const random_config *c, const step *s, uint64_t salt, uint32_t percent, dice *d)
{
    *d = (dice){c->seed ^ (salt + s->index)};
    return c->lazy && dice_percent(d, percent);
}

/* A share for a third of the launches: all of them, with few slots each, would do nothing but change streams. */
static void roll_share(const random_config *c, const step *s, acs_launch_params *launch)
{
    static const uint8_t shares[] = {1, 10, 30, 30, 50, 50, 50, 70, 99, 100};
    dice d = {c->seed ^ (0xb492b66fbe98f273u + s->index)};
    if (c->shares && dice_percent(&d, 33))
        launch->attributes.share = shares[dice_below(&d, sizeof shares)];
}

acs_op moving_launch(const random_config *c, acs_context *context, const step *s, acs_launch_params *launch)
{
    acs_op op = 0;
    dice d;
    declared_launch(s, launch);
    if (roll(c, s, 0x27d4eb2f165667c5u, 15, &d) && c->options.devices > 1)
        launch->attributes = ACS_ON(dice_below(&d, (uint32_t)c->options.devices));
    roll_share(c, s, launch);
    launch->no_wait = roll(c, s, 0xc2b2ae3d27d4eb4fu, 20, &d);
    for (int tries = 0; !op && (tries == 0 || acs_last_error(NULL) == ACS_ERR_FULL); tries++) {
        launch->no_wait &= tries < TRIES_MOST; /* the others may be waiting for us */
        op = acs_launch(context, launch);
        if (!op)
            (void)acs_step(context);
    }
    return op;
}

void moving_hint(const random_config *c, acs_context *context, const step *s)
{
    dice d;
    if (roll(c, s, 0x85ebca6b0c2b2ae3u, 12, &d) && c->options.devices > 1)
        (void)acs_on(context, (int)dice_below(&d, (uint32_t)c->options.devices + 1) - 1);
}

void moving_check(acs_context *context, verdict *v)
{
    acs_statistics st = {.size = sizeof st};
    (void)acs_sync(context);
    if (acs_stats(context, &st) != ACS_OK || st.memory_live)
        verdict_fail(v, "%" PRIu64 " bytes of device memory are in use when all was freed", st.memory_live);
    if (context->relocatables->host_bytes || context->relocatables->version_bytes)
        verdict_fail(v, "%" PRIu64 " bytes of host copies and %" PRIu64 " of versions when all was freed",
                     context->relocatables->host_bytes, context->relocatables->version_bytes);
    for (uint32_t d = 0; context->device_choice && d < context->device_choice->count; d++) {
        uint64_t ended =
            atomic_load_explicit(&context->device_choice->ended[d], memory_order_relaxed); /* nothing runs */
        if (context->device_choice->placed[d] != ended)
            verdict_fail(v, "device %u was given %" PRIu64 " ops, of which %" PRIu64 " ended", d,
                         context->device_choice->placed[d], ended);
    }
    if (context->device_choice && context->device_choice->bytes)
        verdict_fail(v, "%" PRIu64 " bytes are anywhere when all was freed", context->device_choice->bytes);
}

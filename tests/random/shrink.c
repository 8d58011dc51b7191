/*
 * Makes a program that fails smaller: leaves out steps, half of them, then a quarter and so on, for as long as it
 * still fails in some order. Each try runs in a process of its own, so that crashes and hangs count as failures.
 * Called by main.c (--shrink).
 */
#include "shrink.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDERS = 24, TRY_SECONDS = 10 }; /* seeds of the order that each program is tried with */

static bool names_arena(const step *s, int which)
{
    bool found = s->arena == which && s->kind == STEP_FREE;
    for (uint32_t i = 0; i < s->work_count; i++)
        found |= s->work[i].arena == which;
    for (uint32_t i = 0; i < s->given_count; i++)
        found |= s->given[i].arena == which;
    return found;
}

void program_drop(program *p, const unsigned char *dropped, uint32_t count)
{
    for (uint32_t i = 0; i < p->step_count && i < count; i++) {
        step *s = &p->steps[i];
        bool gone = dropped[i] || (s->target && s->target->kind == STEP_NOTHING);
        if (!gone || s->kind == STEP_NOTHING)
            continue;
        for (uint32_t j = i + 1; s->kind == STEP_ALLOC && j < p->step_count; j++)
            if (names_arena(&p->steps[j], s->arena))
                p->steps[j].kind = STEP_NOTHING;
        if (s->kind == STEP_ALLOC)
            p->arenas[s->arena].live = false;
        s->kind = STEP_NOTHING;
    }
    for (uint32_t i = 0; i < p->step_count; i++)
        if (p->steps[i].target && p->steps[i].target->kind == STEP_NOTHING)
            p->steps[i].kind = STEP_NOTHING;
}

/* Whether the program fails with this order; what it prints is lost. */
static bool fails(const random_config *config, try_fn try, void *user)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY);
        dup2(nothing, 2);
        alarm(TRY_SECONDS);
        _exit(try(user, config) ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* The order that made it fail stays first: it often does again. */
static bool fails_in_some_order(random_config *config, try_fn try, void *user)
{
    int64_t first = config->options.seed;
    for (int k = 0; k < ORDERS; k++) {
        config->options.seed = k == 0 ? first : first + k;
        if (fails(config, try, user))
            return true;
    }
    config->options.seed = first;
    return false;
}

/* Leave out each run of `chunk` steps without which it still fails. Were there any? */
static bool leave_out(random_config *config, uint32_t chunk, unsigned char *before, try_fn try, void *user)
{
    bool smaller = false;
    for (uint32_t at = 0; at < config->ops; at += chunk) {
        uint32_t length = config->ops - at < chunk ? config->ops - at : chunk;
        if (!memchr(config->drop + at, 0, length))
            continue;
        memcpy(before, config->drop, config->ops);
        memset(config->drop + at, 1, length);
        if (fails_in_some_order(config, try, user))
            smaller = true;
        else
            memcpy(config->drop, before, config->ops);
    }
    return smaller;
}

void shrink(random_config *config, try_fn try, void *user)
{
    unsigned char *before = malloc(config->ops);
    uint32_t chunk = config->ops > 1 ? config->ops / 2 : 1;
    while (before && (leave_out(config, chunk, before, try, user) || chunk > 1))
        chunk = chunk > 1 ? chunk / 2 : 1;
    free(before);
}

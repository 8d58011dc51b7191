/* shrink.c: what is left of a program is what its failure needs, in an order in which it fails; crashes are failures too. */
#include "shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 100, ORDER = 3 };

/* Fails while steps 3 and 64 are there, in one order of four; crashes where `user` says so. */
static bool try(void *user, const random_config *config)
{
    bool bad = !config->drop[3] && !config->drop[64] && config->options.seed % 4 == ORDER;
    if (bad && user)
        abort();
    return !bad;
}

static int check(const char *name, void *user)
{
    unsigned char drop[STEPS] = {0};
    random_config config = {.ops = STEPS, .drop = drop};
    uint32_t kept = 0;

    config.options.seed = ORDER;
    shrink(&config, try, user);
    for (uint32_t i = 0; i < STEPS; i++)
        kept += !drop[i];
    if (kept == 2 && !drop[3] && !drop[64] && config.options.seed % 4 == ORDER)
        return 0;
    fprintf(stderr, "%s: %u steps left, order %lld\n", name, kept, (long long)config.options.seed);
    return 1;
}

int main(void)
{
    return check("a program that fails", NULL) | check("a program that crashes", &(int){1});
}

/*
 * Random numbers for choices that must be repeatable: every order that the sim backend tries, and the programs that
 * tests generate. Splitmix64 (Steele, Lea and Flood, 2014). Not for secrets; has no state but the caller's.
 */
#include "base/base.h"

uint64_t acs_random_next(acs_random *random)
{
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t acs_random_below(acs_random *random, uint32_t n)
{
    if (n == 0)
        return 0;
    /* Scale 32 random bits to [0, n). The lowest 2^32 mod n products would favour some results: Lemire 2019. */
    uint32_t unfair = (0u - n) % n;
    uint64_t product;
    do {
        product = (acs_random_next(random) >> 32) * n;
    } while ((uint32_t)product < unfair);
    return (uint32_t)(product >> 32);
}

/*
 * What the parts of acs_rand share: a draw as data, and the two machines that make it. Not installed.
 *
 * acs_rand.c checks arguments and makes footprints; host.c and cuda.c make the numbers when ACS asks them to.
 */
#ifndef ACS_RAND_INTERNAL_H
#define ACS_RAND_INTERNAL_H

#include "acs_rand.h"
#include "common/wrap.h"
#include "rand/numbers.h"

/* Whether a number takes two of 32 bits. */
static inline bool acs_rand_is_wide(uint64_t kind)
{
    return kind == ACS_RAND_UNIFORM_DOUBLE || kind == ACS_RAND_NORMAL_DOUBLE;
}

/* Runs on the CPU, on the calling thread. */
void acs_rand_host_run(const acs_rand_args *args);

/* Issues to env->stream. @return 0 or a code */
int acs_rand_cuda_run(const acs_call_env *env, const acs_rand_args *args);
bool acs_rand_cuda_load(const char **why);

#endif

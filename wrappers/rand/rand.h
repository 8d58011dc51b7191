/*
 * What the parts of acs_rand share: a draw as data, and the two machines that make it. Not installed.
 *
 * acs_rand.c checks arguments and makes footprints; host.c and cuda.c make the numbers when ACS asks them to.
 */
#ifndef ACS_RAND_INTERNAL_H
#define ACS_RAND_INTERNAL_H

#include "acs_rand.h"
#include "common/wrap.h"

/*
 * cuRAND's order: the sequence is made of passes. In each pass every one of 65536 subsequences gives a block of four numbers
 * of 32 bits. In a pass of doubles it gives four doubles, which are two blocks.
 */
enum { ACS_RAND_PASS = 65536 * 4 };

typedef enum acs_rand_kind {
    ACS_RAND_BITS,
    ACS_RAND_UNIFORM,
    ACS_RAND_UNIFORM_DOUBLE,
    ACS_RAND_NORMAL,
    ACS_RAND_NORMAL_DOUBLE
} acs_rand_kind;

/* Whether a number takes two of 32 bits. */
static inline bool acs_rand_is_wide(uint64_t kind)
{
    return kind == ACS_RAND_UNIFORM_DOUBLE || kind == ACS_RAND_NORMAL_DOUBLE;
}

/* The closure of an op. */
typedef struct acs_rand_args {
    uint64_t kind; /* acs_rand_kind */
    uint64_t seed, position;
    void *out;
    uint64_t count;
    double mean, deviation; /* exact for float too */
} acs_rand_args;

/* Runs on the CPU, on the calling thread. */
void acs_rand_host_run(const acs_rand_args *args);

/* Issues to env->stream. @return 0 or a code */
int acs_rand_cuda_run(const acs_call_env *env, const acs_rand_args *args);
bool acs_rand_cuda_load(const char **why);

#endif

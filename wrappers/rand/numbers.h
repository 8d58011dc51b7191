/*
 * A draw as data, and the order of the numbers. For C, and for the kernels of numbers.cu.
 */
#ifndef ACS_RAND_NUMBERS_H
#define ACS_RAND_NUMBERS_H

#include <stdint.h>

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

/* The closure of an op, and the parameter of a kernel. */
typedef struct acs_rand_args {
    uint64_t kind; /* acs_rand_kind */
    uint64_t seed, position;
    void *out;
    uint64_t count;
    double mean, deviation; /* exact for float too */
} acs_rand_args;

#endif

/*
 * A resident executor as a C function over the twin: it reads a launch as acs_resident.cuh does, runs the entries of its
 * table in an order of a seed, and checks what the executor relies on. One thread.
 */
#ifndef EXECUTOR_DOUBLE_H
#define EXECUTOR_DOUBLE_H

#include "acs_executor.h"

#include <stdint.h>

typedef struct executor_double {
    uint64_t seed;
    const char *wrong; /* the first rule that a table broke; NULL: none */
    uint32_t bundles, ops, joins;
    /* All blocks of an op run now; `args` are its arguments at the offsets of the kernel's parameters. */
    void (*run)(const acs_executor_op *op, const unsigned char *args);
} executor_double;

/* A copy or fill of the library's own. */
void executor_double_own(const acs_executor_op *op, const unsigned char *args);
void executor_double_run(executor_double *self, const acs_executor_launch *launch);

#endif

/*
 * Between bodies.c, calls.c and run.c.
 */
#ifndef FUZZ_CALLS_H
#define FUZZ_CALLS_H

#include "program.h"

enum { FUZZ_ANY_CALLS = 21, FUZZ_CLOSURE_WORDS = 200 };

typedef struct fuzz_closure {
    fuzz_event *event;
    uint64_t words[FUZZ_CLOSURE_WORDS];
} fuzz_closure;

uint8_t fuzz_arg_byte(const fuzz_event *e, uint32_t arg, uint32_t k);
void fuzz_kernel_body(const acs_grid *grid, void *const *args);
int fuzz_host_body(void *closure);
int fuzz_host_borrowed(void *closure);
int fuzz_call_body(const acs_call_env *env, void *closure);
void fuzz_place_destroy(void *place);
void fuzz_retire_body(void *user, acs_op op, acs_status status);

#endif

/* The bodies of a random program's ops, and what they found. */
#ifndef RANDOM_BODIES_H
#define RANDOM_BODIES_H

#include "program.h"

/* A closure is a code to fail with (or 0), a head, its pieces, and the bytes of the extras. */
typedef struct closure_head {
    int32_t fail;
    int32_t reserved[3];
    mix_head mix;
} closure_head;

void mix_body(const acs_grid *grid, void *const *args);
/* The pieces of a kernel's first argument, as a program's own footprint function would find them. */
size_t mix_footprint(const acs_footprint_input *in, acs_segment *out, size_t capacity);
void nothing_body(const acs_grid *grid, void *const *args);
int mix_host(void *closure);
int mix_call(const acs_call_env *env, void *closure);

/* Where the addresses of so many pieces lie in a closure, as acs_call_params.pointers. */
static inline uint64_t closure_pointers(uint32_t pieces)
{
    uint64_t pointers = 0;
    for (uint32_t i = 0; i < pieces; i++)
        pointers |= UINT64_C(1) << (sizeof(closure_head) + i * sizeof(mix_piece)) / 8;
    return pointers;
}
void place_destroy(void *place);
/* After acs_close: nothing runs any more. */
void bodies_check(verdict *v);

#endif

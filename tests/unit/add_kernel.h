/* A kernel of tests on several devices, which shows where its input came from. */
#ifndef ADD_KERNEL_H
#define ADD_KERNEL_H

#include "acs.h"

/* Adds one to each byte of `to`, out of `from`. */
static void add_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    unsigned char *to = *(unsigned char **)args[0];
    const unsigned char *from = *(const unsigned char **)args[1];
    size_t bytes = *(size_t *)args[2];
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(from[i] + 1);
}

static const acs_kernel g_add = ACS_KERNEL_HOST_INIT("add", add_body);

/* The same place: adds in place. */
static inline acs_op add_on(acs_context *context, int device, unsigned char *to, unsigned char *from, size_t bytes)
{
    acs_attributes on = ACS_ON(device);
    acs_uses same = ACS_USES(ACS_INOUT(to, bytes)), two = ACS_USES(ACS_OUT(to, bytes), ACS_IN(from, bytes));
    acs_op op = ACS_LAUNCH_WITH(context, on, &g_add, 1, 1, 0, ACS_ARGS(to, from, bytes), to == from ? same : two);
    assert_true(op > 0);
    return op;
}

#endif

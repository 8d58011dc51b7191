/* No tool takes ranges of NVTX in the explored program: in place of base/nvtx.c and window/nvtx_op.c. Never called. */
#include "window/nvtx_op.h"

bool acs_nvtx_taken;

void acs_nvtx_push_wait(const char *function, acs_op op)
{
    (void)function;
    (void)op;
}

bool acs_nvtx_op_push(const acs_record *op, int slot)
{
    (void)op;
    (void)slot;
    return false;
}

void acs_nvtx_pop(void)
{
}

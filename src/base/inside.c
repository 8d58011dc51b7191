/*
 * The mark of threads that run the program's code for the library (see inside.h). Set by the runtime around steps and
 * footprint functions, and for good by the executors of the host backend. Knows nothing else.
 */
#include "base/inside.h"

static _Thread_local bool tl_inside;

bool acs_inside(void)
{
    return tl_inside;
}

void acs_inside_set(bool inside)
{
    tl_inside = inside;
}

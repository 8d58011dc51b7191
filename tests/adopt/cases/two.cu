/* Two files, and a header with footprints that the first one includes. */
#include "two.h"
#if defined(MORE)
#include <cstdio>
#endif

__global__ void shared_kernel(float *x) { x[0] = 1; }

#include <cstddef>

void run(float *x)
{
    launch_shared(x);
    shared_kernel<<<1, 1>>>(x);
}

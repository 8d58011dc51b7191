/* A header with a kernel and a launch, for two.cu. */
#ifndef TWO_H
#define TWO_H

#ifdef MORE
#include <cstdio>
#endif
#include <cuda_runtime.h>

__global__ void shared_kernel(float *x);
inline void launch_shared(float *x)
{
    shared_kernel<<<1, 1>>>(x);
}

#endif

/* Members and functions that share a name with those of the program or of the standard library. */
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>
#include "members.h"

__global__ void kernel(float *x) { x[0] += 1; }
struct Mine { void run(float *) {} };

void run(std::vector<float> &host)
{
    float *x;
    Net net;
    Mine mine;
    std::vector<float *> all;
    cudaMalloc(&x, 4);
    kernel<<<1, 1>>>(x);
    net.run(x);
    net.load(x);
    net.push_back(x);
    net.forward();
    round(x, 1);
    read(x, 1);
    mine.run(x);
    all.push_back(x);
    host.push_back(1);
    printf("%p\n", (void *)x);
}

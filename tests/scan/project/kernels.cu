// Each index below comes from another place that CMake knows of.
#include "app_footprints.h"
#include "included.cuh"

__global__ void k(float *x, float *y, float *z)
{
#if __CUDA_ARCH__ >= 900
    x[DEFINED] = 1; // byte 12
#else
    y[OPTION + sizeof TEXT] = 1; // byte 36
#endif
    z[INCLUDED] = FLAG; // byte 28
}

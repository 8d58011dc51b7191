/*
 * Kernels with many accesses, since their loops are unrolled, and chunks that end at the size of an array. Compiled to
 * PTX and run by try_kernels.py; `check` bounds the length of their header.
 */

template <class T> __global__ void planes(T *y, const T *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int s = 0; s < 200; s++)
        y[s * n + i] = x[s * n + i] * T(s);
}
template __global__ void planes<float>(float *, const float *, int);
template __global__ void planes<double>(double *, const double *, int);

__global__ void planes_of_their_own(float *y, const float *x, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int s = 0; s < 120; s++)
        if (s * n + i < m)
            y[s * n + i] = x[(s * 7 % 120) * n + i];
}
__global__ void squares_until(float *y, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int s = 0; s < 100; s++) {
        if (i > n - s)
            return;
        y[i + s * s] = x[i * (s + 1)];
    }
}
struct particle {
    float x, y, z, vx, vy, vz, m, q;
};
__global__ void particles(particle *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    particle a = p[i];
#pragma unroll
    for (int k = 0; k < 60; k++) {
        a.x += a.vx * p[(i + k) % n].m;
        a.y += a.vy * p[i ^ k].q;
    }
    p[i] = a;
}
__global__ void stencil_27(float *y, const float *x, int nx, int ny, int nz)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = threadIdx.y, k = threadIdx.z;
    if (i >= nx || j >= ny || k >= nz)
        return;
    float sum = 0;
#pragma unroll
    for (int a = -1; a < 2; a++)
#pragma unroll
        for (int b = -1; b < 2; b++)
#pragma unroll
            for (int c = -1; c < 2; c++)
                sum += x[(max(0, min(k + a, nz - 1)) * ny + max(0, min(j + b, ny - 1))) * nx + max(0, min(i + c, nx - 1))];
    y[(k * ny + j) * nx + i] = sum;
}
__global__ void transposed(double *a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
#pragma unroll
    for (int k = 0; k < 16; k++)
#pragma unroll
        for (int j = 0; j < 16; j++)
            a[(k * 16 + j) * n + i] -= a[(j * 16 + k) * n + i];
}

// Each thread fills its chunk of x; the last one ends at n.
__global__ void chunks(float *x, int chunk, int n)
{
    int first = chunk * (int)(blockIdx.x * blockDim.x + threadIdx.x);
    int end = first + chunk < n ? first + chunk : n;
    for (int i = first; i < end; i++)
        x[i] = i;
}
__global__ void chunks_of_16(float *x, int n)
{
    int first = 16 * (blockIdx.x * blockDim.x + threadIdx.x), end = min(first + 16, n);
    for (int i = first; i < end; i++)
        x[i] = i;
}
__global__ void chunks_with_barriers(float *x, int n)
{
    int first = 16 * (blockIdx.x * 8 + threadIdx.x), end = min(first + 16, n);
    for (int i = first; i < end; i++) {
        x[i] = i;
        __syncthreads();
    }
}
__global__ void chunks_of_pairs(const float2 *in, float2 *out, int count)
{
    __shared__ float a[8][7 * 7];
    int ij = threadIdx.x, i = ij / 7, j = ij % 7;
    int start = blockIdx.x * 32 + threadIdx.y * 4;
    int stop = count < start + 4 ? count : start + 4;
    for (int m = start; m < stop; m += 2) {
        if (ij < 7 * 7)
            a[threadIdx.y][ij] = in[m * 7 * 7 + i * 7 + j].x;
        if (ij < 7 * 7)
            out[m * 7 * 7 + i * 7 + j].x += a[threadIdx.y][j];
    }
}

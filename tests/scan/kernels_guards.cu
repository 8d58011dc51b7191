/*
 * Kernels that stress acs-scan: each has one trait of guards, loops, indices or pointers. try_kernels.py compares their
 * footprints with what they do. They compute nothing of use, and no GPU runs them.
 */
#define KERNEL extern "C" __global__ void

/* ---- guards */

KERNEL guard_signed(float *p, const float *q, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = q[i] + 1;
}
KERNEL guard_unsigned(float *p, const float *q, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    p[i] = q[n - 1 - i];
}
KERNEL guard_wide(double *p, const double *q, size_t n, size_t first)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[first + i] = q[i];
}
KERNEL guard_long(long long *p, long long n, long long from)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x - from;
    if (i >= 0 && i <= n)
        p[i] = i;
}
KERNEL guard_and(int *p, int *q, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 2 && i < n && i != m)
        p[i - 3] = q[i];
}
KERNEL guard_or(int *p, int *q, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n || i == m)
        p[i] = 1;
    if (!(i < m || i > n))
        q[i] = 2;
}
KERNEL guard_wrap(float *p, const float *q, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i - 1 < n)
        p[i] = q[i - 1];
}
KERNEL guard_wrap_signed(float *p, const float *q, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if ((unsigned)(i - 1) < (unsigned)(n - 2))
        p[i] = q[i - 1] + q[i + 1];
}
KERNEL guard_ternary(float *p, const float *q, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int left = i > 0 ? i - 1 : 0, right = i < n - 1 ? i + 1 : n - 1;
    if (i < n)
        p[i] = q[left] + q[right];
}
KERNEL guard_equal(float *p, int which, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == which)
        p[i] = 1;
    if (threadIdx.x == 0)
        p[n + blockIdx.x] = 2;
    if (threadIdx.x == blockDim.x - 1)
        p[2 * n + blockIdx.x] = 3;
}
KERNEL guard_not_equal(float *p, int n, int skip)
{
    int i = threadIdx.x;
    if (i == skip)
        return;
    if (n != 0)
        p[i * n] = 1;
}
KERNEL guard_mixed(float *p, unsigned n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x - k;
    if (i < n) /* unsigned: negative ones are large */
        p[i] = 1;
    if (i < k)
        p[i + 2 * k] = 1;
}
KERNEL guard_by_data(float *p, const int *flags, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && flags[i] > 20)
        p[i] = 1;
}
KERNEL guard_scaled(float *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i + 3 < n)
        p[4 * i + 3] = 1;
    if (i / 2 < n)
        p[i / 2] = 2;
    if ((i >> 1) < n && i % 3 == 1)
        p[i % 3 + i] = 3;
}
KERNEL guard_late(float *p, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = 0;
    if (i < n)
        x = p[i];
    else if (i < m)
        x = p[i + 1];
    if (x > 0)
        p[i < n ? i : 0] = x;
}

/* ---- indices */

KERNEL index_2d(float *p, const float *q, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height)
        p[y * width + x] = q[x * height + y];
}
KERNEL index_3d(float *p, int nx, int ny, int nz)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= nx || y >= ny || z >= nz)
        return;
    p[(z * ny + y) * nx + x] = 1;
}
KERNEL index_pitch(char *p, size_t pitch, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height)
        *((short *)(p + y * pitch) + x) = 1;
}
KERNEL index_pitch_odd(char *p, char *q, int pitch, int width)
{
    int x = threadIdx.x, y = blockIdx.x;
    if (x < width)
        p[y * pitch + x] = q[(y + 1) * (pitch | 1) - x];
}
KERNEL index_stencil(float *p, const float *q, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && x < w - 1 && y > 0 && y < h - 1)
        p[y * w + x] = q[y * w + x - 1] + q[y * w + x + 1] + q[(y - 1) * w + x] + q[(y + 1) * w + x];
}
KERNEL index_reverse(int *p, int *q, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 2) {
        int t = p[i];
        p[i] = p[n - 1 - i];
        p[n - 1 - i] = t;
        q[-i] = 1;
        q[-1 - i] = 2;
    }
}
KERNEL index_short(int *p, int *q, short s, unsigned short u, signed char c, unsigned char b)
{
    short i = (short)(threadIdx.x + s);
    unsigned short k = (unsigned short)(threadIdx.x + u);
    signed char d = (signed char)(threadIdx.x * 3 + c);
    p[i] = 1;
    q[k] = 2;
    p[d] = 3;
    q[(unsigned char)(b - threadIdx.x)] = 4;
}
KERNEL index_overflow(float *p, float *q, int a, unsigned b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i * a] = 1;
    q[(unsigned)i * b] = 2;
}
KERNEL index_overflow_guarded(float *p, float *q, unsigned a, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned k = i * a + 7;
    if (k < n)
        p[k] = 1;
    if (i + a < n)
        q[i] = 2;
}
KERNEL index_narrowed(float *p, float *q, long long big, size_t n)
{
    int i = (int)(big + threadIdx.x);
    p[i] = 1;
    if ((unsigned)n > threadIdx.x)
        q[threadIdx.x + (unsigned)(n >> 1)] = 2;
}
KERNEL index_bits(int *p, int *q, unsigned n, unsigned m)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i & 15] = 1;
    p[i & n] = 1;
    p[i | 8] = 2;
    p[i ^ 5] = 3;
    q[i & ~3u] = 4;
    q[i << (m & 3)] = 5;
    q[(i ^ m) >> 28] = 6;
    q[__popc(i)] = 7;
    q[__clz(i)] = 8;
    q[__brev(i) >> 24] = 9;
}
KERNEL index_divided(int *p, int *q, int n, unsigned m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i / n] = 1;
    p[i % n + 3] = 2;
    q[(i - 5) / 3] = 3;
    q[(i - 5) % 3] = 4;
    q[(unsigned)i / m] = 5;
    q[(unsigned)i % m] = 6;
    q[(i - 7) >> 2] = 7;
}
KERNEL index_clamped(float *p, const float *q, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p[min(max(i - k, 0), n - 1)] = q[max(min(i + k, n - 1), 0)];
    p[abs(i - k)] = q[min((unsigned)(i - k), (unsigned)n)];
}
KERNEL index_loaded(float *p, const int *index, const float *q, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = q[index[i]];
}
KERNEL index_loaded_guarded(float *p, const int *index, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int k = index[i];
    if (k >= 0 && k < n)
        p[k] = 1;
    unsigned char b = ((const unsigned char *)index)[i];
    p[b] = 2;
}
KERNEL index_lane(float *p, int n)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    float x = p[warp * 32 + lane];
    for (int o = 16; o > 0; o >>= 1)
        x += __shfl_down_sync(0xffffffff, x, o);
    if (lane == 0)
        p[n + blockIdx.x * (blockDim.x / 32) + warp] = x;
}
KERNEL index_linear(float *p, int n)
{
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int i = b * (blockDim.x * blockDim.y * blockDim.z) + t;
    if (i < n)
        p[i] = 1;
}
KERNEL index_split(float *p, int width, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int row = i / width, column = i - row * width;
    p[column * 64 + row] = 1;
}

/* ---- a comparison of unsigned numbers with a number that is negative as a signed one says nothing of signs */

KERNEL unsigned_large(float *x, int n)
{
    int i = threadIdx.x;
    if ((unsigned)(i - n) <= 4294967288u)
        x[n - i + 100] = 1;
}
KERNEL unsigned_least(float *x, int n)
{
    int i = threadIdx.x;
    if ((unsigned)(i - n) >= 4294967200u)
        x[n - i] = 1;
}
KERNEL unsigned_equal(float *x, int n)
{
    unsigned i = threadIdx.x - n;
    if (i == 4294967295u)
        x[threadIdx.x] = 1;
}

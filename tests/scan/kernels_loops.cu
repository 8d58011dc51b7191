/*
 * Kernels that stress acs-scan: each has one trait of guards, loops, indices or pointers. try_kernels.py compares their
 * footprints with what they do. They compute nothing of use, and no GPU runs them.
 */
#define KERNEL extern "C" __global__ void

/* ---- loops */

KERNEL loop_grid(float *p, const float *q, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        p[i] = q[i] * 2;
}
KERNEL loop_grid_wide(float *p, const float *q, size_t n)
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        p[i] = q[i] * 2;
}
KERNEL loop_grid_unsigned(float *p, unsigned n, unsigned from)
{
    for (unsigned i = from + threadIdx.x; i < n; i += blockDim.x)
        p[i] = 2;
}
KERNEL loop_rows(float *p, const float *q, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int k = 0; k < m; k++)
        sum += q[i * m + k];
    p[i] = sum;
}
KERNEL loop_step(float *p, float *q, int n, int step)
{
    for (int k = threadIdx.x; k < n; k += 3)
        p[k] = 1;
    if (step > 0)
        for (int k = 0; k <= n; k += step)
            q[k] = 2;
}
KERNEL loop_down(float *p, float *q, float *r, int n)
{
    for (int k = n - 1; k >= 0; k--)
        p[k] = 1;
    for (unsigned k = n; k-- > 0;)
        q[k] = 2;
    for (int k = n; k > 4; k -= 2)
        r[k] = 3;
}
KERNEL loop_while(float *p, const float *q, int n)
{
    int k = threadIdx.x;
    while (k < n) {
        p[k] = q[k + 1];
        k += 5;
    }
}
KERNEL loop_do(float *p, int n, int first)
{
    int k = first;
    do {
        p[k] = 1;
        k++;
    } while (k < n);
}
KERNEL loop_do_unsigned(float *p, unsigned n, unsigned first)
{
    unsigned k = first + threadIdx.x;
    do {
        p[k] = 1;
        k += 4;
    } while (k <= n);
}
KERNEL loop_not_equal(float *p, float *q, int n, int m)
{
    for (int k = 0; k != n; k++)
        p[k] = 1;
    for (int k = m; k != 0; k -= 2)
        q[k] = 2;
}
KERNEL loop_triangle(float *p, const float *q, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        for (int k = 0; k <= i; k++)
            p[i * n + k] = q[i - k];
}
KERNEL loop_triangle_inner(float *p, int n, int m)
{
    for (int i = threadIdx.x; i < n; i++)
        for (int k = i + 1; k < m; k++)
            p[i * m + k] = 1;
}
KERNEL loop_triangle_down(float *p, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = n - 1; k > i; k--)
            p[(n - k) * n - i] = 1;
}
KERNEL loop_break(float *p, const float *q, int n)
{
    for (int k = 0; k < n; k++) {
        if (q[k] > 0.9f)
            break;
        if (q[k] < -0.5f)
            continue;
        p[k] = 1;
    }
}
KERNEL loop_break_late(float *p, const float *q, int n)
{
    int k = 0;
    while (true) {
        p[k] = 1;
        if (q[k] > 0.7f)
            break;
        k++;
        if (k >= n)
            break;
    }
    p[k + 5] = 2;
}
KERNEL loop_result(float *p, const float *q, int n)
{
    int k = 0;
    for (; k < n; k++)
        if (q[k] > 0.5f)
            break;
    p[k] = 1;
}
KERNEL loop_count(float *p, const int *q, int n)
{
    int count = 0;
    for (int k = 0; k < n; k++)
        if (q[k] > 20)
            p[count++] = q[k];
}
KERNEL loop_unrolled(float *p, const float *q, int n)
{
#pragma unroll 4
    for (int k = 0; k < n; k++)
        p[k * blockDim.x + threadIdx.x] = q[k];
    for (int k = 0; k < 5; k++)
        p[k * 100 + threadIdx.x] = q[k];
}
KERNEL loop_doubling(float *p, int n)
{
    for (int k = 1; k < n; k *= 2)
        p[k] = 1;
    for (int k = n; k > 0; k /= 2)
        p[k] = 2;
    for (int k = blockDim.x / 2; k > 0; k >>= 1)
        if (threadIdx.x < k)
            p[threadIdx.x] += p[threadIdx.x + k];
}
KERNEL loop_two_counters(float *p, float *q, int n)
{
    int b = n;
    for (int a = 0; a < b; a++, b--) {
        p[a] = 1;
        q[b] = 2;
    }
}
KERNEL loop_step_changes(float *p, int n)
{
    int step = 1;
    for (int k = 0; k < n; k += step) {
        p[k] = 1;
        step++;
    }
}
KERNEL loop_conditional_step(float *p, const float *q, int n)
{
    for (int k = 0; k < n;) {
        p[k] = 1;
        k += q[k] > 0 ? 1 : 2;
    }
}
KERNEL loop_restarted(float *p, int n, int m)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++)
            p[k++] = 1;
        k += 3;
    }
}
KERNEL loop_carried(float *p, float *q, int n)
{
    int before = 3;
    for (int k = 0; k < n; k++) {
        p[before] = 1;
        before = k * 2;
    }
    q[before] = 1;
}
KERNEL loop_skip(float *p, int n, int m)
{
    for (int k = 0; k < n; k++) {
        if (k < m)
            continue;
        p[k - m] = 1;
        if (k > m + 5)
            return;
    }
}
KERNEL loop_short(float *p, float *q, short n, unsigned char m)
{
    for (short k = 0; k < n; k++)
        p[k] = 1;
    for (unsigned char k = 0; k < m; k += 2)
        q[k] = 1;
}
KERNEL loop_bounds_loaded(float *p, const int *rows, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        for (int k = rows[i]; k < rows[i + 1]; k++)
            p[k] = 1;
}
KERNEL loop_both_ends(float *p, int first, int last, int n)
{
    for (int k = max(first, 0); k < min(last, n); k++)
        p[k] = 1;
    for (int k = min(first, n) - 1; k >= max(last, 0); k--)
        p[k] = 2;
}
KERNEL loop_tile(float *p, const float *a, const float *b, int n)
{
    __shared__ float x[8][8], y[8][8];
    int row = blockIdx.y * 8 + threadIdx.y % 8, column = blockIdx.x * 8 + threadIdx.x % 8;
    float sum = 0;
    for (int t = 0; t < (n + 7) / 8; t++) {
        int across = t * 8 + threadIdx.x % 8, down = t * 8 + threadIdx.y % 8;
        x[threadIdx.y % 8][threadIdx.x % 8] = row < n && across < n ? a[row * n + across] : 0;
        y[threadIdx.y % 8][threadIdx.x % 8] = column < n && down < n ? b[down * n + column] : 0;
        __syncthreads();
        for (int k = 0; k < 8; k++)
            sum += x[threadIdx.y % 8][k] * y[k][threadIdx.x % 8];
        __syncthreads();
    }
    if (row < n && column < n)
        p[row * n + column] = sum;
}

/* ---- arithmetic at its limits */

KERNEL wide_shift(int *p, int *q, unsigned long long n, unsigned long long m)
{
    p[n >> 59] = 1;
    p[n / 0x1000000000000000ull + 64] = 2;
    q[(n + threadIdx.x) >> 60] = 3;
    q[100 + n % 7 + (m >> 62)] = 4;
    q[200 + min(n, (unsigned long long)9)] = 5;
    q[300 + (max(n, m) & 31)] = 6;
}
KERNEL wide_shift_alone(int *p, int *q, unsigned long long n)
{
    p[n >> 59] = 1;
    q[n / 0x1000000000000000ull] = 2;
}
KERNEL wide_shift_sum(char *p, unsigned long long n, unsigned long long m)
{
    p[(n >> 60) - m] = 1;
}
KERNEL wide_guard(int *p, int *q, unsigned long long n, unsigned long long from)
{
    unsigned long long i = from + threadIdx.x;
    if (i < n)
        p[i & 255] = 1;
    if (i - from < n - from)
        q[i - from] = 2;
    if (i < from)
        q[1000 + threadIdx.x] = 3;
}
KERNEL constant_overflow(int *p, int *q)
{
    unsigned a = 65536, b = 65537;
    unsigned c = a * b;
    int d = (int)(c + 0x7fffffffu);
    p[c + threadIdx.x] = 1;
    q[d + 0x7fff0000ll] = 2;
}
KERNEL stride_unsigned(int *p, unsigned n, unsigned stride)
{
    for (unsigned i = threadIdx.x; i < n; i += stride)
        p[i] = 1;
}
KERNEL stride_signed(int *p, int n, int stride)
{
    for (int i = threadIdx.x; i < n; i += stride)
        p[i] = 1;
}
KERNEL stride_down(int *p, int n, unsigned stride)
{
    for (unsigned i = n; i > threadIdx.x; i -= stride)
        p[i] = 1;
}
KERNEL stride_do(int *p, unsigned n, unsigned stride, unsigned first)
{
    unsigned i = first;
    do {
        p[i] = 1;
        i += stride;
    } while (i < n);
}
KERNEL stride_equal(int *p, unsigned n, unsigned stride, unsigned first)
{
    for (unsigned i = first; i != n; i += stride)
        p[i] = 1;
}
KERNEL loop_full_short(int *p, unsigned short n)
{
    unsigned short k = 0;
    do {
        p[k] = 1;
        k++;
    } while (k != n); /* n = 0: 65536 passes */
}
KERNEL loop_full(int *p, unsigned n, unsigned first)
{
    unsigned k = first;
    do {
        p[k] = 1;
        k += 0x10000000u;
    } while (k != n);
}
KERNEL stride_doubled(int *p, unsigned n, unsigned first)
{
    for (unsigned i = first; 2 * i < n; i += 0x20000000u)
        p[i] = 1;
    for (unsigned i = first; i + 0x40000000u < n; i += 0x30000000u)
        p[i] = 1;
}
KERNEL wrapped_sum(int *p, int *q, int n, int m)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long k = i + (unsigned)n;
    p[k] = 1;
    q[(long long)(int)(i - m)] = 2;
    q[(unsigned)(i * n) % 1000u] = 3;
    q[(int)(i * n) / 1000000 + 5000] = 4;
    p[(i * n + m) & 63 | n & 256] = 5;
}
KERNEL wrapped_bytes(int *p, unsigned char a, unsigned char b, short s)
{
    unsigned char c = (unsigned char)(a + b + threadIdx.x);
    p[c] = 1;
    p[(unsigned char)(a * b)] = 2;
    p[(short)(s * 2 + threadIdx.x)] = 3;
    p[(unsigned short)(s - a)] = 4;
}
KERNEL wrapped_guard(int *p, int *q, unsigned n, unsigned m)
{
    unsigned i = threadIdx.x;
    if (n - i < m)
        p[i] = 1;
    if (i * n < m)
        q[i] = 2;
    if (i + n >= m)
        q[i + 100] = 3;
    if (~i < n)
        q[i + 200] = 4;
    if ((int)(i - n) >= 0)
        p[i + 300] = 5;
    if ((int)(i - n) < (int)m)
        p[i - n] = 6;
}

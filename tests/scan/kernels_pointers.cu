/*
 * Kernels that stress acs-scan: each has one trait of guards, loops, indices or pointers. try_kernels.py compares their
 * footprints with what they do. They compute nothing of use, and no GPU runs them.
 */
#define KERNEL extern "C" __global__ void

/* ---- pointers */

KERNEL pointer_moves(float *p, const float *q, int n)
{
    const float *end = q + n;
    p += threadIdx.x;
    for (; q < end; q++, p += 2)
        *p = *q;
}
KERNEL pointer_moves_back(float *p, int n)
{
    float *at = p + n;
    while (at-- != p)
        *at = 1;
}
KERNEL pointer_swap(float *p, float *q, int n)
{
    float *from = p, *to = q;
    for (int k = 0; k < n; k++) {
        to[k] = from[k + 1];
        float *t = from;
        from = to;
        to = t;
    }
}
KERNEL pointer_select(float *p, float *q, int n, int which)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float *to = which ? p : q + 5;
    const float *from = i & 1 ? q : p;
    if (i < n)
        to[i] = from[2 * i];
}
KERNEL pointer_select_moves(float *p, float *q, int n)
{
    float *to = threadIdx.x & 1 ? p : q;
    for (int k = 0; k < n; k++) {
        if (k == 3)
            to = p + 7;
        *to++ = 1;
    }
}
KERNEL pointer_difference(float *p, float *q, const float *r)
{
    long long apart = r - q;
    if (apart > 0 && apart < 100)
        p[apart] = 1;
    p[threadIdx.x + 1] = 2;
}
KERNEL pointer_null(float *p, float *q)
{
    if (p)
        p[threadIdx.x] = 1;
    if (q != nullptr && threadIdx.x > 2)
        q[-(int)threadIdx.x] = 1;
}
struct box {
    float *to;
    int n, step;
    const float *from;
    struct {
        short first;
        unsigned char more;
    } in;
    double *sum;
};
KERNEL pointer_struct(box b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < b.n && i < n)
        b.to[i * b.step] = b.from[i + b.in.first];
    if (i < b.in.more)
        b.sum[i] = 1;
}
struct many {
    float *at[6];
    int n[6];
};
KERNEL pointer_array(many m, int which)
{
    int i = threadIdx.x;
    m.at[2][i] = 1;
    if (i < m.n[which & 3])
        m.at[which & 3][i] = m.at[5][m.n[blockIdx.x & 1]];
}
KERNEL pointer_array_loop(many m)
{
    for (int k = 0; k < 6; k++)
        if (threadIdx.x < m.n[k])
            m.at[k][threadIdx.x] = 1;
}
KERNEL pointer_table(float **table, int n)
{
    int i = threadIdx.x;
    if (i < n)
        table[i][i] = 1;
}
KERNEL pointer_kept(float **table, float *p, float *q)
{
    table[threadIdx.x] = p + threadIdx.x;
    table[blockDim.x + threadIdx.x] = threadIdx.x & 1 ? q : p;
}
KERNEL pointer_local(float *p, float *q, float *r, int n)
{
    float *list[3] = {p, q, r};
    for (int k = 0; k < n; k++)
        list[(k + threadIdx.x) % 3][k] = 1;
}
KERNEL pointer_shared(float *p, float *q, int n)
{
    __shared__ float *list[64];
    list[threadIdx.x & 63] = threadIdx.x & 1 ? p : q + 9;
    __syncthreads();
    list[(threadIdx.x + 1) & 63 & (blockDim.x - 1)][n] = 1;
}
KERNEL local_index(float *p, const int *q, int n)
{
    int list[16];
    for (int k = 0; k < 16; k++)
        list[k] = k * n;
    list[q[0] & 15] = 5;
    for (int k = 0; k < 16; k++)
        p[list[k]] = 1;
}
KERNEL shared_index(float *p, int n)
{
    __shared__ int first;
    if (threadIdx.x == 0)
        first = blockIdx.x * n;
    __syncthreads();
    p[first + threadIdx.x] = 1;
}

/* ---- other traits */

KERNEL vectors(float4 *p, const float4 *q, const float2 *r, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) {
        float4 v = q[i];
        float2 w = r[2 * i + 1];
        v.x += w.y;
        p[i] = v;
    }
}
KERNEL vector_tail(float *p, const float *q, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, whole = n / 4 * 4;
    if (i < n / 4)
        ((float4 *)p)[i] = ((const float4 *)q)[i];
    if (i < n - whole)
        p[whole + i] = q[whole + i];
}
KERNEL atomics(int *p, unsigned *q, float *r, unsigned long long *s, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&p[i % 8], 1);
        int place = atomicAdd(&p[9], 1);
        atomicMax(&q[i], 5u);
        atomicInc(&q[n + 1], 7u);
        atomicAdd(r + blockIdx.x, 1.0f);
        atomicCAS(&s[i], 1ull, 2ull);
        if (place < 0)
            atomicExch(&q[2 * n + 5], 3u);
    }
}
KERNEL atomic_place(int *p, int *count, int n)
{
    int at = atomicAdd(count, 1);
    if (at < n)
        p[at] = threadIdx.x;
}
__device__ int g_table[64];
__device__ int g_count;
__constant__ int c_list[16];
KERNEL variables(int *p, int n)
{
    int i = threadIdx.x;
    g_table[i & 63] = p[i];
    atomicAdd(&g_count, 1);
    p[c_list[3] + n] = g_table[5];
    p[c_list[i & 15] & 7] = 1;
}
__device__ __noinline__ void far_store(float *p, int i, float value)
{
    if (i > 3)
        p[i] = value;
}
__device__ __noinline__ int far_index(int i, int n)
{
    return i < n ? i * 2 : n;
}
KERNEL calls(float *p, float *q, int n)
{
    far_store(p, threadIdx.x, 1);
    q[far_index(threadIdx.x, n)] = 2;
}
KERNEL dynamic_shared(float *p, const float *q, int n)
{
    extern __shared__ float room[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    room[threadIdx.x] = i < n ? q[i] : 0;
    __syncthreads();
    for (int s = blockDim.x / 2; s; s /= 2) {
        if (threadIdx.x < s)
            room[threadIdx.x] += room[threadIdx.x + s];
        __syncthreads();
    }
    if (!threadIdx.x)
        p[blockIdx.x] = room[0];
}
KERNEL switched(float *p, float *q, int which, int n)
{
    int i = threadIdx.x;
    switch (which) {
    case 0: p[i] = 1; break;
    case 1: q[i + 1] = 1; break;
    case 2: p[n - i] = 1; break;
    case 3: q[n * i] = 1; break;
    case 7: q[4 * i + 2] = 1; /* and on */
    default: p[i + 1000] = q[i + 2000];
    }
}
KERNEL block_wide(float *p, int n)
{
    int each = (n + gridDim.x - 1) / gridDim.x;
    int first = blockIdx.x * each, end = min(first + each, n);
    for (int i = first + threadIdx.x; i < end; i += blockDim.x)
        p[i] = 1;
}
KERNEL uniform_choice(float *p, float *q, int n, int m)
{
    int k = n > m ? n - m : m;
    p[k] = 1;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    q[n > 0 ? i : i + k] = 2;
    if (n > 5 ? i < m : i < n)
        p[i + 200] = 3;
}
KERNEL zero_sized(float *p, unsigned n)
{
    unsigned i = threadIdx.x;
    if (i < n - 1) /* n = 0: all of them */
        p[i] = 1;
    if (i <= n - 1)
        p[i + 300] = 1;
    for (unsigned k = 0; k < n - 1 && k < 70; k++)
        p[600 + k] = 1;
}

/* ---- rare ways to name memory */

KERNEL atomic_halves(unsigned *p, unsigned short *q, unsigned *r)
{
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(p + threadIdx.x), "r"(0) : "memory");
    asm volatile("red.global.add.noftz.bf16 [%0], %1;" ::"l"(q + threadIdx.x), "h"((short)0) : "memory");
    asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" ::"l"(r + threadIdx.x), "r"(0) : "memory");
}
KERNEL pointer_or_variable(int *p, int n)
{
    int *a = p, *b = g_table;
    p[100] = 1;
    for (int k = 0; k < n && k < 64; k++) {
        a[k] = 1;
        int *t = a;
        a = b;
        b = t;
    }
}
KERNEL pointer_shuffled(char *p, char *q, long long n)
{
    char *first = (char *)__shfl_sync(0xffffffff, (unsigned long long)(threadIdx.x & 1 ? q : p), 0);
    first[n] = 1;
}
KERNEL pointer_halved(char *p, char *q, long long n)
{
    unsigned long long a = (unsigned long long)p >> 7;
    char *at = (char *)(a << 7);
    at[n & 127] = 1;
    q[0] = (char)((unsigned long long)p >> 9);
    ((char *)((unsigned long long)q / 3 * 3))[n & 3] = 2;
}
KERNEL pointer_xor(char *p, char *q, int n)
{
    unsigned long long both = (unsigned long long)p ^ (unsigned long long)q, at = (unsigned long long)p;
    for (int k = 0; k < n; k++) {
        ((char *)at)[k] = 1;
        at ^= both;
    }
}
KERNEL pointer_or_loaded(int *p, int **q, int n)
{
    int *to = n > 5 ? p : q[1];
    p[50] = 1;
    to[threadIdx.x] = 1;
}
KERNEL pointer_in_loop(int *p, int *q, int n, int m)
{
    p[0] = 1;
    for (int i = 0; i < n; i++) {
        int *at = i & 1 ? p : q;
        for (int k = 0; k < m; k++)
            *at++ = i;
        if (i > 3)
            p = at;
    }
}
KERNEL pointer_struct_swap(box b, box c, int n)
{
    b.to[0] = 1;
    for (int i = 0; i < n; i++) {
        c.to[i] = b.from[i];
        box t = b;
        b = c;
        c = t;
    }
}
KERNEL guarded_predicates(int *p, int n, int m, int k)
{
    int i = threadIdx.x;
    bool a = i < n, b = i > m, c = i != k;
    if (a ? b : c)
        p[i] = 1;
    if ((a && b) || (c && !a))
        p[i + 100] = 2;
    if (a != b)
        p[i + 200] = 3;
    if (!(a || b) && c)
        p[i - 300] = 4;
}
KERNEL guard_in_loop(int *p, int *q, int n, int m)
{
    for (int k = 0; k < n; k++) {
        if (k * 2 >= m)
            q[k] = 1;
        if (k > m)
            break;
        p[k] = 1;
        if (k + 3 > m)
            continue;
        p[k + 100] = 2;
    }
}
KERNEL guard_after_loop(int *p, int *q, int n, int m)
{
    int k = threadIdx.x;
    while (k < n && k < m)
        k += 4;
    p[k] = 1;
    if (k < n)
        q[k] = 2;
    for (int i = k; i < m; i++)
        q[i + 100] = 3;
}
KERNEL loop_in_loop(int *p, int n, int m, int w)
{
    for (int y = blockIdx.y; y < n; y += gridDim.y)
        for (int x = threadIdx.x; x < m; x += blockDim.x) {
            int from = max(x - w, 0), to = min(x + w, m - 1);
            for (int k = from; k <= to; k++)
                p[y * m + k] = 1;
        }
}
KERNEL loop_outer_exit(int *p, int n, int m)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        for (k = i; k < m; k++)
            p[k] = 1;
        p[k + 200] = 2;
        if (k > 50)
            break;
    }
    p[k + 400] = 3;
}

/* Addresses that are kept in a form that cannot be followed: they count as kept. */
__global__ void keeps_part(unsigned long long *table, float *x)
{
    table[threadIdx.x] = reinterpret_cast<unsigned long long>(x) >> 4;
}

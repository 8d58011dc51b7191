/*
 * The kernels of acs_rand: numbers of Philox4x32-10 by cuRAND's device functions, in the order and with the bits of
 * cuRAND's host generator. Launched by cuda.c. A number follows from seed and position alone, so there is no state: calls
 * run at the same time and in captures. cuRAND's own host functions wait for the whole device whenever a seed or an
 * offset is set, and cannot be captured.
 *
 * A block is what one subsequence gives in a pass (rand.h): four numbers. Each thread makes whole blocks, and writes those
 * of their numbers that were asked for.
 */
#include "numbers.h"

#include <curand_kernel.h>

typedef curandStatePhilox4_32_10_t philox;

/* The generator at the begin of the block that has this place in the call's sequence of blocks. */
static __device__ philox begin_block(const acs_rand_args &x, unsigned long long place, unsigned numbers_of_philox)
{
    philox state;
    const unsigned long long from_pass = x.position % ACS_RAND_PASS / 4 + place, in_pass = ACS_RAND_PASS / 4;
    const unsigned long long pass = x.position / ACS_RAND_PASS + from_pass / in_pass * (numbers_of_philox / 4);
    curand_init(x.seed, from_pass % in_pass, pass * 4, &state);
    return state;
}

/* Write those of a block's numbers that the call asks for. */
template <typename number>
static __device__ void write_block(const acs_rand_args &x, unsigned long long place, const number (&block)[4])
{
    number *const out = reinterpret_cast<number *>(x.out);
    const unsigned skipped = x.position % 4;
    for (unsigned lane = 0; lane < 4; lane++) {
        const unsigned long long at = place * 4 + lane - skipped; /* wraps around before the first number */
        if (at < x.count)
            out[at] = block[lane];
    }
}

/* `make` gives the block's numbers; `philox_numbers`: of 32 bits, for one block. */
template <typename number, unsigned philox_numbers, typename maker>
static __device__ void make_numbers(const acs_rand_args &x, maker make)
{
    const unsigned long long blocks = (x.position % 4 + x.count + 3) / 4, threads = blockDim.x;
    for (unsigned long long place = blockIdx.x * threads + threadIdx.x; place < blocks; place += gridDim.x * threads) {
        philox state = begin_block(x, place, philox_numbers);
        number block[4];
        make(&state, block);
        write_block(x, place, block);
    }
}

extern "C" __global__ void acs_rand_bits_kernel(acs_rand_args x)
{
    make_numbers<unsigned, 4>(x, [](philox *state, unsigned(&block)[4]) {
        const uint4 four = curand4(state);
        block[0] = four.x, block[1] = four.y, block[2] = four.z, block[3] = four.w;
    });
}

extern "C" __global__ void acs_rand_uniform_kernel(acs_rand_args x)
{
    make_numbers<float, 4>(x, [](philox *state, float(&block)[4]) {
        const float4 four = curand_uniform4(state);
        block[0] = four.x, block[1] = four.y, block[2] = four.z, block[3] = four.w;
    });
}

extern "C" __global__ void acs_rand_uniform_double_kernel(acs_rand_args x)
{
    make_numbers<double, 8>(x, [](philox *state, double(&block)[4]) {
        for (int pair = 0; pair < 4; pair += 2) {
            const double2 two = curand_uniform2_double(state);
            block[pair] = two.x, block[pair + 1] = two.y;
        }
    });
}

extern "C" __global__ void acs_rand_normal_kernel(acs_rand_args x)
{
    const float mean = static_cast<float>(x.mean), deviation = static_cast<float>(x.deviation);
    make_numbers<float, 4>(x, [=](philox *state, float(&block)[4]) {
        const float4 four = curand_normal4(state);
        block[0] = mean + deviation * four.x, block[1] = mean + deviation * four.y;
        block[2] = mean + deviation * four.z, block[3] = mean + deviation * four.w;
    });
}

extern "C" __global__ void acs_rand_normal_double_kernel(acs_rand_args x)
{
    const double mean = x.mean, deviation = x.deviation;
    make_numbers<double, 8>(x, [=](philox *state, double(&block)[4]) {
        for (int pair = 0; pair < 4; pair += 2) {
            const double2 two = curand_normal2_double(state);
            block[pair] = mean + deviation * two.x, block[pair + 1] = mean + deviation * two.y;
        }
    });
}

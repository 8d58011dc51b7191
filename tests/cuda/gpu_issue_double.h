/*
 * A double of what GPU-side issue asks the driver for, and of the kernels that it launches: streams are queues that the
 * test steps, and the head releases the ops of its table in an order drawn from a seed. For test_cuda_gpu_issue.c.
 *
 * It fails the test where a graph runs that is not on the device yet, or was destroyed; where an op runs twice, before
 * what it follows, or with a grid or arguments that are not its own; and where the host waits for the device.
 */
#ifndef CUDA_WINDOW_DOUBLE_H
#define CUDA_WINDOW_DOUBLE_H

#include "cuda/gpu_issue/gpu_issue.h"

enum { DOUBLE_SLOTS = 4, DOUBLE_TYPES = 12, DOUBLE_OPS = 1 << 15, DOUBLE_ARGS = 32 };

/* What an op's kernel is given: its own number, and bytes that seldom change. */
typedef struct double_op {
    acs_dim3 grid;
    unsigned char args[DOUBLE_ARGS];
    uint16_t up_count;
    uint32_t ups[64]; /* numbers of ops */
    uint32_t runs;
    uint32_t bundle;
} double_op;

typedef struct double_world {
    acs_cuda *self;
    acs_random random;
    uint32_t fail_instantiate; /* one in so many; 0: none */
    uint32_t fail_launch;
    double_op op[DOUBLE_OPS];
    uint32_t ops;
    uint64_t values[DOUBLE_SLOTS]; /* given to ops so far */
    uint64_t argument_bytes;   /* that tables held */
    uint32_t execs;            /* alive */
} double_world;

extern double_world g_double;

void double_open(uint64_t seed, uint64_t graph_nodes);
void double_close(void);
/* Let one stream go on by one step; false: all are empty. */
bool double_step(void);
/* As many parameters of 8 bytes as the type has. */
uint32_t double_params(uint32_t type);

#endif

/*
 * Bundles made by hand, for the backend itself: what test_gpu_methods and bench_gpu_methods share. Each slot has a ring
 * of cells; an op mixes the cells of up to three earlier ops into its own, and the same is done here, one op after
 * another.
 */
#ifndef GPU_BUNDLE_H
#define GPU_BUNDLE_H

#include "scheduler/backend.h"

enum {
    BUNDLE_WORDS = 64,
    BUNDLE_CELLS = 1024,
    BUNDLE_RECORDS = 4096,
    BUNDLE_SLOTS = 4,
    BUNDLE_MARKS = 64,
    BUNDLE_SLOW = 1 << 30, /* in a salt of kernel 0: it takes 20 us */
    BUNDLE_SPIN = 4 /* number of the kernel that only takes time */
};

/* Arguments of the kernels, in bundle_kernels.cu. */
typedef struct bundle_odd {
    short a;
    double b;
    char c;
} bundle_odd;
typedef struct bundle_large {
    uint32_t words[48];
} bundle_large;

/* What differs between a GPU (bundle_kernels.cu) and the double of the driver (tests/cuda/bundle_double.c). */
/* Before the backend is opened. */
void bundle_prepare(void);
/* Nothing runs until it is let go again, where that can be had. */
void bundle_hold(int hold);
/* Whether a graph runs to its end before anything is seen of it. */
extern const int bundle_runs_at_once;
/* __global__ functions, or what stands for them; number BUNDLE_SPIN spins so many ns. */
const void *bundle_kernel(int number);
/* Device memory becomes 0; is copied to the host. False: an error. */
int bundle_zero(void *at, size_t bytes);
int bundle_read(void *to, const void *from, size_t bytes);

static inline uint32_t bundle_mix(uint32_t old, uint32_t a, uint32_t b, uint32_t c, uint32_t salt)
{
    uint32_t x = (old ^ salt) * 0x9e3779b1u + a;
    x = (x ^ x >> 15) * 0x85ebca6bu + b;
    x = (x ^ x >> 13) * 0xc2b2ae35u + c;
    return x ^ x >> 16;
}

/* A launch of one op, and what it does to the model. */
typedef struct bundle_op {
    int kernel;
    uint32_t salt;
    acs_dim3 grid;
    int from[3]; /* cells; -1: none */
    int to;
} bundle_op;

typedef struct bundle_slot {
    uint32_t *cells;       /* on the device */
    uint32_t model[BUNDLE_CELLS][BUNDLE_WORDS];
    uint64_t records, issued, completed;
    acs_mark marks[BUNDLE_MARKS];
    uint32_t first, marked; /* marks not seen complete: marked - first of them */
} bundle_slot;

typedef struct bundle_world {
    acs_backend *backend;
    acs_record_pool *pool;
    acs_record *records[BUNDLE_SLOTS][BUNDLE_RECORDS]; /* in turn */
    bundle_slot slot[BUNDLE_SLOTS];
    acs_batch *batch; /* the bundle that is being made; own_batch unless the caller has set another */
    acs_batch own_batch;
} bundle_world;

/* False: no GPU, or no memory. */
bool bundle_open(bundle_world *world);
void bundle_close(bundle_world *world);
/* A record for an op of a slot; the model is brought forward if `op` is not a spinning one. */
acs_record *bundle_record(bundle_world *world, int slot, const bundle_op *op);
/* One bundle, empty: then ops and joins, which follow earlier items. */
void bundle_begin(bundle_world *world, acs_issue_method method);
uint32_t bundle_add(bundle_world *world, int slot, acs_record *record, const uint16_t *after, uint32_t count);
/* Submit, as often as wanted; the ops of a bundle that is handed back go one by one. The issue method it went by. */
acs_issue_method bundle_submit(bundle_world *world, int slot, acs_status *status);
/* Look once, or until all of the slot has completed. */
void bundle_poll(bundle_world *world, int slot);
void bundle_wait(bundle_world *world, int slot);
/* Cells that differ from the model's. */
uint32_t bundle_differences(bundle_world *world, int slot);

#endif

/*
 * The data of GPU-side issue that the host and the device share: the table of one bundle, which the host writes into
 * pinned memory, and the state in device memory. Plain C, included by src/cuda/gpu_issue and by
 * device_code/gpu_issue.cu.
 *
 * A place can be released. It is a cell (a graph that the device can launch: one kernel of one type, then the release
 * kernel), a fan (a cell without the kernel), or a join (a counter). Places are named by their index.
 */
#ifndef ACS_DEVICE_GPU_ISSUE_H
#define ACS_DEVICE_GPU_ISSUE_H

#include "../../bundles/release_tree.h"

#include <stdint.h>

enum {
    ACS_GPU_ISSUE_CELLS = 2048,          /* places that are cells; behind them each slot has places for joins */
    ACS_GPU_ISSUE_RING = 16,             /* tables of a slot */
    ACS_GPU_ISSUE_TABLE_BYTES = 1 << 16, /* bytes of a table; a bundle with larger arguments is refused */
    ACS_GPU_ISSUE_THREADS = 64,          /* threads of a block of the head, one for each entry */
    ACS_GPU_ISSUE_BLOCKS = (ACS_RELEASE_TREE_NODES + ACS_GPU_ISSUE_THREADS - 1) / ACS_GPU_ISSUE_THREADS,
    ACS_GPU_ISSUE_INLINE = 16,    /* followers stored in the place itself */
    ACS_GPU_ISSUE_LAUNCHES = 119, /* most launches out of one execution of a graph; CUDA refuses more than 120 */
    ACS_GPU_ISSUE_NO_POSITION = 0xffff
};

/*
 * The header of a bundle's table. Behind it lie the entries, then the followers: first those of the head (the roots).
 */
typedef struct acs_gpu_issue_table {
    uint32_t entries;
    uint32_t ops;
    uint32_t roots;        /* places that the head launches */
    uint32_t followers_at; /* bytes from the start of the table */
    uint64_t first_value;  /* value of the op at position 0 */
    uint64_t reserved[5];
} acs_gpu_issue_table;

/* One place of the bundle, and the changes of its kernel node. */
typedef struct acs_gpu_issue_entry {
    uint64_t node; /* CUgraphDeviceNode; 0: no kernel */
    uint64_t exec; /* CUgraphExec; 0: a join */
    uint32_t place;
    uint32_t upstream;
    uint16_t position; /* position among the bundle's ops, or ACS_GPU_ISSUE_NO_POSITION */
    uint16_t weight;   /* most launches that its end causes */
    uint16_t out_count;
    uint16_t out_first; /* index in the table's followers */
    uint32_t args_at;    /* bytes from the start of the table */
    uint16_t args_bytes; /* changed bytes of arguments; 0: none */
    uint16_t args_first; /* their offset in the kernel's parameters */
    uint32_t grid[3];    /* new grid; grid[0] 0: unchanged */
    uint32_t cell_grid;  /* whether it takes its grid from the cell */
    uint64_t cell;       /* acs_cell that it obeys; 0: none */
} acs_gpu_issue_entry;

/* A place in device memory: one 128-byte line, so that a release kernel reads all it needs at once. */
typedef struct acs_gpu_issue_place {
    uint64_t exec;
    uint64_t env;     /* address of `used` of the graph that is its graph's parent */
    uint32_t slot;    /* index of the slot */
    uint32_t upstream; /* upstream nodes that are not complete */
    uint32_t used;    /* children of this execution, launched or reserved */
    uint16_t position, weight;
    uint16_t out_count, out_first;
    uint32_t reserved[7];
    uint32_t out[ACS_GPU_ISSUE_INLINE];
} acs_gpu_issue_place;

/* A slot's state in device memory. */
typedef struct acs_gpu_issue_slot {
    uint64_t tables;  /* pinned host memory: ACS_GPU_ISSUE_RING tables */
    uint64_t places;  /* acs_gpu_issue_place * of all slots */
    uint64_t word;    /* uint64_t * in mapped host memory: all ops of the slot up to this value are complete */
    uint64_t refusal; /* uint64_t * in mapped host memory: why a graph could not be launched */
    uint64_t first_value;
    uint32_t index;   /* index of this slot */
    uint32_t turn;    /* bundles so far; determines the next table */
    uint32_t arrived; /* blocks of the head that have ended */
    uint32_t used;    /* children of the head's execution, as in acs_gpu_issue_place */
    uint32_t ops;
    uint32_t left;    /* ops that are not complete */
    uint32_t publishing, published;
    uint32_t done[ACS_RELEASE_TREE_ITEMS / 32]; /* bit p: the op at position p is complete */
    uint32_t out[ACS_RELEASE_TREE_OUT];
} acs_gpu_issue_slot;

#endif

/*
 * What a program's executor and the library share: the table of a bundle, and the launch that names it. Plain C,
 * included by acs_resident.cuh and by src/cuda/resident. Programs use acs_resident.cuh.
 *
 * The library writes a table into pinned memory. The executor copies it to device memory, and counts down there.
 */
#ifndef ACS_EXECUTOR_H
#define ACS_EXECUTOR_H

#include <stdint.h>

enum {
    ACS_EXECUTOR_LAYOUT = 1,      /* number of this layout: acs_executor_params.layout */
    ACS_EXECUTOR_OPS = 512,       /* most ops of a table, joins included */
    ACS_EXECUTOR_ARG_BYTES = 512, /* most bytes of an op's arguments */
    ACS_EXECUTOR_NEAR = 64,       /* followers of an op that its blocks keep in shared memory */
    ACS_EXECUTOR_JOIN = 0xffff,   /* body of a join, which runs nothing */
    ACS_EXECUTOR_COPY = 0xfffe,   /* bodies of the library's own: copies (dst, src, bytes), */
    ACS_EXECUTOR_ROWS = 0xfffd,   /* copies of rows (dst, src, bytes of a row, pitch), */
    ACS_EXECUTOR_FILL = 0xfffc,   /* fills (dst, bytes, value), each with arguments of 8 bytes */
    ACS_EXECUTOR_BODIES = 0xfffc, /* the program's bodies have smaller numbers */
    ACS_EXECUTOR_COPY_BYTES = 4096, /* bytes that a block of a copy or fill handles */
    ACS_EXECUTOR_STEP = 16        /* ops after which progress is published */
};

/*
 * One op, or a join of one block. Ops stand in an order in which each follows only earlier ones. A ticket is one block
 * of an op; tickets are numbered in the order of the ops.
 */
typedef struct acs_executor_op {
    uint32_t grid[3];
    uint16_t block[3];    /* threads, a multiple of 32 in all */
    uint16_t body;        /* number of the body in its executor, or ACS_EXECUTOR_JOIN */
    uint32_t first_ticket;
    uint32_t args_at;     /* bytes from the start of the table, a multiple of 16 */
    uint16_t arg_bytes;   /* rounded up to 16 */
    uint16_t position;    /* position among the bundle's ops; of a join: not used */
    uint16_t out_first;   /* first follower in the list of followers */
    uint16_t out_count;
    uint32_t each;        /* 1: each block counts the followers down; 0: only the block that ends last */
    uint32_t reserved[4];
    uint32_t pending;     /* what has to end before the op: for each op that it follows 1, or its blocks if `each` */
    uint32_t left;        /* own blocks that have not ended */
} acs_executor_op;

/* Argument of an executor kernel. */
typedef struct acs_executor_launch {
    uint64_t source; /* the table, in pinned memory */
    uint64_t table;  /* its copy in device memory: ops, then what follows */
    uint64_t state;  /* acs_executor_state * in device memory, zero before and after each launch */
    uint64_t word;   /* uint64_t * in mapped memory: all ops up to this value are complete */
    uint64_t first_value; /* value of the op at position 0 */
    uint32_t bytes;       /* of the table, a multiple of 16 */
    uint32_t entries;     /* ops and joins */
    uint32_t ops;         /* without joins */
    uint32_t tickets;
    uint32_t firsts_at;   /* bytes from the start of the table: by op, its first ticket (uint32_t) */
    uint32_t outs_at;     /* bytes from the start of the table: followers (uint16_t) */
} acs_executor_launch;

typedef struct acs_executor_state {
    uint32_t slices;  /* slices of the table that blocks have taken to copy */
    uint32_t copied;  /* slices that are copied */
    uint32_t ticket;  /* next ticket */
    uint32_t ended;   /* ops that are complete */
    uint32_t exited;  /* blocks of the executor that have ended */
    uint32_t publishing, published;
    uint32_t reserved;
    uint32_t done[ACS_EXECUTOR_OPS / 32]; /* bit p: the op at position p is complete */
} acs_executor_state;

#endif

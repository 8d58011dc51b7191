/*
 * The tables that the host writes into pinned memory and the head of a cached graph reads. Plain C, included by the
 * host part of the backend and by the kernels here.
 */
#ifndef ACS_DEVICE_H
#define ACS_DEVICE_H

#include <stdint.h>

enum {
    ACS_DEVICE_SET_ENABLED = 1, /* switch the node to ACS_DEVICE_SET_ON */
    ACS_DEVICE_SET_ON = 2,
    ACS_DEVICE_SET_GRID = 4,
    ACS_DEVICE_SET_CELL = 8,      /* the node obeys a cell */
    ACS_DEVICE_SET_CELL_GRID = 16, /* and takes its grid from it */
    ACS_DEVICE_HEAD_THREADS = 64, /* most threads of a block of the head, one per set; fewer if sets are large */
    ACS_DEVICE_COPY_THREADS = 256, /* threads of a block of a copy or fill */
    ACS_DEVICE_COPY_BYTES = 4096   /* bytes that such a block handles */
};

/* Changes of one kernel node. Its parameters lie behind it, and the next set `stride` bytes on. */
typedef struct acs_device_set {
    uint64_t node; /* CUgraphDeviceNode */
    uint32_t grid[3];
    uint16_t what;  /* ACS_DEVICE_SET_* */
    uint16_t bytes; /* bytes of parameters to set; 0: none */
    uint16_t first; /* offset of these bytes in the kernel's parameters */
    uint16_t reserved;
    int32_t cell;   /* ACS_DEVICE_SET_CELL: where its cell lies, in bytes from the table's `cells` */
} acs_device_set;

/* Changes for one launch of a cached graph. Behind it lie `values_most` values to publish, then the sets. */
typedef struct acs_device_table {
    uint32_t sets;   /* number of sets now */
    uint32_t values;
    uint64_t word;   /* uint64_t * in mapped host memory: where values are published */
    uint64_t cells;  /* address of the cell to which the sets' offsets refer */
    uint64_t reserved;
} acs_device_table;

#endif

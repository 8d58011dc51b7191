/*
 * What the host and the library's device code share: the tables that the host writes into pinned memory and a kernel at
 * the head of a cached graph reads. Plain C, included by the host part of the backend and by the kernels here.
 */
#ifndef ACS_DEVICE_H
#define ACS_DEVICE_H

#include <stdint.h>

enum {
    ACS_DEVICE_SET_ENABLED = 1, /* the node is switched: to ACS_DEVICE_SET_ON */
    ACS_DEVICE_SET_ON = 2,
    ACS_DEVICE_SET_GRID = 4,
    ACS_DEVICE_HEAD_THREADS = 64, /* threads of a block of the head, one per set; fewer where sets are large */
    ACS_DEVICE_COPY_THREADS = 256, /* of a block of a copy or fill, */
    ACS_DEVICE_COPY_BYTES = 4096   /* which handles so many bytes */
};

/* Changes of one kernel node; `stride` bytes from one to the next, its parameters behind it. */
typedef struct acs_device_set {
    uint64_t node; /* CUgraphDeviceNode */
    uint32_t grid[3];
    uint16_t what;  /* ACS_DEVICE_SET_* */
    uint16_t bytes; /* parameters to set; 0: none */
    uint16_t first; /* where in the kernel's parameters they lie */
    uint16_t reserved[3];
} acs_device_set;

/* What changes for one launch of a cached graph. Behind it: `values_most` values to publish, then the sets. */
typedef struct acs_device_table {
    uint32_t sets;   /* how many there are now */
    uint32_t values;
    uint64_t word;   /* where values are published: uint64_t *, mapped host memory */
} acs_device_table;

#endif

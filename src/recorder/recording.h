/*
 * A recording: the ops of a context, the waits of its callers and its blocks of memory, with their times. recorder.h
 * makes it, src/report reads it. Times are ns since the recording began; 0: not known.
 */
#ifndef ACS_RECORDING_H
#define ACS_RECORDING_H

#include "window/batch.h"

/* No place: an op that is part of no other, or has no segments left. */
#define ACS_PLACE_NONE UINT32_MAX

/* An op. Of a replay there is one for the whole, and one for each of its ops, whose `whole` it is. */
typedef struct acs_recorded_op {
    acs_op seq;
    acs_label label;
    uint64_t entered;          /* its call queued it */
    uint64_t inserted;         /* it left the FIFO for the window */
    uint64_t issued;           /* a thread began to hand it to its slot, or to run it */
    uint64_t booked;           /* that thread had handed it over */
    uint64_t ended;            /* the core learnt that it had ended */
    uint64_t ran_from, ran_to; /* it ran, where the backend tells of each op */
    uint64_t value;            /* position in the timeline of its slot */
    uint64_t batch;            /* ops with the same number were issued together */
    uint64_t first_segment;    /* while recording: number of its first segment; in a recording: place in `segments` */
    uint32_t segment_count;
    uint32_t whole; /* place of the replay that it is part of */
    uint32_t graph; /* place in `graphs` of what it was launched with; ACS_PLACE_NONE: it was launched alone */
    uint32_t thread;          /* number of the calling thread; 0: not known */
    uint32_t blocks, threads; /* of a kernel: blocks of the grid, threads of a block; at most UINT32_MAX */
    uint64_t bytes;           /* that it copies or fills */
    uint64_t pointers;        /* of a kernel: hash of its pointers that begin no segment */
    int16_t slot;             /* -1: none */
    uint8_t kind, asked;      /* acs_op_kind */
    uint8_t method;           /* acs_issue_method; 0: not known */
    uint8_t device;
    uint8_t any;      /* it may touch any memory */
    uint8_t transfer; /* a copy of the runtime's own */
    uint8_t bundled;  /* part of a bundle */
    uint8_t gap;      /* ops before it were not recorded */
    acs_status status;
} acs_recorded_op;

/* Ops that the device ran as one: a replay, or a bundle of which the device tells. Its times are known or both 0. */
typedef struct acs_recorded_graph {
    uint64_t began, ended;
} acs_recorded_graph;

typedef enum acs_recorded_wait_type {
    ACS_RECORDED_WAIT_OP,  /* for one op, or the ops that touch a range */
    ACS_RECORDED_WAIT_ALL, /* for all ops */
    ACS_RECORDED_WAIT_ROOM /* for room in the FIFO */
} acs_recorded_wait_type;

/* A caller waited. */
typedef struct acs_recorded_wait {
    uint64_t began, ended;
    acs_op op;     /* for which, or up to which; of ROOM: the newest op at the begin */
    acs_op newest; /* newest op that had been queued at the begin */
    uint32_t thread;
    uint32_t type; /* acs_recorded_wait_type */
} acs_recorded_wait;

/* A block was handed out, or freed. */
typedef struct acs_recorded_block {
    uint64_t began, ended;       /* of the call */
    uint64_t block, base, bytes; /* number, first address */
    uint64_t live, reserved;     /* bytes of the context's blocks, and of its pools, after the call */
    const acs_site *site;        /* of the call that asked for the block; may be NULL */
    acs_op newest;
    uint32_t thread;
    bool freed;
} acs_recorded_block;

/* All of them, by number of op, by begin. Owned by the caller of acs_recorder_take. */
typedef struct acs_recording {
    acs_recorded_op *ops;
    acs_segment *segments;
    acs_recorded_graph *graphs;
    acs_recorded_wait *waits;
    acs_recorded_block *blocks;
    uint32_t op_count, graph_count, wait_count, block_count;
    uint64_t segment_count;
    uint64_t began_ns; /* by acs_clock_ns: when the recording began */
    uint64_t span_ns;  /* time from its begin to its end */
    uint64_t ops_seen; /* ops that ended meanwhile */
    bool virtual_time; /* times are those of a simulated GPU */
} acs_recording;

#endif

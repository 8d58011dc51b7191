/*
 * The state of bundling: one per core, under the core's lock. A bundle is a batch of ops of the window that a backend
 * issues at once. form.c chooses its ops.
 */
#ifndef ACS_BUNDLER_H
#define ACS_BUNDLER_H

#include "scheduler/core.h"

/* Ops that could be issued at the last search, and the groups they form. Private to form.c. */
typedef struct acs_gathering {
    uint64_t seen;     /* count of insertions, retirements and bookings at the last search */
    acs_op awaited;    /* op that a caller waited for at the last search, not issued then; 0: none */
    uint32_t backoff;  /* decisions that the next search is put off by */
    bool complete;     /* whether the window holds all ops up to the end of a bundle */
    uint32_t count, edge_count;
    uint32_t due_count, due_next;
    uint32_t entries[ACS_BATCH_ITEMS]; /* window entries of ops and joins, in an order in which they may be issued */
    uint32_t generations[ACS_BATCH_ITEMS];
    uint16_t part[ACS_BATCH_ITEMS];    /* union-find: parent in the same part; the root has its own index */
    uint16_t ops_of[ACS_BATCH_ITEMS];  /* ops of the part, at its root */
    uint64_t behind[ACS_BATCH_ITEMS];  /* mask of slots that the part waits for, at its root */
    uint16_t first[ACS_BATCH_ITEMS];   /* first member of the group, at the group's root */
    uint16_t next[ACS_BATCH_ITEMS];    /* next member of the same group */
    uint16_t due[ACS_BATCH_ITEMS];     /* roots of the groups that become bundles */
    struct {
        uint16_t from; /* index in `entries` */
        uint16_t next; /* next edge to the same entry; 0: none */
    } edges[ACS_BATCH_EDGES];          /* element 0 is not used */
} acs_gathering;

typedef struct acs_bundler {
    acs_issue_method method; /* issue method that ACS_ISSUE asks for; constant */
    uint32_t most;         /* most ops in a bundle; constant */
    uint64_t bookings;     /* actions whose results were booked */
    uint32_t deferred;       /* consecutive decisions without a new op */
    uint32_t least_now;    /* fewest ops in a bundle: core->batch_least, or more after smaller bundles were refused */
    uint32_t few;          /* groups launched since bundles of their size were refused */
    uint32_t refusals;     /* 1: a bundle was refused, and the next groups are launched one by one */
    acs_gathering gathering;
} acs_bundler;

/* Of acs_core_config.batcher. */
extern const acs_batcher acs_bundle_batcher;

#endif

/*
 * Bundles: ops of the window that go to the device as one batch, which a backend issues by whatever is cheapest. form.c
 * decides what is in them, boundary.h where they end, contention.h what their kernels take of a device. One of a core,
 * under the core's lock.
 */
#ifndef ACS_BUNDLER_H
#define ACS_BUNDLER_H

#include "bundles/boundary.h"
#include "bundles/contention.h"
#include "scheduler/core.h"

/* What could be issued when it was last looked at, and what is to become of it. Private to form.c. */
typedef struct acs_gathering {
    uint64_t seen;     /* how far the core was then, */
    acs_op awaited;    /* and which op a caller waited for that was not issued; 0: none */
    uint32_t backoff;  /* decisions for which nothing is gathered */
    bool complete;     /* all ops up to the end of a bundle are in the window */
    uint32_t count, edge_count;
    uint32_t due_count, due_next;
    uint32_t entries[ACS_BATCH_ITEMS]; /* ops and joins, in an order in which they may be issued */
    uint32_t generations[ACS_BATCH_ITEMS];
    uint16_t part[ACS_BATCH_ITEMS];    /* another of the same part, nearer to the one that stands for it; itself: that one */
    uint16_t ops_of[ACS_BATCH_ITEMS];  /* of the part that this one stands for */
    uint64_t behind[ACS_BATCH_ITEMS];  /* the same: slots that it has to wait for */
    uint16_t first[ACS_BATCH_ITEMS];   /* of a group, at the part that stands for it: the first that belongs to it, */
    uint16_t next[ACS_BATCH_ITEMS];    /* and the one that follows in it */
    uint16_t due[ACS_BATCH_ITEMS];     /* groups that are to be bundles */
    struct {
        uint16_t from; /* place in `entries` */
        uint16_t next; /* of the edges to the same entry; 0: last */
    } edges[ACS_BATCH_EDGES];          /* from 1 on */
} acs_gathering;

typedef struct acs_bundler {
    acs_issue_method method; /* what ACS_ISSUE asks for; constant, as the next two */
    uint32_t most;         /* ops in a bundle */
    bool learns;           /* what kernels take of a device */
    uint64_t bookings;     /* actions whose results were booked */
    acs_boundary boundary; /* where bundles end */
    acs_op cut;            /* the latest op before which one ends */
    uint32_t deferred;       /* decisions in a row for which nothing came in */
    uint32_t least_now;    /* core->batch_least, or more where smaller bundles were refused */
    uint32_t few;          /* groups launched since bundles of their size were refused */
    uint32_t refusals;     /* 1: a bundle was refused, so what is gathered next is launched one by one */
    acs_gathering gathering;
    acs_contention contention;
} acs_bundler;

/* For acs_core_config. */
extern const acs_batcher acs_bundle_batcher;

#endif

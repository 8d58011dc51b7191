/*
 * Who releases whom when a bundle is issued by the GPU itself: the followers of each of a bundle's nodes, and trees of fans
 * where one node would release more than one execution of a graph may launch. Pure arithmetic over a bundle's shape; called
 * by the cuda backend; allocates nothing. Also read by device code, so this header includes nothing of the library.
 *
 * WIRE-1  the end of a node causes at most `weight` launches and passed joins together, and weight <= TUNE_RELEASE_MOST.
 * WIRE-2  `upstream` is how often a node is named in the lists of followers of others; 0: the head launches it.
 * WIRE-3  only ops and fans are launched, and every fan has followers; what a join's end causes is counted where the
 *         join is.
 */
#ifndef ACS_WIRES_H
#define ACS_WIRES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ACS_WIRES_ITEMS = 512, /* as ACS_BATCH_ITEMS */
    ACS_WIRES_FANS = 63,
    ACS_WIRES_NODES = ACS_WIRES_ITEMS + ACS_WIRES_FANS,
    ACS_WIRES_OUT = 4096 + ACS_WIRES_ITEMS + ACS_WIRES_FANS /* edges, roots, and edges to fans */
};

typedef enum acs_wires_kind { ACS_WIRES_OP, ACS_WIRES_JOIN_NODE, ACS_WIRES_FAN } acs_wires_kind;

typedef struct acs_wires_node {
    uint8_t kind;
    uint16_t upstream, weight;
    uint16_t first_out, out_count; /* followers: acs_wires.out */
} acs_wires_node;

/* Nodes: the bundle's items, then fans. The head, which launches all that has no upstream, is none of them. */
typedef struct acs_wires {
    uint32_t nodes, out_used;
    acs_wires_node node[ACS_WIRES_NODES];
    acs_wires_node head;
    uint16_t out[ACS_WIRES_OUT];
} acs_wires;

struct acs_dag;
/* False: too many fans would be needed. */
bool acs_wires_make(const struct acs_dag *dag, acs_wires *wires);

#endif

/*
 * Layers: how the ops of a bundle are laid into a cached graph of levels with a barrier between them, in which each
 * level has some cells (nodes) for each type of kernel. Pure arithmetic over a shape (dag.h); called by backends. Keeps
 * nothing.
 *
 * LAYER-1  an op is in a strictly higher level than every op that it follows, over joins too; joins are in no cell.
 * LAYER-2  each op has a cell of its type for itself.
 * LAYER-3  a level of the bundle for which there are too few cells spills into the next ones.
 */
#ifndef ACS_LAYERS_H
#define ACS_LAYERS_H

#include "bundles/dag.h"

enum {
    ACS_LAYERS_TYPES = 8,   /* most types of a template */
    ACS_LAYERS_LEVELS = 64, /* most levels */
    ACS_LAYERS_NONE = UINT16_MAX
};

/* A graph of layers, as a shape. Cells of a level are numbered type by type. */
typedef struct acs_layer_template {
    uint32_t levels, types;
    uint32_t type[ACS_LAYERS_TYPES];  /* none is 0 or there twice */
    uint16_t cells[ACS_LAYERS_TYPES]; /* of a level, for this type */
} acs_layer_template;

/* What a launch of such a graph takes of the GPU, in ns. */
typedef struct acs_layers_costs {
    uint32_t level, used, unused; /* of a level; of a cell with an op; of a cell without */
} acs_layers_costs;

typedef struct acs_layers {
    uint32_t levels;                       /* that have ops */
    uint16_t level[ACS_BATCH_ITEMS];       /* of each node of the dag; a join: ACS_LAYERS_NONE */
    uint16_t cell[ACS_BATCH_ITEMS];        /* in its level; a join: ACS_LAYERS_NONE */
    uint16_t prefix[ACS_LAYERS_LEVELS];    /* after a level: so many ops from the bundle's first on have ended */
} acs_layers;

/* Cells of one level; of the first cell of a type: type_index. */
uint32_t acs_layers_cells(const acs_layer_template *shape);
uint32_t acs_layers_first_cell(const acs_layer_template *shape, uint32_t type_index);
/* Equal for equal templates, never 0. */
uint64_t acs_layers_key(const acs_layer_template *shape);
/* What it costs to run `ops` ops in it, in ns. */
uint64_t acs_layers_cost(const acs_layer_template *shape, const acs_layers_costs *costs, uint32_t ops);

/* False: it does not fit, for want of levels or of a type; then the layout is worth nothing. */
bool acs_layers_make(const acs_dag *dag, const acs_layer_template *shape, acs_layers *layers);
/*
 * The cheapest template for a bundle among few sizes, so that bundles which resemble each other share one: cells in
 * powers of two, levels in multiples of four above eight, with at most `nodes` cells in all; and the layout. False: the
 * bundle has too many types, or is too deep or too large.
 */
bool acs_layers_choose(const acs_dag *dag, const acs_layers_costs *costs, uint32_t nodes, acs_layer_template *shape,
                       acs_layers *layers);

#endif

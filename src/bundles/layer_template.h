/*
 * Layers: a cached graph of levels with a barrier between them. Each level has some cells (nodes) for each type of
 * kernel, and the ops of a bundle are laid into cells. Pure arithmetic over a shape (dag.h); called by backends. Keeps
 * nothing.
 *
 * LAYER-1  an op is in a strictly higher level than every op that it follows, over joins too; joins are in no cell.
 * LAYER-2  each op has a cell of its type for itself.
 * LAYER-3  a level of the bundle for which there are too few cells spills into the next ones.
 */
#ifndef ACS_LAYER_TEMPLATE_H
#define ACS_LAYER_TEMPLATE_H

#include "bundles/dag.h"

enum {
    ACS_LAYERS_TYPES = 8,   /* most types in a template */
    ACS_LAYERS_LEVELS = 64, /* most levels in a template */
    ACS_LAYERS_NONE = UINT16_MAX
};

/* The shape of a graph of layers. The cells of a level are numbered type by type. */
typedef struct acs_layer_template {
    uint32_t levels, types;
    uint32_t type[ACS_LAYERS_TYPES];  /* numbers of kernel types; none is 0, none occurs twice */
    uint16_t cells[ACS_LAYERS_TYPES]; /* cells of a level, by type */
} acs_layer_template;

/* The GPU's time for a launch of such a graph, in ns. */
typedef struct acs_layers_costs {
    uint32_t level, used, unused; /* per level, per cell with an op, per cell without one */
} acs_layers_costs;

typedef struct acs_layers {
    uint32_t levels;                       /* levels with ops */
    uint16_t level[ACS_BATCH_ITEMS];       /* level of each node of the dag; ACS_LAYERS_NONE: a join */
    uint16_t cell[ACS_BATCH_ITEMS];        /* cell in that level; ACS_LAYERS_NONE: a join */
    /* by level: number of first ops of the bundle that have ended when the level has */
    uint16_t prefix[ACS_LAYERS_LEVELS];
} acs_layers;

/* Cells of one level, and the number of a type's first cell. */
uint32_t acs_layers_cells(const acs_layer_template *shape);
uint32_t acs_layers_first_cell(const acs_layer_template *shape, uint32_t type_index);
/* Equal for equal templates, never 0. */
uint64_t acs_layers_key(const acs_layer_template *shape);
/* The cost in ns of running `ops` ops in such a graph. */
uint64_t acs_layers_cost(const acs_layer_template *shape, const acs_layers_costs *costs, uint32_t ops);

/* Lay a bundle into a template. False: it needs more levels or another type; `layers` is then not valid. */
bool acs_layers_make(const acs_dag *dag, const acs_layer_template *shape, acs_layers *layers);
/*
 * Find the cheapest template for a bundle, and lay the bundle into it. Templates have few sizes, so that similar
 * bundles share one: cells in powers of two, levels in multiples of four above eight, at most `nodes` cells in all.
 * False: the bundle has too many types, too many levels, or too many ops.
 */
bool acs_layers_choose(const acs_dag *dag, const acs_layers_costs *costs, uint32_t nodes, acs_layer_template *shape,
                       acs_layers *layers);

#endif

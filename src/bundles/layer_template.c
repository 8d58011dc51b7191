/*
 * Bundles laid into layers (layer_template.h). Called by backends that issue a bundle by a graph of layers, on any
 * thread. Never makes a graph, never allocates, and keeps nothing.
 *
 * One pass in the bundle's order puts each op into the first possible level: behind all ops that it follows, and with
 * a free cell of its type. That is optimal if levels are wide enough. Ops that come first also end first, so that
 * progress can be reported.
 */
#include "bundles/layer_template.h"

#include "base/tuning.h"

#include <string.h>

uint32_t acs_layers_first_cell(const acs_layer_template *shape, uint32_t type_index)
{
    uint32_t cells = 0;

    for (uint32_t t = 0; t < type_index; t++)
        cells += shape->cells[t];
    return cells;
}

uint32_t acs_layers_cells(const acs_layer_template *shape)
{
    return acs_layers_first_cell(shape, shape->types);
}

uint64_t acs_layers_key(const acs_layer_template *shape)
{
    uint64_t key = acs_hash64(UINT64_C(1) << 32 | shape->levels);

    for (uint32_t t = 0; t < shape->types; t++)
        key = acs_hash64(key ^ ((uint64_t)shape->cells[t] << 32 | shape->type[t]));
    return key ? key : 1;
}

uint64_t acs_layers_cost(const acs_layer_template *shape, const acs_layers_costs *costs, uint32_t ops)
{
    uint64_t cells = (uint64_t)shape->levels * acs_layers_cells(shape);
    uint64_t unused = cells > ops ? cells - ops : 0;

    return (uint64_t)shape->levels * costs->level + (uint64_t)ops * costs->used + unused * costs->unused;
}

/* ----------------------------------------------------------------------------------------------------------- layout */

/* The index of a type; the guess is mostly right, since it is the type of the op before. */
static uint32_t type_index(const acs_layer_template *shape, uint32_t type, uint32_t guess)
{
    if (guess < shape->types && shape->type[guess] == type)
        return guess;
    for (guess = 0; guess < shape->types && shape->type[guess] != type;)
        guess++;
    return guess;
}

/* The first level that the node may be in. `after`: for each node, the first level behind it. */
static uint32_t earliest(const acs_dag *dag, const acs_dag_node *node, const uint16_t *after)
{
    uint32_t level = 0;

    for (uint32_t e = 0; e < node->edge_count; e++) {
        uint32_t behind = after[dag->edges[node->first_edge + e]];
        if (behind > level)
            level = behind;
    }
    return level;
}

/* Compute which first ops have ended after each level: all before the first op of a higher level. */
static void count_prefixes(const acs_dag *dag, acs_layers *layers)
{
    uint32_t first[ACS_LAYERS_LEVELS], op = 0, least = dag->ops;

    for (uint32_t l = 0; l < layers->levels; l++)
        first[l] = dag->ops;
    for (uint32_t i = 0; i < dag->nodes; i++) {
        uint32_t level = layers->level[i];
        if (!dag->node[i].type)
            continue;
        if (first[level] == dag->ops)
            first[level] = op;
        op++;
    }
    for (uint32_t l = layers->levels; l-- > 0;) {
        layers->prefix[l] = (uint16_t)least;
        if (first[l] < least)
            least = first[l];
    }
}

bool acs_layers_make(const acs_dag *dag, const acs_layer_template *shape, acs_layers *layers)
{
    uint16_t used[ACS_LAYERS_LEVELS][ACS_LAYERS_TYPES], after[ACS_BATCH_ITEMS];
    uint32_t t = 0;

    memset(used, 0, sizeof used);
    layers->levels = 0;
    for (uint32_t i = 0; i < dag->nodes; i++) {
        const acs_dag_node *node = &dag->node[i];
        uint32_t level = earliest(dag, node, after);
        after[i] = (uint16_t)level;
        layers->level[i] = layers->cell[i] = ACS_LAYERS_NONE;
        if (!node->type)
            continue;
        t = type_index(shape, node->type, t);
        while (t < shape->types && level < shape->levels && used[level][t] == shape->cells[t])
            level++;
        if (t == shape->types || level >= shape->levels)
            return false;
        ACS_ASSERT(level >= earliest(dag, node, after)); /* LAYER-1, LAYER-3 */
        ACS_ASSERT(used[level][t] < shape->cells[t]);    /* LAYER-2 */
        layers->level[i] = (uint16_t)level;
        layers->cell[i] = (uint16_t)(acs_layers_first_cell(shape, t) + used[level][t]++);
        after[i] = (uint16_t)(level + 1);
        if (level >= layers->levels)
            layers->levels = level + 1;
    }
    count_prefixes(dag, layers);
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- choice */

/*
 * Find the types of a bundle and, for each, the most ops in one level. Types are sorted, so that the order of ops
 * makes no difference to the template. False: too many types.
 */
static bool find_types(const acs_dag *dag, acs_layer_template *shape)
{
    uint16_t in_level[ACS_BATCH_ITEMS][ACS_LAYERS_TYPES];

    shape->types = 0;
    for (uint32_t i = 0; i < dag->nodes; i++) {
        uint32_t type = dag->node[i].type, at = shape->types;
        if (!type || type_index(shape, type, 0) < shape->types)
            continue;
        if (shape->types == ACS_LAYERS_TYPES)
            return false;
        for (shape->types++; at > 0 && shape->type[at - 1] > type; at--)
            shape->type[at] = shape->type[at - 1];
        shape->type[at] = type;
    }
    memset(in_level, 0, (size_t)dag->levels * sizeof *in_level);
    memset(shape->cells, 0, sizeof shape->cells);
    for (uint32_t i = 0; i < dag->nodes; i++) {
        const acs_dag_node *node = &dag->node[i];
        uint32_t t = node->type ? type_index(shape, node->type, 0) : shape->types;
        if (node->type && ++in_level[node->level][t] > shape->cells[t])
            shape->cells[t] = in_level[node->level][t];
    }
    return true;
}

static uint16_t size_for(uint32_t least, uint32_t needed)
{
    uint32_t size = acs_round_up_pow2(needed);

    return (uint16_t)(size < least ? least : size);
}

/*
 * The number of levels: a power of two up to eight, then a multiple of four, since an empty level costs as much as a
 * full one.
 */
static uint16_t levels_for(uint32_t needed)
{
    const uint32_t steps = (needed + TUNE_LAYERS_STEP - 1) / TUNE_LAYERS_STEP;
    return needed <= 2 * TUNE_LAYERS_STEP ? size_for(TUNE_LAYERS_LEAST, needed) : (uint16_t)(steps * TUNE_LAYERS_STEP);
}

/* Make the template whose width was halved `narrowed` times, as deep as the bundle then is. */
static bool narrow(const acs_dag *dag, const acs_layer_template *widest, uint32_t narrowed, acs_layer_template *shape,
                   acs_layers *layers)
{
    *shape = *widest;
    shape->levels = ACS_LAYERS_LEVELS;
    for (uint32_t t = 0; t < shape->types; t++)
        shape->cells[t] = size_for(TUNE_LAYERS_CELLS_LEAST, acs_round_up_pow2(widest->cells[t]) >> narrowed);
    if (!acs_layers_make(dag, shape, layers))
        return false;
    shape->levels = levels_for(layers->levels);
    return true;
}

bool acs_layers_choose(const acs_dag *dag, const acs_layers_costs *costs, uint32_t nodes, acs_layer_template *shape,
                       acs_layers *layers)
{
    acs_layer_template widest, tried;
    uint64_t best = UINT64_MAX;

    memset(&widest, 0, sizeof widest);
    if (dag->levels > ACS_LAYERS_LEVELS || !find_types(dag, &widest))
        return false;
    for (uint32_t narrowed = 0; narrowed < TUNE_LAYERS_WIDTHS; narrowed++) {
        uint64_t cost;
        if (!narrow(dag, &widest, narrowed, &tried, layers))
            break; /* narrower templates are deeper still */
        cost = acs_layers_cost(&tried, costs, dag->ops);
        if (cost < best && tried.levels * acs_layers_cells(&tried) <= nodes) {
            best = cost;
            *shape = tried;
        }
    }
    return best != UINT64_MAX && acs_layers_make(dag, shape, layers);
}

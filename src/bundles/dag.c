/*
 * The shape of a bundle: its edges without the implied ones, levels and key (dag.h). Called by backends that issue a
 * bundle, on any thread, with a bundle that no other thread uses. Never allocates, and keeps nothing from one bundle
 * to the next.
 *
 * Every node comes after the nodes that it follows, so one pass is enough. Each node has the set of all nodes on paths
 * to it (its ancestors). The edges of a node are taken from the greatest number down. An edge is implied exactly if
 * its end is an ancestor of a node whose edge was kept.
 */
#include "bundles/dag.h"

#include "base/tuning.h"

enum {
    WORD_BITS = 64,
    WORDS = ACS_BATCH_ITEMS / WORD_BITS
};

_Static_assert(ACS_BATCH_ITEMS % WORD_BITS == 0, "sets of nodes are whole words");

typedef struct node_set {
    uint64_t word[WORDS];
} node_set;

static void set_add(node_set *set, uint32_t node)
{
    set->word[node / WORD_BITS] |= UINT64_C(1) << node % WORD_BITS;
}

/* The first `words` words of a set hold all nodes of the bundle, so that smaller bundles take shorter loops. */
static void set_unite(node_set *set, const node_set *other, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++)
        set->word[w] |= other->word[w];
}

static uint64_t mix(uint64_t key, uint64_t value)
{
    key = (key ^ value) * 0xd6e8feb86659fd93u;
    return key ^ key >> 32;
}

/* State of the joins while a shape is made. */
typedef struct joins {
    uint16_t followers[ACS_BATCH_ITEMS]; /* followers of each item, as named; valid only if the bundle has joins */
    node_set resolved;
    uint32_t spare; /* edges that may be added beyond those of the bundle */
} joins;

static void count_followers(const acs_batch *batch, joins *j)
{
    bool any = false;

    j->resolved = (node_set){{0}};
    j->spare = ACS_DAG_EDGES - batch->edges_used;
    for (uint32_t i = 0; i < batch->items_used; i++) {
        any |= !batch->items[i].op;
        j->followers[i] = 0;
    }
    for (uint32_t e = 0; any && e < batch->edges_used; e++)
        j->followers[batch->edges[e]]++;
}

/*
 * Collect the nodes that an item has edges to; a node that is named twice counts once. For a resolved join its
 * ancestors' set holds the nodes that it stands for.
 */
static void named_by(const acs_batch *batch, const acs_item *item, const joins *j, const node_set *ancestors,
                     node_set *named, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++)
        named->word[w] = 0;
    for (uint32_t i = 0; i < item->edge_count; i++) {
        uint32_t to = batch->edges[item->first_edge + i];
        if (ACS_UNLIKELY(!batch->items[to].op) && j->resolved.word[to / WORD_BITS] >> to % WORD_BITS & 1)
            set_unite(named, &ancestors[to], words);
        else
            set_add(named, to);
    }
}

/* Add an edge to the newest node: its end gets one more follower, and the node the level behind its end. */
static void keep_edge(acs_dag *dag, acs_dag_node *node, uint32_t to)
{
    acs_dag_node *end = &dag->node[to];
    ACS_ASSERT(to < (uint32_t)(node - dag->node) && dag->edges_used < ACS_DAG_EDGES); /* DAG-1 */
    uint32_t level = end->level + (node->type ? 1u : 0u);

    dag->edges[dag->edges_used++] = (uint16_t)to;
    dag->key = mix(dag->key, to);
    node->edge_count++;
    end->out_count++;
    if (level > node->level)
        node->level = (uint16_t)level;
}

/* Keep the edges of `named` that no other implies; `before` becomes the set of all ancestors. */
static void keep_edges(acs_dag *dag, acs_dag_node *node, const node_set *named, const node_set *ancestors,
                       node_set *before, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++)
        before->word[w] = 0;
    for (uint32_t w = words; w-- > 0;) {
        uint64_t left = named->word[w] & ~before->word[w];
        while (left) {
            uint32_t bit = WORD_BITS - 1 - (uint32_t)__builtin_clzll(left), to = w * WORD_BITS + bit;
            keep_edge(dag, node, to);
            set_unite(before, &ancestors[to], w + 1);
            left = (left ^ UINT64_C(1) << bit) & ~before->word[w];
        }
    }
    set_unite(before, named, words);
}

/* Resolve a join, whose edges were added before, if edges past it are cheaper: take its edges back. */
static void resolve(acs_dag *dag, uint32_t join, uint64_t key, joins *j, node_set *stands_for, uint32_t words)
{
    acs_dag_node *node = &dag->node[join];
    uint32_t n = node->edge_count, m = j->followers[join], more = n * m > n + m ? n * m - n - m : 0;

    if (n * m > n + m + TUNE_BUNDLE_JOIN_EDGES || more > j->spare)
        return;
    j->spare -= more;
    set_add(&j->resolved, join);
    for (uint32_t w = 0; w < words; w++)
        stands_for->word[w] = 0;
    for (uint32_t e = 0; e < n; e++) {
        uint32_t to = dag->edges[node->first_edge + e];
        dag->node[to].out_count--;
        set_add(stands_for, to);
    }
    ACS_ASSERT(node->out_count == 0); /* DAG-3 */
    dag->edges_used = node->first_edge;
    dag->key = key;
    node->edge_count = node->level = 0;
}

void acs_dag_make(const acs_batch *batch, acs_dag *dag)
{
    node_set ancestors[ACS_BATCH_ITEMS], named;
    uint32_t words = (batch->items_used + WORD_BITS - 1) / WORD_BITS;
    joins j;

    dag->nodes = batch->items_used;
    dag->ops = dag->edges_used = 0;
    dag->key = mix(1, batch->items_used);
    count_followers(batch, &j);
    for (uint32_t i = 0; i < batch->items_used; i++) {
        const acs_item *item = &batch->items[i];
        acs_dag_node *node = &dag->node[i];
        uint64_t key = dag->key;
        *node = (acs_dag_node){.type = item->op ? item->op->type : 0, .first_edge = (uint16_t)dag->edges_used};
        named_by(batch, item, &j, ancestors, &named, words);
        keep_edges(dag, node, &named, ancestors, &ancestors[i], words);
        if (!node->type)
            resolve(dag, i, key, &j, &ancestors[i], words);
        /* Edges come before their node's type and count, so that no two shapes give the same sequence. */
        dag->key = mix(mix(dag->key, node->type), UINT64_C(1) << 32 | node->edge_count);
        dag->ops += node->type != 0;
        ACS_ASSERT(node->edge_count || node->level == 0); /* DAG-2 */
    }
}

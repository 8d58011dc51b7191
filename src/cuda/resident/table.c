/*
 * The table of a bundle for a resident executor: ops in the order of their levels, with counters, followers and
 * arguments. Called by resident/resident.c. Makes no CUDA call, and keeps nothing from one bundle to the next.
 */
#include "cuda/resident/resident.h"

#include "base/tuning.h"

#include <string.h>

enum { NO_PLACE = UINT16_MAX };

/* A table that is being written. */
typedef struct writing {
    acs_resident_bundle *bundle;
    const acs_batch *batch;
    const acs_dag *dag;
    unsigned char *table;
    acs_executor_op *entries;
    uint32_t *firsts;
    uint16_t *outs;
    uint32_t entry_count, args_at;
    uint32_t blocks[ACS_BATCH_ITEMS]; /* by node */
    uint16_t place[ACS_BATCH_ITEMS];  /* by node: its entry; NO_PLACE: a join that was resolved */
    uint16_t filled[ACS_BATCH_ITEMS]; /* by node: the place of its next follower in `outs` */
} writing;

/* Whole words of 16 bytes, in bytes. */
static uint32_t to_words(uint32_t bytes)
{
    return (bytes + 15) & ~15u;
}

static uint32_t blocks_of(const acs_record *op)
{
    return op ? op->grid.x * op->grid.y * op->grid.z : 1;
}

/* What an op that follows this node counts down for it. */
static uint32_t weight(const writing *w, uint32_t node)
{
    return w->blocks[node] <= TUNE_RESIDENT_EACH_BLOCKS ? w->blocks[node] : 1;
}

/*
 * Sort the nodes by level; nodes of one level stay in their order. A join has the level of the last op that it stands
 * for, and comes after that op. @return the most blocks of one level.
 */
static uint32_t place_nodes(writing *w)
{
    uint16_t next[ACS_BATCH_ITEMS + 1] = {0};
    uint32_t blocks[ACS_BATCH_ITEMS] = {0}, widest = 0;
    for (uint32_t i = 0; i < w->dag->nodes; i++) {
        const acs_dag_node *node = &w->dag->node[i];
        w->place[i] = NO_PLACE;
        w->blocks[i] = blocks_of(w->batch->items[i].op);
        if (!node->type && !node->out_count)
            continue;
        next[node->level + 1]++;
        blocks[node->level] += w->blocks[i];
        widest = blocks[node->level] > widest ? blocks[node->level] : widest;
    }
    for (uint32_t level = 0; level < ACS_BATCH_ITEMS; level++)
        next[level + 1] = (uint16_t)(next[level + 1] + next[level]);
    w->entry_count = next[ACS_BATCH_ITEMS];
    for (uint32_t i = 0; i < w->dag->nodes; i++)
        if (w->dag->node[i].type || w->dag->node[i].out_count)
            w->place[i] = next[w->dag->node[i].level]++;
    return widest;
}

/* Copy the arguments to the offsets of the kernel's parameters. False: there is no room. */
static bool put_args(writing *w, acs_executor_op *entry, const acs_cuda_type *type, const acs_record *op)
{
    const acs_cuda_kernel *kernel = type->kernel;
    unsigned char *to = w->table + w->args_at;
    const uint32_t bytes = to_words(type->arg_bytes);
    if (w->args_at + bytes > ACS_RESIDENT_TABLE_BYTES)
        return false;
    entry->args_at = w->args_at;
    entry->arg_bytes = (uint16_t)bytes;
    w->args_at += bytes;
    if (type->packed) {
        memcpy(to, op->arg_bytes, type->arg_bytes);
        return true;
    }
    for (uint32_t i = 0; i < kernel->param_count; i++)
        memcpy(to + kernel->param_offset[i], op->arg_bytes + op->args[i].offset, kernel->param_bytes[i]);
    return true;
}

/* The executor's blocks are as large as the largest that they run. Copies and fills take blocks of any size. */
static void widen(writing *w, const acs_cuda_type *type)
{
    const uint32_t threads = type->block.x * type->block.y * type->block.z;
    acs_resident_bundle *bundle = w->bundle;
    bundle->threads = threads > bundle->threads ? threads : bundle->threads;
    bundle->shared_bytes = type->shared_bytes > bundle->shared_bytes ? type->shared_bytes : bundle->shared_bytes;
}

/* The part of an entry that only an op has. False: there is no room for its arguments. */
static bool put_op(acs_cuda *self, writing *w, acs_executor_op *entry, const acs_record *op, uint32_t position)
{
    const acs_cuda_type *type = acs_cuda_type_find(self, op->type);
    const acs_dim3 grid = op->grid, block = type->block;
    const acs_cuda_body *body = atomic_load_explicit(&type->kernel->body, memory_order_acquire); /* E in executor.c */
    entry->grid[0] = grid.x;
    entry->grid[1] = grid.y;
    entry->grid[2] = grid.z;
    entry->block[0] = (uint16_t)block.x;
    entry->block[1] = (uint16_t)block.y;
    entry->block[2] = (uint16_t)block.z;
    entry->body = (uint16_t)body->number;
    entry->position = (uint16_t)position;
    if (body->executor)
        widen(w, type);
    return put_args(w, entry, type, op);
}

/* Write all entries. False: there is no room for the arguments. */
static bool put_entries(acs_cuda *self, writing *w)
{
    uint32_t position = 0, outs = 0;
    for (uint32_t i = 0; i < w->dag->nodes; i++) {
        const acs_dag_node *node = &w->dag->node[i];
        const acs_record *op = w->batch->items[i].op;
        if (w->place[i] == NO_PLACE)
            continue;
        acs_executor_op *entry = &w->entries[w->place[i]];
        *entry = (acs_executor_op){.body = ACS_EXECUTOR_JOIN,
                                   .grid = {1, 1, 1},
                                   .out_first = (uint16_t)outs,
                                   .out_count = node->out_count,
                                   .each = w->blocks[i] <= TUNE_RESIDENT_EACH_BLOCKS,
                                   .left = w->blocks[i]};
        w->filled[i] = (uint16_t)outs;
        outs += node->out_count;
        for (uint32_t e = 0; e < node->edge_count; e++) {
            const uint32_t up = w->dag->edges[node->first_edge + e];
            ACS_ASSERT(w->place[up] < w->place[i]); /* RES-2 */
            entry->pending += weight(w, up);
            w->outs[w->filled[up]++] = w->place[i];
        }
        if (op && !put_op(self, w, entry, op, position++))
            return false;
    }
    return true;
}

bool acs_resident_table(acs_cuda *self, acs_resident_bundle *bundle, unsigned char *table)
{
    writing w = {.bundle = bundle, .batch = bundle->batch, .dag = bundle->dag, .table = table};
    acs_executor_launch *launch = &bundle->launch;
    uint32_t tickets = 0;
    bundle->widest = place_nodes(&w);
    launch->firsts_at = w.entry_count * (uint32_t)sizeof(acs_executor_op);
    launch->outs_at = launch->firsts_at + w.entry_count * (uint32_t)sizeof(uint32_t);
    w.args_at = to_words(launch->outs_at + bundle->dag->edges_used * (uint32_t)sizeof(uint16_t));
    w.entries = (acs_executor_op *)(void *)table;
    w.firsts = (uint32_t *)(void *)(table + launch->firsts_at);
    w.outs = (uint16_t *)(void *)(table + launch->outs_at);
    if (!put_entries(self, &w))
        return false;
    for (uint32_t i = 0; i < w.entry_count; i++) {
        w.firsts[i] = w.entries[i].first_ticket = tickets;
        tickets += w.entries[i].left;
    }
    launch->bytes = w.args_at;
    launch->entries = w.entry_count;
    launch->ops = bundle->dag->ops;
    launch->tickets = tickets;
    return true;
}

/*
 * Decided ops (window/decision.h) in what a launch issues at once. If an op's decision is in the same launch, the
 * decision gets the op's node, and switches it. If not, the decision has ended before the launch begins, and the
 * launch's head reads the cell. Called by all files that fill launches, in a scope. Pure bookkeeping; calls no driver.
 */
#include "cuda/graphs/graphs.h"

#include <string.h>

static uint32_t place_of(const acs_cell *cell)
{
    return (uint32_t)((uintptr_t)cell / sizeof *cell) % ACS_CUDA_LINK_HEADS;
}

void acs_cuda_links_begin(acs_cuda_links *links)
{
    memset(links->heads, 0, sizeof links->heads);
}

/* The latest decision with this cell, plus 1; 0: none. */
static uint16_t find(const acs_cuda_links *links, const acs_cell *cell)
{
    uint16_t at = links->heads[place_of(cell)];
    while (at && links->cell[at - 1] != cell)
        at = links->older[at - 1];
    return at;
}

void acs_cuda_links_add(acs_cuda_links *links, uint32_t i, const acs_record *op, const unsigned char *args)
{
    if (op->flags & ACS_RECORD_DECIDED) {
        const uint16_t by = links->obeys[i] = find(links, op->cell);
        ACS_ASSERT(!by || links->count[by - 1] < ACS_DECISION_TARGETS); /* DEC-2 */
        if (by) {
            acs_cuda_link_targets *to = &links->targets[by - 1];
            links->grids[by - 1] |= (uint32_t)((op->flags & ACS_RECORD_GRID_DECIDED) != 0) << links->count[by - 1];
            to->op[links->count[by - 1]++] = (uint16_t)i;
        }
    }
    if (op->flags & ACS_RECORD_DECIDES) {
        const acs_cell *cell = ((const acs_decision *)(const void *)args)->cell;
        links->cell[i] = cell;
        links->older[i] = links->heads[place_of(cell)];
        links->heads[place_of(cell)] = (uint16_t)(i + 1);
        links->count[i] = 0;
        links->grids[i] = 0;
    }
}

void acs_cuda_links_of(const acs_batch *batch, acs_cuda_links *links)
{
    acs_cuda_links_begin(links);
    for (uint32_t i = 0; i < batch->items_used; i++)
        if (batch->items[i].op)
            acs_cuda_links_add(links, i, batch->items[i].op, batch->items[i].op->arg_bytes);
}

void acs_cuda_links_apply(const acs_cuda_links *links, uint32_t i, const acs_record *op, acs_cuda_node_of node_of,
                          const void *user, acs_decision *room, acs_cuda_contents *contents)
{
    if (op->flags & ACS_RECORD_DECIDED)
        acs_cuda_contents_decide(contents, op, !links->obeys[i]);
    if (!(op->flags & ACS_RECORD_DECIDES))
        return;
    memcpy(room, contents->bytes, sizeof *room);
    memset(room->target, 0, sizeof room->target);
    room->target_count = links->count[i];
    room->target_grids = links->grids[i];
    for (uint32_t t = 0; t < room->target_count; t++)
        room->target[t] = node_of(user, links->targets[i].op[t]);
    contents->bytes = (const unsigned char *)room;
}

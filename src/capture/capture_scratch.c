/*
 * Scratch memory for library calls of a capture (see capture_scratch.h). Called by capture.c. It allocates nothing
 * itself: memory comes from the backend and belongs to the graph. Two calls that may run at once never get the same
 * block.
 */
#include "capture/capture_scratch.h"

#include "base/tuning.h"

/*
 * Choose a block: one whose latest user the call is behind anyway; else a new one; else the one that was used longest
 * ago. Sharing a block orders calls that their footprints do not order, but a large graph cannot have memory for each of
 * its calls.
 */
static acs_capture_scratch *choose_scratch(acs_capture_scratches *scratches, const acs_capture_order *order, uint64_t bytes)
{
    acs_capture_scratch *oldest = NULL;
    for (uint32_t i = 0; i < scratches->count; i++) {
        acs_capture_scratch *block = &scratches->blocks[i];
        if (block->bytes >= bytes && acs_capture_order_implies(order, block->user))
            return block;
        if (!oldest || block->turn < oldest->turn)
            oldest = block;
    }
    return scratches->count < TUNE_CAPTURE_SCRATCHES ? &scratches->blocks[scratches->count] : oldest;
}

/* A block that is too small is replaced. The graph keeps the old memory for its users. */
acs_status acs_capture_scratch_get(acs_capture_scratches *scratches, const acs_capture_at *at,
                                   const acs_capture_order *order, uint64_t bytes, acs_nodes *behind,
                                   acs_capture_scratch **chosen)
{
    acs_capture_scratch *block = choose_scratch(scratches, order, bytes);
    if (block->bytes < bytes) {
        ACS_TRY(at->backend->ops->capture->scratch(at->backend, at->stream, at->id, bytes, &block->memory));
        block->bytes = bytes;
        block->ends.count = 0;
        block->user = 0;
        scratches->count += block == &scratches->blocks[scratches->count];
    }
    bool implied = acs_capture_order_implies(order, block->user);
    for (uint32_t i = 0; i < block->ends.count && !implied; i++)
        if (!acs_nodes_add(behind, block->ends.list[i]))
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the nodes of a capture");
    block->turn = ++scratches->turns;
    *chosen = block;
    return ACS_OK;
}

acs_status acs_capture_scratch_used(acs_capture_scratch *block, uint64_t number, const acs_nodes *ends)
{
    block->user = number;
    return acs_nodes_set(&block->ends, ends->list, ends->count)
               ? ACS_OK
               : ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the nodes of a capture");
}

void acs_capture_scratches_forget(acs_capture_scratches *scratches)
{
    for (uint32_t i = 0; i < scratches->count; i++)
        scratches->blocks[i].user = 0;
}

void acs_capture_scratches_fini(acs_capture_scratches *scratches)
{
    for (uint32_t i = 0; i < scratches->count; i++)
        acs_nodes_fini(&scratches->blocks[i].ends);
}

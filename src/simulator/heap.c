/*
 * A binary heap of what will happen, by time. Called by the machine alone. Equal times keep the order in which they
 * were put, so that the same calls give the same run. It never looks at what happens.
 */
#include "simulator/internal.h"

static bool before(const sim_happening *a, const sim_happening *b)
{
    return a->when != b->when ? a->when < b->when : a->order < b->order;
}

bool acs_sim_heap_put(sim_heap *heap, sim_happening happening)
{
    uint32_t i;

    if (!ACS_GROW(heap->at, heap->capacity, heap->used + 1))
        return false;
    happening.order = heap->order++;
    for (i = heap->used++; i > 0 && before(&happening, &heap->at[(i - 1) / 2]); i = (i - 1) / 2)
        heap->at[i] = heap->at[(i - 1) / 2];
    heap->at[i] = happening;
    return true;
}

sim_happening acs_sim_heap_take(sim_heap *heap)
{
    sim_happening first = heap->at[0];
    sim_happening last = heap->at[--heap->used];
    uint32_t i = 0, child;

    while ((child = 2 * i + 1) < heap->used) {
        if (child + 1 < heap->used && before(&heap->at[child + 1], &heap->at[child]))
            child++;
        if (!before(&heap->at[child], &last))
            break;
        heap->at[i] = heap->at[child];
        i = child;
    }
    heap->at[i] = last;
    return first;
}

/*
 * Brings a recording together with the times that the device tells (acs_backend_ops.times_take): those of single ops, and
 * those of graphs, which all ops of a replay or bundle share. Called by src/report when a context closes.
 */
#include "recorder/recorder.h"

#include <stdlib.h>

/* A bundle whose time is known: the number of its ops' batch, and its graph. */
typedef struct bundle {
    uint64_t batch;
    uint32_t graph;
} bundle;

/* Place of the first op with this number or a later one. */
static uint32_t place_of_number(const acs_recording *r, acs_op seq)
{
    uint32_t low = 0, high = r->op_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (r->ops[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The op that a time is of; NULL: it is not recorded. A replay has the number of its first op, and comes before it. */
static acs_recorded_op *op_of(acs_recording *r, const acs_device_time *time)
{
    uint32_t place = place_of_number(r, time->op);
    if (time->node && place < r->op_count && r->ops[place].kind == ACS_KIND_REPLAY)
        place++;
    return place < r->op_count && r->ops[place].seq == time->op ? &r->ops[place] : NULL;
}

/* From acs_clock_ns to ns since the recording began; at least 1, since 0 means that a time is not known. */
static uint64_t since_begin(const acs_recording *r, uint64_t clock_ns)
{
    return clock_ns > r->began_ns ? clock_ns - r->began_ns : 1;
}

static void stretch(uint64_t *from, uint64_t *to, uint64_t began, uint64_t ended)
{
    if (!*to || began < *from)
        *from = began;
    if (ended > *to)
        *to = ended;
}

static void add_time(acs_recording *r, const acs_device_time *time, bundle *bundles, uint32_t *bundle_count)
{
    const uint64_t began = since_begin(r, time->began_ns), ended = since_begin(r, time->ended_ns);
    acs_recorded_op *op = op_of(r, time);
    if (!op)
        return;
    const bool of_many = !time->node && (op->kind == ACS_KIND_REPLAY || op->bundled);
    if (of_many && op->graph == ACS_PLACE_NONE) {
        op->graph = r->graph_count++;
        bundles[(*bundle_count)++] = (bundle){op->batch, op->graph};
    }
    if (of_many)
        stretch(&r->graphs[op->graph].began, &r->graphs[op->graph].ended, began, ended);
    else
        stretch(&op->ran_from, &op->ran_to, began, ended);
}

static int by_batch(const void *a, const void *b)
{
    const bundle *x = a, *y = b;
    return (x->batch > y->batch) - (x->batch < y->batch);
}

/* The other ops of the bundles have the same graph. */
static void share_graphs(acs_recording *r, bundle *bundles, uint32_t count)
{
    qsort(bundles, count, sizeof *bundles, by_batch);
    for (uint32_t i = 0; i < r->op_count; i++) {
        acs_recorded_op *op = &r->ops[i];
        const bundle wanted = {.batch = op->batch};
        const bundle *found =
            op->bundled && op->graph == ACS_PLACE_NONE ? bsearch(&wanted, bundles, count, sizeof wanted, by_batch) : NULL;
        if (found)
            op->graph = found->graph;
    }
}

acs_status acs_recording_add_times(acs_recording *recording, const acs_device_times *times)
{
    bundle *bundles = calloc((size_t)recording->op_count + 1, sizeof *bundles);
    uint32_t count = 0;
    if (!bundles)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the times of %u ops", recording->op_count);
    for (uint64_t i = 0; i < times->count; i++)
        add_time(recording, &times->list[i], bundles, &count);
    share_graphs(recording, bundles, count);
    free(bundles);
    return ACS_OK;
}

/* See executor_double.h. */
#include "executor_double.h"

#include <stdbool.h>
#include <string.h>

/* A launch that is being run. */
typedef struct running {
    executor_double *self;
    const acs_executor_launch *launch;
    acs_executor_op *ops;
    const uint32_t *firsts;
    const uint16_t *outs;
    bool ended[ACS_EXECUTOR_OPS], complete[ACS_EXECUTOR_OPS];
} running;

static void expect(running *r, bool condition, const char *rule)
{
    if (!condition && !r->self->wrong)
        r->self->wrong = rule;
}

static uint32_t blocks_of(const acs_executor_op *op)
{
    return op->grid[0] * op->grid[1] * op->grid[2];
}

static void check(running *r)
{
    const acs_executor_state none = {.slices = 0};
    uint32_t tickets = 0;
    expect(r, r->launch->entries > 0 && r->launch->entries <= ACS_EXECUTOR_OPS, "a table has too many entries, or none");
    expect(r, r->launch->bytes % 16 == 0, "the table has no whole words");
    expect(r, memcmp((const void *)(uintptr_t)r->launch->state, &none, sizeof none) == 0, "the state was not cleared");
    for (uint32_t i = 0; i < r->launch->entries; i++) {
        const acs_executor_op *op = &r->ops[i];
        expect(r, op->left == blocks_of(op) && op->left > 0, "an entry counts other blocks than it has");
        expect(r, r->firsts[i] == tickets && op->first_ticket == tickets, "tickets are not in the order of entries");
        expect(r, op->args_at % 16 == 0 && op->args_at + op->arg_bytes <= r->launch->bytes,
               "arguments are not in the table");
        for (uint32_t o = 0; o < op->out_count; o++)
            expect(r, r->outs[op->out_first + o] > i && r->outs[op->out_first + o] < r->launch->entries,
                   "an entry is followed by an earlier one");
        tickets += op->left;
    }
    expect(r, tickets == r->launch->tickets, "the launch has another number of tickets");
}

/* Other threads look at the word without the twin's lock. */
static void publish(const running *r)
{
    uint32_t prefix = 0;
    while (prefix < r->launch->ops && r->complete[prefix])
        prefix++;
    if (prefix)
        __atomic_store_n((uint64_t *)(uintptr_t)r->launch->word, r->launch->first_value + prefix - 1, __ATOMIC_RELEASE);
}

static void run_entry(running *r, uint32_t i)
{
    const acs_executor_op *op = &r->ops[i];
    const bool join = op->body == ACS_EXECUTOR_JOIN;
    r->ended[i] = true;
    r->self->ops += !join;
    r->self->joins += join;
    if (!join) {
        expect(r, op->position < r->launch->ops && !r->complete[op->position], "two ops have one position");
        r->complete[op->position] = true;
        r->self->run(op, (const unsigned char *)(uintptr_t)r->launch->table + op->args_at);
    }
    for (uint32_t o = 0; o < op->out_count; o++) {
        const uint32_t down = op->each ? op->left : 1;
        acs_executor_op *to = &r->ops[r->outs[op->out_first + o]];
        expect(r, to->pending >= down, "an entry is counted down too often");
        to->pending -= down;
    }
    publish(r);
}

/* An entry that may run, looked for from a random place on. */
static uint32_t next_entry(running *r)
{
    const uint32_t entries = r->launch->entries;
    r->self->seed = r->self->seed * 6364136223846793005u + 1442695040888963407u;
    const uint32_t from = (uint32_t)(r->self->seed >> 33) % entries;
    for (uint32_t k = 0; k < entries; k++) {
        const uint32_t i = (from + k) % entries;
        if (!r->ended[i] && r->ops[i].pending == 0)
            return i;
    }
    return entries;
}

/* As far as the grid reaches, so that blocks that are missing show. */
void executor_double_own(const acs_executor_op *op, const unsigned char *args)
{
    uint64_t a[4] = {0};
    memcpy(a, args, op->arg_bytes < sizeof a ? op->arg_bytes : sizeof a);
    const bool fill = op->body == ACS_EXECUTOR_FILL, rows = op->body == ACS_EXECUTOR_ROWS;
    const uint64_t bytes = fill ? a[1] : a[2], parts = (bytes + ACS_EXECUTOR_COPY_BYTES - 1) / ACS_EXECUTOR_COPY_BYTES;
    for (uint32_t i = 0; i < op->grid[0]; i++) {
        const uint64_t first = (rows ? i % parts : i) * ACS_EXECUTOR_COPY_BYTES, at = first + (rows ? i / parts * a[3] : 0);
        const uint64_t here = bytes - first < ACS_EXECUTOR_COPY_BYTES ? bytes - first : ACS_EXECUTOR_COPY_BYTES;
        if (fill)
            memset((void *)(uintptr_t)(a[0] + at), (unsigned char)a[2], here);
        else
            memmove((void *)(uintptr_t)(a[0] + at), (const void *)(uintptr_t)(a[1] + at), here);
    }
}

void executor_double_run(executor_double *self, const acs_executor_launch *launch)
{
    unsigned char *table = (unsigned char *)(uintptr_t)launch->table;
    running r = {.self = self, .launch = launch};
    memcpy(table, (const void *)(uintptr_t)launch->source, launch->bytes);
    r.ops = (acs_executor_op *)(void *)table;
    r.firsts = (const uint32_t *)(const void *)(table + launch->firsts_at);
    r.outs = (const uint16_t *)(const void *)(table + launch->outs_at);
    self->bundles++;
    check(&r);
    for (uint32_t n = 0; n < launch->entries && !self->wrong; n++) {
        const uint32_t i = next_entry(&r);
        expect(&r, i < launch->entries, "no entry may run, and not all have");
        if (i < launch->entries)
            run_entry(&r, i);
    }
    if (self->wrong) /* the host must not wait for ever */
        __atomic_store_n((uint64_t *)(uintptr_t)launch->word, launch->first_value + launch->ops - 1, __ATOMIC_RELEASE);
}

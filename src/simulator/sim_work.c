/*
 * Reports of the simulated machine, and progress of bundles. There is one work for each op that was issued and has not
 * ended. Called by the other files of the sim backend under its lock. Never issues anything.
 *
 * Progress inside a bundle is published as on a GPU: late, and coarsely. The end of a graph is reported only by the
 * mark behind it, since a graph may have more to do after its last op. An executor reports the end itself, perhaps
 * before the core has booked the bundle.
 */
#include "simulator/sim_internal.h"

#include <stdlib.h>

/* BLOCK: objects allocated at once; FINE_OPS: ops between reports of progress if time decides */
enum { BLOCK = 64, FINE_OPS = 16 };

/* Allocate memory that lives until close. */
static void *block_of(acs_sim_state *s, size_t bytes)
{
    if (!ACS_GROW(s->blocks, s->block_capacity, s->block_count + 1))
        return NULL;
    s->blocks[s->block_count] = calloc(BLOCK, bytes);
    return s->blocks[s->block_count] ? s->blocks[s->block_count++] : NULL;
}

void acs_sim_works_fini(acs_sim_state *s)
{
    for (uint32_t i = 0; i < s->block_count; i++)
        free(s->blocks[i]);
    free(s->blocks);
}

bool acs_sim_work_reserve(acs_sim_state *s, uint32_t count)
{
    while (s->free_work_count < count) {
        acs_sim_work *made = block_of(s, sizeof *made);
        if (!made)
            return false;
        for (uint32_t i = 0; i < BLOCK; i++) {
            made[i].next = s->free_works;
            s->free_works = &made[i];
        }
        s->free_work_count += BLOCK;
    }
    return true;
}

acs_sim_work *acs_sim_work_take(acs_sim_state *s, acs_record *op, acs_sim_bundle *bundle, uint32_t position)
{
    acs_sim_work *work = s->free_works;

    s->free_works = work->next;
    s->free_work_count--;
    *work = (acs_sim_work){.op = op, .bundle = bundle, .position = position};
    if (bundle)
        bundle->works++;
    return work;
}

acs_sim_bundle *acs_sim_bundle_take(acs_sim_state *s)
{
    acs_sim_bundle *bundle = s->free_bundles;

    if (!bundle) {
        acs_sim_bundle *made = block_of(s, sizeof *made);
        for (uint32_t i = 0; made && i < BLOCK; i++) {
            made[i].next = s->free_bundles;
            s->free_bundles = &made[i];
        }
        bundle = s->free_bundles;
    }
    if (bundle) {
        s->free_bundles = bundle->next;
        *bundle = (acs_sim_bundle){0};
    }
    return bundle;
}

void acs_sim_bundle_give(acs_sim_state *s, acs_sim_bundle *bundle)
{
    bundle->next = s->free_bundles;
    s->free_bundles = bundle;
}

/* -------------------------------------------------------------------------------------------------------- progress */

/* Note that all ops of the slot up to the value have ended. If too many notes are unseen, the last one is replaced. */
static void note_news(acs_sim_slot *slot, uint64_t value, uint64_t when)
{
    uint32_t at = slot->news_used < ACS_SIM_NEWS ? slot->news_used++ : ACS_SIM_NEWS - 1;

    slot->news[at].value = value;
    slot->news[at].at = when;
}

/* The number of first ops of the bundle that have ended, after one more op has. */
static uint32_t prefix_with(acs_sim_bundle *bundle, const acs_sim_work *work)
{
    uint32_t prefix = bundle->prefix;

    bundle->ended[work->position / 64] |= UINT64_C(1) << work->position % 64;
    while (prefix < bundle->ops && bundle->ended[prefix / 64] >> prefix % 64 & 1)
        prefix++;
    return prefix;
}

void acs_sim_work_ended(acs_sim_state *s, acs_sim_work *work, uint64_t when)
{
    acs_sim_bundle *bundle = work->bundle;

    if (bundle) {
        uint32_t before = bundle->prefix;
        bundle->prefix = prefix_with(bundle, work);
        bool told = s->by_seed || before / FINE_OPS != bundle->prefix / FINE_OPS;
        if (bundle->prefix > before && (bundle->prefix < bundle->ops ? told : bundle->tells_end))
            note_news(&s->slot[bundle->slot], bundle->first + bundle->prefix - 1, when);
        if (--bundle->works == 0)
            acs_sim_bundle_give(s, bundle);
    }
    work->next = s->free_works;
    s->free_works = work;
    s->free_work_count++;
}

uint64_t acs_sim_progress(acs_sim_state *s, acs_sim_slot *slot)
{
    uint32_t visible = s->by_seed ? 0 : s->gpu.device.host_visible, seen = 0, some = slot->news_used;
    uint64_t value = 0;

    if (!slot->news_used)
        return 0;
    if (s->by_seed && s->strategy != ACS_SIM_EAGER)
        some = acs_random_below(&s->methods.random, slot->news_used + 1);
    while (seen < some && slot->news[seen].at + visible <= s->now)
        value = slot->news[seen++].value;
    for (uint32_t i = seen; i < slot->news_used; i++)
        slot->news[i - seen] = slot->news[i];
    slot->news_used -= seen;
    if (slot->news_used && slot->news[0].at + visible > s->now)
        slot->known_at = slot->news[0].at + visible; /* the host should look again then */
    return value;
}

/* ------------------------------------------------------------------------------------------------------- bodies due */

/*
 * Called by the machine. One op in four runs its body at its start, so that an op that should have waited for it sees
 * too much, not too little.
 */
void acs_sim_on_told(void *owner, void *user, bool ended, uint64_t when)
{
    acs_sim_state *s = owner;
    acs_sim_work *work = user;
    acs_record *op = work->op;
    bool at_start = s->by_seed && op && (acs_hash64(op->seq + s->salt) & 3) == 0;

    if (ended)
        acs_sim_work_ended(s, work, when);
    if (!op)
        return;
    *(ended ? &op->ended : &op->began) = when + 1; /* as recorder.h has simulated time */
    if (acs_log_enabled(ACS_LOG_DEBUG))
        acs_log(ACS_LOG_DEBUG, "sim: %llu ns: op %llu %s%s", (unsigned long long)when, (unsigned long long)op->seq,
                ended ? "ended" : "started", ended != at_start ? ", its body runs" : "");
    s->told |= ended || at_start;
    if (ended != at_start)
        s->due[s->due_count++] = op;
}

/* The machine's acs_sim_asked. The cell is complete, since the bodies of all upstream ops have run. */
uint32_t acs_sim_on_asked(void *owner, void *user, uint32_t ctas)
{
    const acs_record *op = ((const acs_sim_work *)user)->op;
    const uint32_t *grid = op->cell->grid;
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];

    (void)owner;
    if (!op->cell->runs)
        return 0;
    return op->flags & ACS_RECORD_GRID_DECIDED && blocks < ctas ? (uint32_t)blocks : ctas;
}

/* Every issued op has room in `due`. */
bool acs_sim_due_reserve(acs_sim_state *s, uint32_t ops)
{
    return ACS_GROW(s->due, s->due_capacity, s->in_flight + ops);
}

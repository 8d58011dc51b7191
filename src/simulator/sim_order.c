/*
 * Marks, waits and values of items on the simulated machine. Called by sim_issue.c and sim_bundle.c under the backend's
 * lock. Breaches of the rules of marks and values in backend.h, which a GPU would punish at random, are returned as
 * text; the item then fails with ACS_ERR_INTERNAL. Never issues an op.
 */
#include "simulator/sim_internal.h"

acs_sim_mark *acs_sim_mark_at(const acs_sim_state *s, const acs_mark *mark)
{
    return &s->marks[(size_t)mark->slot * s->mark_capacity + mark->index];
}

static bool marks_exist(const acs_sim_state *s, const acs_mark *marks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (marks[i].slot >= s->slots || marks[i].index >= s->mark_capacity)
            return false;
    }
    return true;
}

/* Whether the item names slots and marks that exist. If not, it cannot be issued. */
bool acs_sim_item_exists(const acs_sim_state *s, const acs_batch *batch, const acs_item *item)
{
    return item->slot < (int32_t)s->slots && marks_exist(s, &batch->marks[item->first_mark], item->mark_count) &&
           marks_exist(s, &batch->waits[item->first_wait], item->wait_count) &&
           marks_exist(s, &item->after, item->mark_after);
}

static bool is_complete(const acs_sim_state *s, const acs_sim_mark *mark)
{
    return !mark->event || acs_sim_event_time(s->machine, mark->event - 1) != ACS_SIM_NEVER;
}

/* Check the rules of marks. @return NULL, or the core's mistake. */
static const char *mark_check(acs_sim_state *s, const acs_mark *mark)
{
    if (!is_complete(s, acs_sim_mark_at(s, mark)))
        return "a mark used again before it was complete";
    if (mark->value < s->slot[mark->slot].value)
        return "a mark with a value below one issued before it";
    return NULL;
}

/* Record a mark. Its value counts even if it breaks a rule, so that later marks are judged by themselves. */
const char *acs_sim_record_mark(acs_sim_state *s, const acs_mark *mark)
{
    const char *wrong = mark_check(s, mark);
    acs_sim_mark *recorded = acs_sim_mark_at(s, mark);

    if (!recorded->event)
        recorded->event = acs_sim_event(s->machine) + 1; /* ACS_SIM_NONE becomes 0 */
    s->now += s->gpu.host.record;
    if (recorded->event)
        acs_sim_record(s->machine, s->now, s->slot[mark->slot].stream, recorded->event - 1);
    recorded->value = mark->value;
    if (s->slot[mark->slot].value < mark->value)
        s->slot[mark->slot].value = mark->value;
    return wrong;
}

/*
 * Send a wait. A completed mark may have been used again since the wait was decided. As on a GPU, the wait is then for
 * the later use.
 */
const char *acs_sim_send_wait(acs_sim_state *s, const acs_mark *mark, uint32_t slot)
{
    const acs_sim_mark *recorded = acs_sim_mark_at(s, mark);

    if (!recorded->event || recorded->value < mark->value)
        return "a wait for a mark that was not recorded";
    s->now += s->gpu.host.wait;
    acs_sim_wait(s->machine, s->now, s->slot[slot].stream, recorded->event - 1);
    return NULL;
}

/* A mistake that came before, of a mark or wait that no item could tell, counts as well. */
const char *acs_sim_take_value(acs_sim_state *s, const acs_item *item)
{
    const char *wrong = s->wrong;
    s->wrong = NULL;
    if (item->slot >= 0 && item->value <= s->slot[item->slot].value)
        return wrong ? wrong : "a value that is not above the ones issued before it";
    if (item->slot >= 0)
        s->slot[item->slot].value = item->value;
    return wrong;
}

void acs_sim_lose(acs_sim_state *s, acs_item *item, int native, const char *text)
{
    s->lost = true;
    acs_item_result(item, ACS_ERR_DEVICE, native, text);
}

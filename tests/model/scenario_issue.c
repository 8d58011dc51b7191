/*
 * Scenarios of the issue queues (src/scheduler/issue_queue.c): each op is carried out once, what the giver wrote is there, a
 * wait finds its mark recorded, and nothing that depends on a refused op begins. The explorer runs their threads.
 */
#include "scenarios.h"

#include "scheduler/issue_queue.h"

enum { PAYLOAD = 1000, OPS = 3, SLOTS = 2 };

static acs_issue_queue *g_queue;
static acs_batch *g_batch;
static acs_record *g_records;  /* of op `row` */
static uint32_t *g_began;      /* by row: how often it was carried out */
static uint64_t *g_marked;     /* by slot: newest mark */
static uint32_t *g_refuse;     /* row + 1 of an op that is refused */
static uint32_t *g_given;      /* ops that were given */
static uint32_t *g_skipped;    /* set once the core has decided that the second op is to be skipped */

static bool lost(void *user)
{
    (void)user;
    return false;
}

static void record_mark(void *user, const acs_mark *mark)
{
    (void)user;
    g_marked[mark->slot] = mark->value;
}

static void send_wait(void *user, uint32_t slot, uint8_t share, const acs_mark *mark)
{
    (void)user, (void)slot, (void)share;
    model_require(g_marked[mark->slot] >= mark->value);
}

static void issue(void *user, acs_command *command)
{
    const uint32_t row = (uint32_t)(command->op - g_records);
    (void)user;
    model_require(row < OPS && command->op->arg_count == PAYLOAD + row);
    g_began[row]++;
    command->status = *g_refuse == row + 1 ? ACS_ERR_LAUNCH : ACS_OK;
}

static const acs_issue_ops g_ops = {.lost = lost, .mark = record_mark, .wait = send_wait, .op = issue};

static void setup_room(uint32_t commands)
{
    (void)acs_issue_queue_create(SLOTS, commands, &g_queue);
    g_batch = calloc(1, sizeof *g_batch);
    g_records = calloc(OPS, sizeof *g_records);
    g_began = calloc(OPS, sizeof *g_began);
    g_marked = calloc(SLOTS, sizeof *g_marked);
    g_refuse = calloc(1, sizeof *g_refuse);
    g_skipped = calloc(1, sizeof *g_skipped);
    g_given = calloc(1, sizeof *g_given);
}

static void setup(void)
{
    setup_room(4);
}

/* Of which one is for an op. */
static void setup_little_room(void)
{
    setup_room(2);
}

static void give(uint32_t row, uint16_t slot, uint64_t value, bool waits, bool gives)
{
    acs_item *item = &g_batch->items[row];
    const acs_mark mark = {.slot = slot, .value = value};
    g_records[row].arg_count = PAYLOAD + row;
    *item = (acs_item){.op = &g_records[row], .value = value, .slot = (int16_t)slot, .mark_after = true, .after = mark};
    ++*g_given;
    if (waits) { /* for the first op's mark */
        g_batch->waits[0] = (acs_mark){.slot = 0, .value = 1};
        item->wait_count = 1;
    }
    if (acs_issue_queue_send(g_queue, g_batch, item, gives, gives, &g_ops, NULL) == ACS_ISSUE_GIVEN)
        return;
    model_require(!gives);
    acs_command now = {.op = item->op};
    issue(NULL, &now);
    acs_issue_queue_send_mark(g_queue, &item->after, false, &g_ops, NULL);
}

static void give_one_slot(void)
{
    give(0, 0, 1, false, true);
    give(1, 0, 2, false, true);
}

/* The second one is carried out at once, and the third one gets the place of the first one. */
static void give_three(void)
{
    give(0, 0, 1, false, true);
    if (acs_issue_queue_idle(g_queue, 0))
        give(1, 0, 2, false, false);
    if (acs_issue_queue_idle(g_queue, 0))
        give(2, 0, 3, false, true);
}

static void give_both(void)
{
    give(0, 0, 1, false, true);
    give(1, 1, 1, true, true);
}

static void give_beside(void)
{
    give(0, 0, 1, false, true);
    give(1, 1, 1, false, true);
}

static void setup_given(void)
{
    setup();
    give_both();
}

static void setup_one_slot(void)
{
    setup();
    give_one_slot();
}

static void setup_refused_beside(void)
{
    setup();
    *g_refuse = 1;
    give_beside();
}

static void setup_refused(void)
{
    setup();
    *g_refuse = 1;
    give_both();
}

/* As a thread that begins at this slot. */
static void take(uint32_t first, uint32_t steps)
{
    acs_issue_taker taker = {.own = 1ull << first, .next = first};
    while (steps-- > 0)
        (void)acs_issue_queue_step(g_queue, &taker, &g_ops, NULL);
}

static void take_first(void)
{
    take(0, 1);
}

static void take_two(void)
{
    take(0, 2);
}

static void take_second(void)
{
    take(1, 1);
}

/* As late.c: where the queues stand, the op behind the refused one is skipped, if it has not begun. */
static void decide(void)
{
    if (!acs_issue_queue_stands(g_queue))
        return;
    acs_command *refused = acs_issue_queue_at(g_queue, 0, 0), *command;
    model_require(refused && refused->status == ACS_ERR_LAUNCH);
    refused->told = true;
    for (uint32_t i = 0; (command = acs_issue_queue_at(g_queue, 1, i)) != NULL; i++) {
        *g_skipped |= command->type == ACS_COMMAND_OP;
        command->skip = true;
    }
    acs_issue_queue_resume(g_queue);
}

static void take_and_decide(void)
{
    take(0, 1);
    decide();
}

static void finish(void)
{
    while (acs_issue_queue_busy(g_queue)) {
        take(0, 2);
        decide();
    }
    model_require(acs_issue_queue_load(g_queue) == 0);
}

/* Each op that was given was carried out, once, but for one that was skipped. */
static void check(void)
{
    finish();
    uint32_t began = 0;
    for (uint32_t row = 0; row < OPS; row++) {
        model_require(g_began[row] <= 1);
        began += g_began[row];
    }
    model_require(began + *g_skipped == *g_given);
}

static void check_dependent(void)
{
    check();
    model_require(g_began[1] == 0 && g_marked[1] == 1);
}

const model_scenario scenario_issue_give = {
    .name = "issue_give", .what = "one thread gives two ops of a slot, one takes", .setup = setup,
    .threads = {give_one_slot, take_two}, .check = check};
const model_scenario scenario_issue_takers = {
    .name = "issue_takers", .what = "two threads take ops of two slots, of which one waits for the other",
    .setup = setup_given, .threads = {take_first, take_second}, .check = check, .preemptions = 2, .most = 30000};
const model_scenario scenario_issue_refused = {
    .name = "issue_refused", .what = "two threads take, one op is refused, and a third thread decides",
    .setup = setup_refused, .threads = {take_first, take_second, decide}, .check = check_dependent, .preemptions = 1};
const model_scenario scenario_issue_room = {
    .name = "issue_room", .what = "a place is used again, by one who gives and one who takes", .setup = setup_little_room,
    .threads = {give_three, take_two}, .check = check};
const model_scenario scenario_issue_slot = {
    .name = "issue_slot", .what = "two threads take two ops of one slot", .setup = setup_one_slot,
    .threads = {take_first, take_first}, .check = check, .preemptions = 2, .most = 30000};
const model_scenario scenario_issue_beside = {
    .name = "issue_beside", .what = "one op is refused beside another; who took it decides",
    .setup = setup_refused_beside, .threads = {take_and_decide, take_second}, .check = check, .preemptions = 2,
    .most = 100000};

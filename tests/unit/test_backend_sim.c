/* The sim backend: replay by seed, orders that are allowed and no others, faults, progress, rules of marks. */
#include "backend_fixture.h"

#include "simulator/sim.h"

enum { SEEDS = 200 };

static fixture *open_sim(uint32_t slots, int64_t seed, int64_t faults)
{
    fixture *f = fixture_make(ACS_BACKEND_SIM, slots);
    f->options.seed = seed;
    f->options.faults = faults;
    strcpy(f->options.fault_kinds, "launch,copy,bounce");
    fixture_open(f);
    return f;
}

static void note_ran(const acs_grid *grid, void *const *args)
{
    (void)grid;
    *(int *)pointer_of(args) += 1;
}

/* --------------------------------------------------------------------------------------------------------- orders */

enum { DAG_OPS = 60, DAG_SLOTS = 4 };

/* Which op op `i` waits for beyond its slot's order: none, or an earlier one. The same for every seed. */
static int dag_upstream(int i)
{
    return i % 3 == 2 ? (i * 7) % i : -1;
}

/* Run the DAG and fill position[op]. */
static void dag_run(int64_t seed, int position[DAG_OPS])
{
    fixture *f = open_sim(DAG_SLOTS, seed, 0);
    trace *t = calloc(1, sizeof *t);
    acs_mark marks[DAG_OPS];

    for (int i = 0; i < DAG_OPS; i++) {
        marks[i] = fixture_add(f, i * 5 / 3 % DAG_SLOTS, fixture_kernel(f, append, t, i))->after;
        if (dag_upstream(i) >= 0)
            fixture_wait(f, marks[dag_upstream(i)]);
        if (i % 10 == 9) {
            fixture_submit(f);
            fixture_poll(f, i % DAG_SLOTS);
        }
    }
    fixture_drain(f);
    assert_int_equal(t->used, DAG_OPS);
    for (int i = 0; i < DAG_OPS; i++)
        position[t->number[i]] = i;
    free(t);
    fixture_close(f);
}

static void any_seed_keeps_slot_order_and_waits(void **state)
{
    (void)state;
    for (int64_t seed = 0; seed < SEEDS; seed++) {
        int position[DAG_OPS], last[DAG_SLOTS] = {-1, -1, -1, -1};
        dag_run(seed, position);
        for (int i = 0; i < DAG_OPS; i++) {
            int *before = &last[i * 5 / 3 % DAG_SLOTS];
            assert_true(position[i] > *before);
            *before = position[i];
            if (dag_upstream(i) >= 0)
                assert_true(position[i] > position[dag_upstream(i)]);
        }
    }
}

static void same_seed_replays_the_same_order(void **state)
{
    (void)state;
    for (int64_t seed = 0; seed < 20; seed++) {
        int first[DAG_OPS], second[DAG_OPS];
        dag_run(seed, first);
        dag_run(seed, second);
        assert_memory_equal(first, second, sizeof first);
    }
}

static void different_seeds_give_different_orders(void **state)
{
    static int orders[SEEDS][DAG_OPS];
    int distinct = 0;

    (void)state;
    for (int seed = 0; seed < SEEDS; seed++) {
        int i = 0;
        dag_run(seed, orders[seed]);
        while (i < seed && memcmp(orders[i], orders[seed], sizeof orders[i]) != 0)
            i++;
        distinct += i == seed;
    }
    assert_true(distinct > SEEDS * 3 / 4);
}

/* What a missing wait needs to be found: each of two unordered ops, issued together, runs first under many seeds. */
static void ops_without_order_run_either_way(void **state)
{
    int newer_first = 0;

    (void)state;
    for (int64_t seed = 0; seed < SEEDS; seed++) {
        fixture *f = open_sim(2, seed, 0);
        trace *t = calloc(1, sizeof *t);
        for (int i = 0; i < 2; i++)
            fixture_add(f, i, fixture_kernel(f, append, t, i));
        fixture_submit(f);
        fixture_drain(f);
        newer_first += t->number[0] == 1;
        free(t);
        fixture_close(f);
    }
    assert_in_range(newer_first, SEEDS / 4, SEEDS * 3 / 4);
}

/* One slot may fall behind by as much as all the others have queued. */
static void some_seed_runs_a_first_op_last(void **state)
{
    int last = 0;

    (void)state;
    for (int64_t seed = 0; seed < SEEDS; seed++) {
        fixture *f = open_sim(3, seed, 0);
        trace *t = calloc(1, sizeof *t);
        for (int i = 0; i < 31; i++)
            fixture_add(f, i ? 1 + i % 2 : 0, fixture_kernel(f, append, t, i));
        fixture_submit(f);
        fixture_drain(f);
        last += t->number[30] == 0;
        free(t);
        fixture_close(f);
    }
    assert_true(last > SEEDS / 10);
}

/* ------------------------------------------------------------------------------------------- progress, visibility */

static void any_seed_runs_and_shows_an_op_within_few_polls(void **state)
{
    int hidden = 0;

    (void)state;
    for (int64_t seed = 0; seed < SEEDS; seed++) {
        fixture *f = open_sim(4, seed, 0);
        int ran = 0, polls_to_run = 0, polls_to_show = 0;
        fixture_add(f, (int)(seed % 4), fixture_kernel(f, note_ran, &ran, 0));
        fixture_submit(f);
        assert_int_equal(ran, 0); /* issuing runs nothing */
        for (bool shown = false; !shown; polls_to_show++) {
            shown = fixture_poll(f, (int)(seed % 4));
            polls_to_run += !ran;
            assert_true(ran || !shown);
            hidden += ran && !shown;
        }
        assert_true(polls_to_run <= 3);
        assert_true(polls_to_show <= 8);
        fixture_close(f);
    }
    assert_true(hidden > SEEDS / 10); /* complete, and not seen to be */
}

static void polls_of_one_slot_let_all_slots_advance(void **state)
{
    (void)state;
    for (int64_t seed = 0; seed < SEEDS; seed++) {
        fixture *f = open_sim(4, seed, 0);
        int ran = 0;
        for (int i = 0; i < 40; i++)
            fixture_add(f, i % 4, fixture_kernel(f, note_ran, &ran, 0));
        fixture_submit(f);
        for (int i = 0; i < 40 * 4 && ran < 40; i++) {
            uint64_t completed;
            f->backend->ops->poll(f->backend, 2, f->slots[2].marks, f->slots[2].used, &completed);
        }
        assert_int_equal(ran, 40);
        fixture_drain(f);
        fixture_close(f);
    }
}

/* --------------------------------------------------------------------------------------------------------- faults */

typedef struct fault_count {
    int failed, bounced, issued;
} fault_count;

/* Issue until accepted or failed; bounced ops get a new value, as the core would give them. */
static void issue_one(fixture *f, acs_record *op, fault_count *count)
{
    for (int attempt = 0;; attempt++) {
        acs_item *item = fixture_add(f, 0, op);
        fixture_submit(f);
        if (item->status != ACS_NOT_READY) {
            count->failed += item->status == ACS_ERR_LAUNCH;
            count->issued += item->status == ACS_OK;
            if (item->status == ACS_ERR_LAUNCH) {
                assert_in_range(item->native, 700, 719);
                assert_string_equal(item->text, "injected");
            }
            return;
        }
        assert_int_equal(attempt, 0); /* bounces once only */
        count->bounced++;
    }
}

static void faults_come_at_their_rate_and_failed_ops_do_not_run(void **state)
{
    fixture *f = open_sim(1, 12345, 100);
    fault_count count = {0, 0, 0};
    int ran = 0;

    (void)state;
    for (int i = 0; i < 1500; i++)
        issue_one(f, fixture_kernel(f, note_ran, &ran, 0), &count);
    fixture_drain(f);

    assert_in_range(count.failed, 100, 215); /* 10 % of all issues, and as many bounces */
    assert_in_range(count.bounced, 85, 190);
    assert_int_equal(count.issued + count.failed, 1500);
    assert_int_equal(ran, count.issued);
    fixture_close(f);
}

static void no_faults_asked_for_gives_none(void **state)
{
    fixture *f = open_sim(1, 12345, 0);
    fault_count count = {0, 0, 0};
    int ran = 0;

    (void)state;
    for (int i = 0; i < 500; i++)
        issue_one(f, fixture_kernel(f, note_ran, &ran, 0), &count);
    fixture_drain(f);
    assert_int_equal(ran, 500);
    assert_int_equal(count.failed + count.bounced, 0);
    fixture_close(f);
}

static void all_faults_fail_all_but_stream_waits_and_marks_complete(void **state)
{
    fixture *f = open_sim(2, 7, 1000);
    acs_item *kernel, *copy, *fill, *wait, *behind;
    int ran = 0;

    (void)state;
    kernel = fixture_add(f, 0, fixture_kernel(f, note_ran, &ran, 0));
    copy = fixture_add(f, 0, fixture_record(f, ACS_KIND_MEMCPY));
    fill = fixture_add(f, 1, fixture_record(f, ACS_KIND_MEMSET));
    wait = fixture_add(f, 1, fixture_record(f, ACS_KIND_STREAM_WAIT));
    fixture_wait(f, copy->after);
    behind = fixture_add(f, 0, fixture_kernel(f, note_ran, &ran, 0));
    fixture_edge(f, kernel);
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(kernel->status, ACS_ERR_LAUNCH);
    assert_int_equal(copy->status, ACS_ERR_LAUNCH);
    assert_int_equal(fill->status, ACS_ERR_LAUNCH);
    assert_int_equal(wait->status, ACS_OK);
    assert_int_equal(behind->status, ACS_ERR_SKIPPED);
    assert_int_equal(ran, 0);
    fixture_close(f);
}

static void item_behind_one_that_was_not_issued_is_skipped(void **state)
{
    int seen = 0;

    (void)state;
    for (int64_t seed = 0; seed < SEEDS; seed++) {
        fixture *f = open_sim(2, seed, 300);
        int ran = 0;
        acs_item *first = fixture_add(f, 0, fixture_kernel(f, note_ran, &ran, 0));
        acs_item *second = fixture_add(f, 1, fixture_record(f, ACS_KIND_STREAM_WAIT));
        fixture_edge(f, first);
        fixture_wait(f, first->after);
        fixture_submit(f);
        seen += first->status == ACS_NOT_READY;
        assert_int_equal(second->status, first->status == ACS_OK ? ACS_OK : ACS_ERR_SKIPPED);
        fixture_drain(f);
        fixture_close(f);
    }
    assert_true(seen > SEEDS / 10);
}

/* ---------------------------------------------------------------------------------------- rules of marks and values */

static void mark_of_an_item_without_an_op_completes_under_faults(void **state)
{
    fixture *f = open_sim(2, 5, 500);
    int ran = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        acs_item *item;
        fixture_add_unmarked(f, i % 2, fixture_kernel(f, note_ran, &ran, 0));
        item = fixture_add_mark(f, i % 2);
        fixture_submit(f);
        assert_int_equal(item->status, ACS_OK);
    }
    fixture_drain(f); /* then: it returns */
    assert_in_range(ran, 1, 99);
    fixture_close(f);
}

typedef enum breach { BREACH_NONE, BREACH_WAIT, BREACH_REUSE, BREACH_VALUE, BREACH_INDEX, BREACH_SLOT } breach;

/* The status of the second of two items, which breaks one rule. */
static acs_status status_after(breach kind)
{
    fixture *f = open_sim(2, 1, 0);
    int ran = 0;
    acs_mark mark = fixture_add(f, 0, fixture_kernel(f, note_ran, &ran, 0))->after;
    acs_item *item = fixture_add(f, kind == BREACH_REUSE || kind == BREACH_VALUE ? 0 : 1,
                                 fixture_kernel(f, note_ran, &ran, 0));
    acs_status status;

    if (kind == BREACH_WAIT)
        mark.index = 5;
    if (kind == BREACH_INDEX)
        mark.index = FIXTURE_MARKS;
    if (kind == BREACH_REUSE)
        item->after.index = mark.index;
    if (kind == BREACH_VALUE)
        item->value = 1;
    if (kind == BREACH_SLOT)
        item->slot = 2;
    if (kind != BREACH_REUSE && kind != BREACH_VALUE)
        fixture_wait(f, mark);
    fixture_submit(f);
    status = item->status;
    fixture_close(f);
    return status;
}

static void breach_of_a_rule_fails_the_item(void **state)
{
    (void)state;
    assert_int_equal(status_after(BREACH_NONE), ACS_OK);
    for (breach kind = BREACH_WAIT; kind <= BREACH_SLOT; kind++)
        assert_int_equal(status_after(kind), ACS_ERR_INTERNAL);
}

static void mark_used_again_after_completion_is_accepted(void **state)
{
    fixture *f = open_sim(1, 3, 0);
    int ran = 0;

    (void)state;
    for (int i = 0; i < 10; i++) {
        acs_item *item = fixture_add(f, 0, fixture_kernel(f, note_ran, &ran, 0));
        item->after.index = f->slots[0].marks[f->slots[0].used - 1].index = 0;
        fixture_submit(f);
        assert_int_equal(item->status, ACS_OK);
        fixture_drain(f);
    }
    assert_int_equal(ran, 10);
    fixture_close(f);
}

/* ---------------------------------------------------------------------------------------------------------- options */

/* Opens with these kinds of faults, or is refused with an error that names what is none. */
static void try_kinds(const char *kinds, const char *wrong)
{
    fixture *f = fixture_make(ACS_BACKEND_SIM, 1);

    strcpy(f->options.fault_kinds, kinds);
    assert_int_equal(acs_backend_open(&f->config, &f->backend), wrong ? ACS_ERR_OPTION : ACS_OK);
    if (wrong)
        assert_non_null(strstr(acs_error_thread()->text, wrong));
    fixture_close(f);
}

static void kinds_of_faults_are_those_of_the_table(void **state)
{
    static const char *const names[] = {
#define NAME(name, text) text,
        ACS_FAULT_TABLE(NAME)
#undef NAME
    };

    (void)state;
    for (int i = 0; i < ACS_FAULT_KINDS; i++)
        try_kinds(names[i], NULL);
    try_kinds("", NULL);
    try_kinds("launch,lost,slow", NULL);
    try_kinds("launch,loss", "'loss'");
    try_kinds("launch,,lost", "''");
    try_kinds("launc", "'launc'");
}

/* The option's names are in the order of the models, which it indexes. */
static void names_of_gpus_are_those_of_the_models(void **state)
{
    static const char *const names =
#define ACS_OPT_NUMBER(...)
#define ACS_OPT_TEXT(...)
#define ACS_OPT_CHOICE(field, env, value, list, help) #field "=" list "\n"
#include "acs_options.def"
#undef ACS_OPT_NUMBER
#undef ACS_OPT_TEXT
#undef ACS_OPT_CHOICE
        ;
    char list[256] = "\nsim_gpu=";

    (void)state;
    for (uint32_t i = 0; acs_sim_gpu_at(i); i++) {
        strcat(list, i ? "|" : "");
        strcat(list, acs_sim_gpu_at(i)->name);
    }
    strcat(list, "\n");
    assert_non_null(strstr(names, list));
}

/* When the host knows that a kernel on this model has ended, by time. */
static uint64_t known_after(int32_t gpu, int64_t kernel_us)
{
    fixture *f = fixture_make(ACS_BACKEND_SIM, 1);
    int ran = 0;
    uint64_t now;

    f->options.sim_order = ACS_SIM_ORDER_TIME;
    f->options.sim_gpu = gpu;
    f->options.sim_kernel_us = kernel_us;
    fixture_open(f);
    fixture_add(f, 0, fixture_kernel(f, note_ran, &ran, 0));
    fixture_submit(f);
    fixture_drain(f);
    assert_int_equal(ran, 1);
    now = acs_sim_backend_now(f->backend);
    fixture_close(f);
    return now;
}

/* The call, its way to the device, the kernel, and the way back; then polls, each of which takes time. */
static void time_is_that_of_the_model(void **state)
{
    (void)state;
    for (uint32_t i = 0; acs_sim_gpu_at(i); i++) {
        const acs_sim_gpu *gpu = acs_sim_gpu_at(i);
        uint64_t at = gpu->host.launch + gpu->device.launch_latency + gpu->device.kernel_fixed + gpu->device.host_visible;
        uint64_t late = gpu->host.record + 2 * gpu->host.query;
        assert_in_range(known_after((int32_t)i, 0), at, at + late);
        assert_in_range(known_after((int32_t)i, 70), at + 70000, at + 70000 + late);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_seed_keeps_slot_order_and_waits),
        cmocka_unit_test(same_seed_replays_the_same_order),
        cmocka_unit_test(different_seeds_give_different_orders),
        cmocka_unit_test(ops_without_order_run_either_way),
        cmocka_unit_test(some_seed_runs_a_first_op_last),
        cmocka_unit_test(any_seed_runs_and_shows_an_op_within_few_polls),
        cmocka_unit_test(polls_of_one_slot_let_all_slots_advance),
        cmocka_unit_test(faults_come_at_their_rate_and_failed_ops_do_not_run),
        cmocka_unit_test(no_faults_asked_for_gives_none),
        cmocka_unit_test(all_faults_fail_all_but_stream_waits_and_marks_complete),
        cmocka_unit_test(item_behind_one_that_was_not_issued_is_skipped),
        cmocka_unit_test(mark_of_an_item_without_an_op_completes_under_faults),
        cmocka_unit_test(breach_of_a_rule_fails_the_item),
        cmocka_unit_test(mark_used_again_after_completion_is_accepted),
        cmocka_unit_test(kinds_of_faults_are_those_of_the_table),
        cmocka_unit_test(names_of_gpus_are_those_of_the_models),
        cmocka_unit_test(time_is_that_of_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

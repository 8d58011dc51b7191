/*
 * Bundles on the sim backend, made by hand: by every issue method and under many seeds only the edges order their ops,
 * progress is never told too early, refusals leave nothing behind, and breaches of the rules of bundles are found.
 */
#include "backend_fixture.h"

#include "simulator/sim.h"

enum { SEEDS = 60, OPS = 48, BUNDLES = 4 };

/* One bundle of the test: its ops are numbered from `from` on in the trace. */
typedef struct made {
    uint32_t items, ops;
    int number[ACS_BATCH_ITEMS];                    /* of an item; -1: a join */
    bool behind[ACS_BATCH_ITEMS][ACS_BATCH_ITEMS];  /* item of item, by any path */
} made;

static fixture *open_sim(int64_t seed, int64_t faults, const char *kinds)
{
    fixture *f = fixture_make(ACS_BACKEND_SIM, 2);
    f->options.seed = seed;
    f->options.faults = faults;
    f->options.graph_nodes = 600;
    strcpy(f->options.fault_kinds, kinds);
    fixture_open(f);
    return f;
}

/* A kernel that rides, in one of a few types; which those are the seed decides, so some are tried. */
static acs_record *riding(fixture *f, acs_host_body body, void *pointer, int number)
{
    for (uint32_t x = 1 + (uint32_t)number % 3;; x++) {
        acs_record *op = fixture_kernel(f, body, pointer, number);
        op->u.launch.block.x = x;
        assert_int_equal(f->backend->ops->check(f->backend, op), ACS_OK);
        if (op->type)
            return op;
        f->records_used--;
    }
}

/* A join, or an op, without marks. */
static acs_item *add(fixture *f, int slot, acs_record *op)
{
    acs_item *item = &f->batch.items[f->batch.items_used++];

    memset(item, 0, sizeof *item);
    item->op = op;
    item->slot = (int16_t)(op ? slot : -1);
    item->value = op ? ++f->slots[slot].value : 0;
    item->first_wait = (uint16_t)f->batch.waits_used;
    item->first_edge = (uint16_t)f->batch.edges_used;
    item->first_mark = (uint16_t)f->batch.marks_used;
    return item;
}

static void mark_last(fixture *f, acs_item *last)
{
    fixture_slot *s = &f->slots[last->slot];

    last->mark_after = true;
    last->after = (acs_mark){(uint16_t)last->slot, (uint16_t)s->used, 0, last->value};
    s->marks[s->used++] = last->after;
}

/* A random bundle in the batch; its ops append `first` and on to the trace. */
static void make(fixture *f, acs_random *random, trace *t, int slot, int first, made *m)
{
    acs_item *last = NULL;

    memset(m, 0, sizeof *m);
    f->batch.bundle = true;
    while (m->ops < OPS) {
        uint32_t i = m->items++, edges = i ? acs_random_below(random, 4) : 0;
        bool join = edges > 1 && m->ops < OPS - 1 && acs_random_below(random, 6) == 0;
        m->number[i] = join ? -1 : first + (int)m->ops++;
        last = add(f, slot, join ? NULL : riding(f, append, t, m->number[i]));
        for (uint32_t e = 0; e < edges; e++) {
            uint32_t to = i - 1 - acs_random_below(random, i < 12 ? i : 12);
            f->batch.edges[f->batch.edges_used++] = (uint16_t)to;
            f->batch.items[i].edge_count++;
            m->behind[i][to] = true;
            for (uint32_t k = 0; k < to; k++)
                m->behind[i][k] |= m->behind[to][k];
        }
    }
    mark_last(f, last);
}

static void submit(fixture *f, acs_issue_method method)
{
    f->batch.method = (uint8_t)method;
    fixture_submit(f);
    f->batch.bundle = false;
}

/* ----------------------------------------------------------------------------------------------------------- orders */

static void assert_ordered(const made *m, const int *position)
{
    for (uint32_t i = 0; i < m->items; i++)
        for (uint32_t k = 0; k < i; k++)
            if (m->behind[i][k] && m->number[i] >= 0 && m->number[k] >= 0)
                assert_true(position[m->number[i]] > position[m->number[k]]);
}

/* Poll until all is seen; what is told to be complete has run. */
static void drain_and_look(fixture *f, const trace *t, int slot, uint32_t *inside)
{
    fixture_slot *s = &f->slots[slot];

    while (s->first < s->used) {
        uint64_t completed = 0, ran = 0;
        assert_int_equal(f->backend->ops->poll(f->backend, slot, &s->marks[s->first], s->used - s->first, &completed),
                         ACS_OK);
        for (uint32_t i = 0; i < t->used; i++)
            ran += (uint64_t)t->number[i] + 1 <= completed; /* op n has value n + 1 */
        assert_int_equal(ran, completed < s->value ? completed : s->value);
        *inside += completed && s->marks[s->first].value > completed;
        while (s->first < s->used && s->marks[s->first].value <= completed)
            s->first++;
    }
}

/* Several bundles in one slot, all of the same few shapes. False: some were refused. */
static bool run_bundles(int64_t seed, acs_issue_method method, int *position, uint32_t *inside)
{
    fixture *f = open_sim(seed, 0, "");
    static made m[BUNDLES];
    trace *t = calloc(1, sizeof *t);
    bool all = true;

    for (int b = 0; b < BUNDLES && all; b++) {
        acs_random random = {(uint64_t)(b % 2)};
        make(f, &random, t, 0, b * OPS, &m[b]);
        submit(f, method);
        all = f->batch.items[0].status == ACS_OK;
        assert_true(!all || f->batch.method == method || method == ACS_METHOD_AUTO);
        if (all && b % 2)
            drain_and_look(f, t, 0, inside);
    }
    fixture_drain(f);
    assert_true(!all || t->used == BUNDLES * OPS);
    for (uint32_t i = 0; i < t->used; i++)
        position[t->number[i]] = (int)i;
    for (int b = 0; b < BUNDLES && all; b++) {
        assert_ordered(&m[b], position);
        for (int i = b * OPS; i < (b + 1) * OPS && b; i++)
            assert_true(position[i] >= b * OPS); /* a slot runs in order */
    }
    free(t);
    fixture_close(f);
    return all;
}

static void only_edges_order_the_ops_of_a_bundle(void **state)
{
    static int position[SEEDS][BUNDLES * OPS];

    (void)state;
    for (int method = ACS_METHOD_AUTO; method < ACS_METHOD_COUNT; method++) {
        uint32_t distinct = 0, inside = 0, taken = 0;
        for (int64_t seed = 0; seed < SEEDS && method != ACS_METHOD_LAUNCH; seed++) {
            if (!run_bundles(seed, (acs_issue_method)method, position[taken], &inside))
                continue;
            distinct += taken == 0 || memcmp(position[taken - 1], position[taken], sizeof position[0]) != 0;
            taken++;
        }
        if (method == ACS_METHOD_LAUNCH)
            continue;
        assert_true(taken > SEEDS / 2);
        assert_true(distinct > taken * 3 / 4);
        assert_true(inside > SEEDS / 10); /* progress inside a bundle is seen */
    }
}

static void same_seed_replays_the_same_order_in_bundles(void **state)
{
    static int first[BUNDLES * OPS], second[BUNDLES * OPS];
    uint32_t inside = 0;

    (void)state;
    for (int64_t seed = 0; seed < 10; seed++) {
        bool taken = run_bundles(seed, ACS_METHOD_AUTO, first, &inside);
        assert_int_equal(run_bundles(seed, ACS_METHOD_AUTO, second, &inside), taken);
        assert_memory_equal(first, second, sizeof first);
    }
}

/* --------------------------------------------------------------------------------------------------------- refusals */

static void refused_bundle_runs_nothing_and_its_marks_complete(void **state)
{
    static made m;
    acs_random random = {5};

    (void)state;
    for (int method = ACS_METHOD_REPLAY; method < ACS_METHOD_COUNT; method++) {
        fixture *f = open_sim(1, 1000, "vehicle");
        trace *t = calloc(1, sizeof *t);
        make(f, &random, t, 0, 0, &m);
        f->backend->ops->submit(f->backend, (f->batch.method = (uint8_t)method, &f->batch));
        for (uint32_t i = 0; i < m.items; i++)
            assert_int_equal(f->batch.items[i].status, f->batch.items[i].edge_count ? ACS_ERR_SKIPPED : ACS_NOT_READY);
        fixture_drain(f);
        assert_int_equal(t->used, 0);
        assert_int_equal(acs_sim_backend_faults(f->backend)[ACS_FAULT_METHOD], 1);
        free(t);
        fixture_close(f);
    }
}

/* A kernel that would be refused refuses its bundle, and is when it goes alone; the others are not. */
static void bundle_is_refused_for_an_op_which_then_fails_alone(void **state)
{
    static made m;
    acs_random random = {5};
    fixture *f = open_sim(3, 40, "launch"); /* one op in 25 */
    trace *t = calloc(1, sizeof *t);
    acs_record *ops[OPS];
    uint32_t failed = 0;

    (void)state;
    make(f, &random, t, 0, 0, &m);
    for (uint32_t i = 0, n = 0; i < m.items; i++)
        if (f->batch.items[i].op)
            ops[n++] = f->batch.items[i].op;
    submit(f, ACS_METHOD_REPLAY);
    assert_int_equal(f->batch.items[0].status, ACS_NOT_READY);
    uint64_t drawn = acs_sim_backend_faults(f->backend)[ACS_FAULT_LAUNCH];
    for (uint32_t i = 0; i < OPS; i++) {
        acs_item *item = fixture_add(f, 0, ops[i]);
        fixture_submit(f);
        failed += item->status == ACS_ERR_LAUNCH;
    }
    fixture_drain(f);
    assert_true(drawn > 0);
    assert_int_equal(failed, acs_sim_backend_faults(f->backend)[ACS_FAULT_LAUNCH]); /* each fault fails one op, once */
    assert_int_equal(t->used, OPS - failed);
    free(t);
    fixture_close(f);
}

/* Cached graphs are thrown out, instantiations refused: what is issued still runs in order. */
static void methods_that_fail_now_and_then_keep_the_order(void **state)
{
    static int position[BUNDLES * OPS];
    static made m;
    uint32_t issued = 0, refused = 0;

    (void)state;
    for (int64_t seed = 0; seed < SEEDS; seed++) {
        fixture *f = open_sim(seed, 300, "vehicle");
        trace *t = calloc(1, sizeof *t);
        acs_random random = {(uint64_t)seed};
        make(f, &random, t, 0, 0, &m);
        submit(f, ACS_METHOD_AUTO);
        fixture_drain(f);
        assert_int_equal(t->used, f->batch.items[0].status == ACS_OK ? OPS : 0);
        for (uint32_t i = 0; i < t->used; i++)
            position[t->number[i]] = (int)i;
        if (t->used)
            assert_ordered(&m, position);
        issued += t->used > 0;
        refused += t->used == 0;
        free(t);
        fixture_close(f);
    }
    assert_true(issued > SEEDS / 10 && refused > SEEDS / 10);
}

static void lost_device_is_told_of_all_items(void **state)
{
    static made m;
    acs_random random = {5};
    fixture *f = open_sim(1, 1000, "event");
    trace *t = calloc(1, sizeof *t);

    (void)state;
    for (int64_t seed = 1; f->batch.items[0].status != ACS_ERR_DEVICE; seed++) { /* one in ten */
        fixture_close(f);
        f = open_sim(seed, 1000, "event");
        make(f, &random, t, 0, 0, &m);
        f->backend->ops->submit(f->backend, &f->batch);
    }
    for (uint32_t i = 0; i < m.items; i++)
        assert_int_equal(f->batch.items[i].status, ACS_ERR_DEVICE);
    free(t);
    fixture_close(f);
}

/* --------------------------------------------------------------------------------------------------------- breaches */

typedef void (*breach)(fixture *f);

static void mark_inside(fixture *f)
{
    f->batch.items[1].mark_after = true;
    f->batch.items[1].after = f->batch.items[f->batch.items_used - 1].after;
}

static void wait_inside(fixture *f)
{
    f->batch.items[2].wait_count = 1;
}

static void value_left_out(fixture *f)
{
    f->batch.items[f->batch.items_used - 1].value++;
}

static void edge_forwards(fixture *f)
{
    f->batch.items[1].first_edge = (uint16_t)f->batch.edges_used;
    f->batch.items[1].edge_count = 1;
    f->batch.edges[f->batch.edges_used++] = 1;
}

static void op_without_type(fixture *f)
{
    f->batch.items[1].op->type = 0;
}

static void another_slot(fixture *f)
{
    f->batch.items[1].slot = 1;
}

static void breaches_of_the_rules_of_bundles_are_found(void **state)
{
    static const breach breaches[] = {mark_inside,   wait_inside,     value_left_out,
                                      edge_forwards, op_without_type, another_slot};

    (void)state;
    for (size_t b = 0; b < sizeof breaches / sizeof *breaches; b++) {
        fixture *f = open_sim(3, 0, "");
        trace *t = calloc(1, sizeof *t);
        acs_item *last = NULL;
        f->batch.bundle = true;
        for (int i = 0; i < 4; i++)
            last = add(f, 0, riding(f, append, t, i));
        mark_last(f, last);
        breaches[b](f);
        f->backend->ops->submit(f->backend, &f->batch);
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(f->batch.items[i].status, ACS_ERR_INTERNAL);
        assert_non_null(f->batch.items[0].text);
        free(t);
        fixture_close(f);
    }
}

/* ---------------------------------------------------------------------------------------------------- cached graphs */

/* Room for one graph only, and two shapes in turn: each is made anew, and runs as it should. */
static void replay_works_where_each_graph_is_thrown_out_for_the_next(void **state)
{
    enum { ROUNDS = 6 };
    static int position[ROUNDS * OPS];
    static made m[ROUNDS];
    bool ran[ROUNDS];
    uint32_t issued = 0;

    (void)state;
    for (int64_t seed = 0; seed < 20; seed++) {
        fixture *f = fixture_make(ACS_BACKEND_SIM, 1);
        trace *t = calloc(1, sizeof *t);
        f->options.seed = seed;
        f->options.graph_nodes = 80;
        fixture_open(f);
        for (int b = 0; b < ROUNDS; b++) {
            acs_random random = {(uint64_t)(b % 2)};
            uint32_t before = t->used;
            make(f, &random, t, 0, b * OPS, &m[b]);
            submit(f, ACS_METHOD_REPLAY);
            fixture_drain(f);
            assert_int_equal(t->used - before, f->batch.items[0].status == ACS_OK ? OPS : 0);
            for (uint32_t i = before; i < t->used; i++)
                position[t->number[i]] = (int)i;
            if (t->used > before)
                assert_ordered(&m[b], position);
            ran[b] = t->used > before;
            assert_true(ran[b] || b < 2 || ran[b - 2]); /* some seeds keep a shape at its second sight only */
        }
        issued += t->used / OPS;
        free(t);
        fixture_close(f);
    }
    assert_true(issued > 20 * ROUNDS * 2 / 3);
}

/* By time: the second of three equal bundles makes a cached graph, the third is the first that one launch costs. */
static void replay_costs_an_instantiation_once(void **state)
{
    static made m;
    fixture *f = fixture_make(ACS_BACKEND_SIM, 1);
    trace *t = calloc(1, sizeof *t);
    const acs_sim_host_costs host = acs_sim_gpu_at(0)->host;
    uint64_t took[3];
    acs_status status[3];

    (void)state;
    f->options.sim_order = ACS_SIM_ORDER_TIME;
    f->options.sim_kernel_us = 5;
    f->options.graph_nodes = 1000;
    fixture_open(f);
    for (int i = 0; i < 3; i++) {
        acs_random random = {5};
        make(f, &random, t, 0, i * OPS, &m);
        took[i] = acs_sim_backend_now(f->backend);
        submit(f, ACS_METHOD_REPLAY);
        took[i] = acs_sim_backend_now(f->backend) - took[i];
        status[i] = f->batch.items[0].status;
        while (!fixture_poll(f, 0))
            continue;
    }
    assert_int_equal(status[0], ACS_NOT_READY); /* never on first sight */
    assert_int_equal(status[1], ACS_OK);
    assert_int_equal(status[2], ACS_OK);
    assert_true(took[1] > 2000 * m.items);
    assert_in_range(took[2], host.headed_launch, host.headed_launch + 200 * m.items);
    free(t);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_edges_order_the_ops_of_a_bundle),
        cmocka_unit_test(same_seed_replays_the_same_order_in_bundles),
        cmocka_unit_test(refused_bundle_runs_nothing_and_its_marks_complete),
        cmocka_unit_test(bundle_is_refused_for_an_op_which_then_fails_alone),
        cmocka_unit_test(methods_that_fail_now_and_then_keep_the_order),
        cmocka_unit_test(lost_device_is_told_of_all_items),
        cmocka_unit_test(breaches_of_the_rules_of_bundles_are_found),
        cmocka_unit_test(replay_works_where_each_graph_is_thrown_out_for_the_next),
        cmocka_unit_test(replay_costs_an_instantiation_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

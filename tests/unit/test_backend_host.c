/* The host backend: order in slots and across them, concurrency, failed issues, what ops do, the inline mode. */
#include "backend_fixture.h"

#include <pthread.h>
#include <signal.h>

/* ------------------------------------------------------------------------------------------------------- kernels */

typedef struct gate {
    sem_t open;
    int passed; /* plain: written and read by kernels that the backend orders */
    int seen;
} gate;

static void gate_pass(const acs_grid *grid, void *const *args)
{
    gate *g = pointer_of(args);
    (void)grid;
    sem_wait(&g->open);
    g->passed = 1;
}

static void gate_look(const acs_grid *grid, void *const *args)
{
    gate *g = pointer_of(args);
    (void)grid;
    g->seen = g->passed;
}

static void gate_open(const acs_grid *grid, void *const *args)
{
    gate *g = pointer_of(args);
    (void)grid;
    sem_post(&g->open);
}

static void meet(const acs_grid *grid, void *const *args)
{
    (void)grid;
    pthread_barrier_wait(pointer_of(args));
}

static void increment(const acs_grid *grid, void *const *args)
{
    (void)grid;
    ++*(int *)pointer_of(args);
}

/* Count the nonzero bytes of shared memory, then dirty it. */
static void shared_use(const acs_grid *grid, void *const *args)
{
    unsigned char *shared = grid->shared;
    int *dirty = pointer_of(args);

    for (uint64_t i = 0; i < grid->shared_bytes; i++) {
        *dirty += shared[i] != 0;
        shared[i] = 1;
    }
    *dirty += grid->shared_bytes == 0 && shared != NULL;
}

typedef struct thread_facts {
    int usr1_blocked, cpus;
} thread_facts;

static void facts_look(const acs_grid *grid, void *const *args)
{
    thread_facts *facts = pointer_of(args);
    sigset_t mask;
    cpu_set_t cpus;

    (void)grid;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    facts->usr1_blocked = sigismember(&mask, SIGUSR1);
    sched_getaffinity(0, sizeof cpus, &cpus);
    facts->cpus = CPU_COUNT(&cpus);
}

static fixture *open_host(uint32_t slots, int executors)
{
    fixture *f = fixture_make(ACS_BACKEND_HOST, slots);
    f->options.executors = executors;
    fixture_open(f);
    return f;
}

static fixture *open_inline(uint32_t slots)
{
    fixture *f = fixture_make(ACS_BACKEND_HOST, slots);
    f->config.inline_only = true;
    fixture_open(f);
    return f;
}

/* --------------------------------------------------------------------------------------------------------- order */

static void ops_of_one_slot_run_in_order(void **state)
{
    fixture *f = open_host(1, 4);
    trace *t = calloc(1, sizeof *t);

    (void)state;
    for (int i = 0; i < 1000; i++) {
        fixture_add(f, 0, fixture_kernel(f, append, t, i));
        if (f->batch.items_used == ACS_BATCH_ITEMS)
            fixture_submit(f);
    }
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(t->used, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(t->number[i], i);
    free(t);
    fixture_close(f);
}

/* The looking kernel is next in line for the second executor while the first one waits in the gate. */
static void wait_for_a_mark_of_another_slot_runs_behind_it(void **state)
{
    fixture *f = open_host(3, 2);
    gate g = {.passed = 0, .seen = -1};
    acs_item *upstream;

    (void)state;
    sem_init(&g.open, 0, 0);
    upstream = fixture_add(f, 0, fixture_kernel(f, gate_pass, &g, 0));
    fixture_add(f, 1, fixture_kernel(f, gate_look, &g, 0));
    fixture_wait(f, upstream->after);
    fixture_add(f, 2, fixture_kernel(f, gate_open, &g, 0));
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(g.seen, 1);
    sem_destroy(&g.open);
    fixture_close(f);
}

/* A chain through all slots, round and round: an unguarded counter ends right, and TSan sees every step ordered. */
static void waits_in_a_chain_over_all_slots_order_every_op(void **state)
{
    fixture *f = open_host(FIXTURE_SLOTS, 4);
    acs_mark before = {0, 0, 0, 0};
    int counter = 0;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        acs_item *item = fixture_add(f, i % FIXTURE_SLOTS, fixture_kernel(f, increment, &counter, 0));
        if (i)
            fixture_wait(f, before);
        before = item->after;
        if (f->batch.items_used == 7)
            fixture_submit(f);
    }
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(counter, 2000);
    fixture_close(f);
}

static void op_with_many_waits_runs_behind_all_of_them(void **state)
{
    fixture *f = open_host(FIXTURE_SLOTS, 4);
    int counters[FIXTURE_SLOTS] = {0}, sum = -1;

    (void)state;
    for (int round = 0; round < 100; round++) {
        acs_mark marks[FIXTURE_SLOTS];
        for (int slot = 1; slot < FIXTURE_SLOTS; slot++) {
            marks[slot] = fixture_add(f, slot, fixture_kernel(f, increment, &counters[slot], 0))->after;
            if (round)
                fixture_wait(f, f->slots[0].marks[f->slots[0].used - 1]);
        }
        fixture_add(f, 0, fixture_kernel(f, increment, &counters[0], 0));
        for (int slot = 1; slot < FIXTURE_SLOTS; slot++)
            fixture_wait(f, marks[slot]);
        fixture_submit(f);
    }
    fixture_drain(f);

    sum = 0;
    for (int slot = 0; slot < FIXTURE_SLOTS; slot++)
        sum += counters[slot];
    assert_int_equal(sum, 100 * FIXTURE_SLOTS);
    fixture_close(f);
}

typedef struct submitter {
    fixture *f; /* its own batch and records, the backend of all */
    int slot;
    int counter;
} submitter;

static void *submitter_main(void *arg)
{
    submitter *s = arg;

    for (int i = 0; i < 1000; i++) {
        fixture_add(s->f, s->slot, fixture_kernel(s->f, increment, &s->counter, 0));
        if (i % 3 == 0)
            fixture_submit(s->f);
    }
    fixture_submit(s->f);
    return NULL;
}

static void batches_of_several_threads_all_run(void **state)
{
    enum { THREADS = 3 };
    fixture *f = open_host(THREADS, 2);
    submitter submitters[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        submitters[i] = (submitter){fixture_make(ACS_BACKEND_HOST, THREADS), i, 0};
        submitters[i].f->backend = f->backend;
        assert_int_equal(pthread_create(&threads[i], NULL, submitter_main, &submitters[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        f->slots[i] = submitters[i].f->slots[i];
    }
    fixture_drain(f);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(submitters[i].counter, 1000);
        submitters[i].f->backend = NULL;
        fixture_close(submitters[i].f);
    }
    fixture_close(f);
}

static void two_slots_with_two_executors_run_at_once(void **state)
{
    fixture *f = open_host(2, 2);
    pthread_barrier_t barrier;

    (void)state;
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 50; i++) {
        fixture_add(f, 0, fixture_kernel(f, meet, &barrier, 0));
        fixture_add(f, 1, fixture_kernel(f, meet, &barrier, 0));
        fixture_submit(f);
    }
    fixture_drain(f); /* then: it returns */
    pthread_barrier_destroy(&barrier);
    fixture_close(f);
}

/* Poll alone, without notify's semaphore to order anything, must make the op's writes visible (pair A). */
static void poll_that_sees_completion_sees_what_the_op_wrote(void **state)
{
    fixture *f = fixture_make(ACS_BACKEND_HOST, 2);
    int counter = 0;

    (void)state;
    f->config.notify = NULL;
    fixture_open(f);
    for (int i = 0; i < 200; i++) {
        fixture_add(f, i % 2, fixture_kernel(f, increment, &counter, 0));
        fixture_submit(f);
        while (!fixture_poll(f, i % 2))
            sched_yield();
        assert_int_equal(counter, i + 1);
    }
    fixture_close(f);
}

static void poll_before_completion_leaves_completed_untouched(void **state)
{
    fixture *f = open_host(1, 1);
    gate g = {.passed = 0};
    uint64_t completed = 77;

    (void)state;
    sem_init(&g.open, 0, 0);
    fixture_add(f, 0, fixture_kernel(f, gate_pass, &g, 0));
    fixture_submit(f);
    f->backend->ops->poll(f->backend, 0, f->slots[0].marks, 1, &completed);
    assert_int_equal(completed, 77);

    sem_post(&g.open);
    fixture_drain(f);
    f->backend->ops->poll(f->backend, 0, f->slots[0].marks, 1, &completed);
    assert_int_equal(completed, 1);
    sem_destroy(&g.open);
    fixture_close(f);
}

/* ----------------------------------------------------------------------------------------------- failing to issue */

static void item_behind_a_failed_one_is_skipped_and_marks_still_complete(void **state)
{
    fixture *f = open_host(3, 2);
    acs_item *bad, *behind, *further, *other;
    int ran = 0;

    (void)state;
    bad = fixture_add(f, 0, fixture_record(f, ACS_KIND_FREE)); /* not for a slot */
    behind = fixture_add(f, 1, fixture_kernel(f, increment, &ran, 0));
    fixture_edge(f, bad);
    fixture_wait(f, bad->after);
    further = fixture_add(f, 2, fixture_kernel(f, increment, &ran, 0));
    fixture_edge(f, behind);
    fixture_wait(f, behind->after);
    other = fixture_add(f, 0, fixture_kernel(f, increment, &ran, 0));
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(bad->status, ACS_ERR_INTERNAL);
    assert_non_null(bad->text);
    assert_int_equal(behind->status, ACS_ERR_SKIPPED);
    assert_int_equal(further->status, ACS_ERR_SKIPPED);
    assert_int_equal(other->status, ACS_OK);
    assert_int_equal(ran, 1);
    fixture_close(f);
}

/* A later op of the skipped op's slot may rely on the skipped op's wait. */
static void waits_of_a_skipped_item_still_hold_its_slot(void **state)
{
    fixture *f = open_host(3, 2);
    gate g = {.passed = 0, .seen = -1};
    acs_item *upstream, *bad;

    (void)state;
    sem_init(&g.open, 0, 0);
    upstream = fixture_add(f, 0, fixture_kernel(f, gate_pass, &g, 0));
    bad = fixture_add(f, 1, fixture_record(f, ACS_KIND_FREE));
    fixture_wait(f, upstream->after);
    fixture_add(f, 1, fixture_kernel(f, gate_look, &g, 0));
    fixture_add(f, 2, fixture_kernel(f, gate_open, &g, 0));
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(bad->status, ACS_ERR_INTERNAL);
    assert_int_equal(g.seen, 1);
    sem_destroy(&g.open);
    fixture_close(f);
}

static void mark_of_an_item_without_an_op_completes_with_what_is_before_it(void **state)
{
    fixture *f = open_host(2, 2);
    int counter = 0;

    (void)state;
    fixture_add_unmarked(f, 0, fixture_kernel(f, increment, &counter, 0));
    fixture_add_mark(f, 0);
    fixture_add(f, 1, fixture_kernel(f, increment, &counter, 0));
    fixture_wait(f, f->slots[0].marks[0]);
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(counter, 2);
    fixture_close(f);
}

/* ------------------------------------------------------------------------------------------------ what ops do */

static void copy_and_fill_change_exactly_their_bytes(void **state)
{
    fixture *f = open_host(1, 1);
    char text[] = "abcdefgh";
    acs_record *copy = fixture_record(f, ACS_KIND_MEMCPY), *fill = fixture_record(f, ACS_KIND_MEMSET);
    acs_record *none = fixture_record(f, ACS_KIND_MEMCPY);

    (void)state;
    copy->u.copy.dst = text + 2; /* overlapping */
    copy->u.copy.src = text;
    copy->u.copy.bytes = 4;
    copy->u.copy.rows = 1;
    fill->u.copy.dst = text;
    fill->u.copy.value = '-';
    fill->u.copy.bytes = 1;
    fill->u.copy.rows = 1;
    fixture_add(f, 0, copy);
    fixture_add(f, 0, fill);
    fixture_add(f, 0, none);
    fixture_add(f, 0, fixture_record(f, ACS_KIND_STREAM_WAIT));
    fixture_submit(f);
    fixture_drain(f);

    assert_string_equal(text, "-babcdgh");
    fixture_close(f);
}

static void shared_memory_is_zeroed_for_every_kernel(void **state)
{
    static const uint64_t sizes[] = {227 * 1024, 16, 0, 227 * 1024};
    fixture *f = open_host(1, 1);
    int dirty = 0;

    (void)state;
    for (int i = 0; i < 4; i++) {
        acs_record *op = fixture_kernel(f, shared_use, &dirty, 0);
        op->u.launch.shared_bytes = sizes[i];
        fixture_add(f, 0, op);
    }
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(dirty, 0);
    fixture_close(f);
}

static void executors_block_signals_and_pin_to_the_given_cpu(void **state)
{
    fixture *f = fixture_make(ACS_BACKEND_HOST, 4);
    thread_facts facts = {0, 0};
    cpu_set_t mine;

    (void)state;
    sched_getaffinity(0, sizeof mine, &mine);
    for (f->cpu = 0; !CPU_ISSET(f->cpu, &mine);)
        f->cpu++;
    f->options.executors = 3;
    fixture_open(f);
    fixture_add(f, 0, fixture_kernel(f, facts_look, &facts, 0));
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(f->cpus_asked, 3);
    assert_int_equal(facts.usr1_blocked, 1);
    assert_int_equal(facts.cpus, 1);
    fixture_close(f);
}

/* --------------------------------------------------------------------------------------------- inline mode, opening */

static void inline_backend_runs_in_poll_and_respects_waits(void **state)
{
    fixture *f = open_inline(3);
    trace *t = calloc(1, sizeof *t);
    acs_mark mark;

    (void)state;
    assert_true(f->backend->ops->single_thread);
    mark = fixture_add(f, 2, fixture_kernel(f, append, t, 0))->after;
    fixture_add(f, 0, fixture_kernel(f, append, t, 1));
    fixture_wait(f, mark);
    fixture_add(f, 0, fixture_kernel(f, append, t, 2));
    fixture_submit(f);
    assert_int_equal(t->used, 0);
    assert_true(fixture_poll(f, 0)); /* one poll runs the ops of all slots */

    assert_int_equal(t->used, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(t->number[i], i);
    free(t);
    fixture_close(f);
}

static void open_and_close_without_work_leaves_nothing(void **state)
{
    (void)state;
    for (int executors = 0; executors < 4; executors++) {
        fixture *f = open_host(2, executors);
        assert_int_equal(f->backend->ops->id, ACS_BACKEND_HOST);
        fixture_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_of_one_slot_run_in_order),
        cmocka_unit_test(wait_for_a_mark_of_another_slot_runs_behind_it),
        cmocka_unit_test(waits_in_a_chain_over_all_slots_order_every_op),
        cmocka_unit_test(op_with_many_waits_runs_behind_all_of_them),
        cmocka_unit_test(batches_of_several_threads_all_run),
        cmocka_unit_test(two_slots_with_two_executors_run_at_once),
        cmocka_unit_test(poll_that_sees_completion_sees_what_the_op_wrote),
        cmocka_unit_test(poll_before_completion_leaves_completed_untouched),
        cmocka_unit_test(item_behind_a_failed_one_is_skipped_and_marks_still_complete),
        cmocka_unit_test(waits_of_a_skipped_item_still_hold_its_slot),
        cmocka_unit_test(mark_of_an_item_without_an_op_completes_with_what_is_before_it),
        cmocka_unit_test(copy_and_fill_change_exactly_their_bytes),
        cmocka_unit_test(shared_memory_is_zeroed_for_every_kernel),
        cmocka_unit_test(executors_block_signals_and_pin_to_the_given_cpu),
        cmocka_unit_test(inline_backend_runs_in_poll_and_respects_waits),
        cmocka_unit_test(open_and_close_without_work_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

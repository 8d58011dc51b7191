/*
 * Unit tests of window/window: states, edge types, room, draining (WIN-5), and which ops are
 * skipped behind a failed one. Random sequences are in test_window_model.c.
 */
#include "window_fixture.h"

#define AT(offset) ((uintptr_t)0x10000 + (uintptr_t)(offset))

enum { PART = 64 };

/* ----------------------------------------------------------------------------------------------------------- states */

static void issue_of_a_kernel_makes_kernels_behind_it_ready_and_end_makes_host_functions(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op writer = KERNEL(s, ACS_OUT(AT(0), 64));
    acs_op kernel = KERNEL(s, ACS_IN(AT(0), 64)), host = HOST(s, ACS_IN(AT(0), 64));

    scene_issue(s, writer, 3);
    assert_int_equal(scene_state(s, kernel), ACS_ENTRY_READY);
    assert_int_equal(scene_entry(s, kernel)->wait_mask, 1 << 3);
    assert_int_equal(scene_state(s, host), ACS_ENTRY_PENDING);
    scene_end(s, writer);
    assert_int_equal(scene_state(s, host), ACS_ENTRY_READY);
    scene_close(s);
}

static void end_of_a_host_function_not_its_start_makes_kernels_behind_it_ready(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op host = HOST(s, ACS_OUT(AT(0), 64)), kernel = KERNEL(s, ACS_IN(AT(0), 64));

    scene_take(s, host);
    assert_int_equal(scene_state(s, kernel), ACS_ENTRY_PENDING);
    acs_window_end(&s->w, scene_entry(s, host), ACS_OK, 0);
    scene_collect(s);
    assert_int_equal(scene_state(s, kernel), ACS_ENTRY_READY);
    scene_close(s);
}

static void issue_with_host_wait_leaves_kernels_behind_it_pending_until_its_end(void **state)
{
    (void)state;
    scene *s = scene_open(16, true);
    acs_op writer = KERNEL(s, ACS_OUT(AT(0), 64)), reader = KERNEL(s, ACS_IN(AT(0), 64));

    scene_issue(s, writer, 0);
    assert_int_equal(scene_state(s, reader), ACS_ENTRY_PENDING);
    scene_end(s, writer);
    assert_int_equal(scene_state(s, reader), ACS_ENTRY_READY);
    scene_close(s);
}

static void insert_behind_an_issued_op_is_ready_at_once_with_its_need(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    scene_issue(s, KERNEL(s, ACS_OUT(AT(0), 64)), 2);
    scene_issue(s, KERNEL(s, ACS_OUT(AT(100), 64)), 2);

    acs_entry *e = scene_entry(s, KERNEL(s, ACS_IN(AT(0), 200)));

    assert_int_equal(e->state, ACS_ENTRY_READY);
    assert_int_equal(e->wait_mask, 1 << 2);
    assert_int_equal(acs_entry_waits(&s->w, e)[2].value, 2); /* the newest of the slot */
    scene_close(s);
}

static void insert_behind_a_callback_target_waits_for_its_end(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op target = KERNEL0(s);
    acs_entry_traits traits = {.on_host = true, .never_skipped = true, .behind = target};
    acs_op callback = scene_insert(s, ACS_KIND_CALLBACK, traits, NULL, 0);

    scene_issue(s, target, 0);
    assert_int_equal(scene_state(s, callback), ACS_ENTRY_PENDING);
    scene_end(s, target);
    assert_int_equal(scene_state(s, callback), ACS_ENTRY_READY);

    /* The target is gone: nothing to wait for. */
    acs_op late = scene_insert(s, ACS_KIND_CALLBACK, traits, NULL, 0);
    assert_int_equal(scene_state(s, late), ACS_ENTRY_READY);
    scene_close(s);
}

static void find_and_oldest_follow_what_is_in_the_window(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    assert_int_equal(acs_window_oldest(&s->w), 0);
    acs_op first = KERNEL0(s), second = KERNEL0(s);

    assert_int_equal(scene_entry(s, second)->seq, second);
    assert_int_equal(acs_window_oldest(&s->w), first);
    scene_run(s, first);
    assert_null(acs_window_find(&s->w, first));
    assert_int_equal(acs_window_oldest(&s->w), second);
    scene_run(s, second);
    assert_int_equal(acs_window_oldest(&s->w), 0);
    scene_close(s);
}

static void ready_queue_gives_first_come_order_unless_pushed_in_front(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_window *w = &s->w;
    for (int i = 0; i < 4; i++)
        KERNEL0(s);
    acs_entry *first = acs_window_pop_ready(w);
    assert_int_equal(first->seq, 1);

    acs_window_remove_ready(w, scene_entry(s, 3)); /* from the middle, then the tail */
    acs_window_remove_ready(w, scene_entry(s, 4));
    acs_window_push_ready(w, scene_entry(s, 3), false);
    acs_window_push_ready(w, first, true);
    assert_int_equal(w->ready.count, 3);
    assert_int_equal(acs_window_pop_ready(w)->seq, 1);
    assert_int_equal(acs_window_pop_ready(w)->seq, 2);
    assert_int_equal(acs_window_pop_ready(w)->seq, 3);
    assert_null(acs_window_pop_ready(w));

    acs_window_push_ready(w, first, true); /* into an empty queue */
    acs_window_push_ready(w, scene_entry(s, 4), false);
    assert_int_equal(acs_window_pop_ready(w)->seq, 1);
    assert_int_equal(acs_window_pop_ready(w)->seq, 4);
    assert_null(acs_window_pop_ready(w));
    scene_close(s);
}

/* --------------------------------------------------------------------------------------------------------- draining */

static void skip_behind_an_issued_op_drains_until_that_op_ended(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op running = KERNEL(s, ACS_OUT(AT(0), 64)), failing = KERNEL(s, ACS_OUT(AT(100), 64));
    acs_op skipped = KERNEL(s, ACS_IN(AT(0), 200)), writer = HOST(s, ACS_OUT(AT(0), 64));
    scene_issue(s, running, 1);

    scene_fail(s, failing);

    assert_int_equal(s->status[failing], ACS_ERR_LAUNCH);
    assert_int_equal(scene_state(s, skipped), ACS_ENTRY_DRAINING);
    assert_int_equal(scene_state(s, writer), ACS_ENTRY_PENDING);
    scene_end(s, running);
    assert_int_equal(s->status[skipped], ACS_ERR_SKIPPED);
    assert_int_equal(s->cause[skipped], failing);
    assert_int_equal(s->cause[writer], failing); /* WAR on the skipped reader */
    scene_close(s);
}

static void fail_behind_an_issued_op_drains_and_so_does_what_comes_behind_later(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op running = KERNEL(s, ACS_OUT(AT(0), 64)), failing = KERNEL(s, ACS_INOUT(AT(0), 64));
    scene_issue(s, running, 1);

    scene_fail(s, failing);
    acs_op later = KERNEL(s, ACS_IN(AT(0), 64));

    assert_int_equal(scene_state(s, failing), ACS_ENTRY_DRAINING);
    assert_int_equal(scene_state(s, later), ACS_ENTRY_PENDING);
    scene_end(s, running);
    assert_int_equal(s->status[failing], ACS_ERR_LAUNCH);
    assert_int_equal(s->status[later], ACS_ERR_SKIPPED);
    assert_true(s->order_ended[running] < s->order_ended[failing]);
    assert_true(s->order_ended[failing] < s->order_ended[later]);
    scene_close(s);
}

static void dead_window_ends_what_becomes_ready_except_immune_ops(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op writer = KERNEL(s, ACS_OUT(AT(0), 64)), reader = KERNEL(s, ACS_IN(AT(0), 64));
    acs_op observer = OBSERVE(s, ACS_IN(AT(0), 64));
    acs_op release = scene_insert(s, ACS_KIND_FREE, (acs_entry_traits){.on_host = true, .never_skipped = true},
                                  SEGMENTS(ACS_OUT(AT(0), 64)));
    scene_issue(s, writer, 0);
    scene_issue(s, reader, 0);
    s->w.dead = true;
    acs_window_end(&s->w, scene_entry(s, writer), ACS_ERR_DEVICE, 0);
    acs_window_end(&s->w, scene_entry(s, reader), ACS_ERR_DEVICE, 0);
    scene_collect(s);

    assert_int_equal(s->status[observer], ACS_ERR_DEVICE);
    assert_int_equal(scene_state(s, release), ACS_ENTRY_READY);
    assert_int_equal(s->status[KERNEL0(s)], ACS_ERR_DEVICE);
    scene_close(s);
}

/* ------------------------------------------------------------------------------------------------------------- room */

static void has_room_of_a_full_window_is_false_until_an_op_is_freed(void **state)
{
    (void)state;
    scene *s = scene_open(3, false);
    for (int i = 0; i < 3; i++)
        KERNEL0(s);
    acs_record *next = scene_record(s, ACS_KIND_KERNEL, NULL, 0);
    acs_entry_traits none = {0};

    assert_false(acs_window_has_room(&s->w, next));
    scene_run(s, 2);
    assert_true(acs_window_has_room(&s->w, next));
    acs_window_insert(&s->w, next, &none);
    assert_int_equal(s->w.counters.window_high, 3);
    scene_close(s);
}

static void insert_of_an_op_with_1000_segments_into_a_window_of_one_works(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    scene *s = scene_open(1, false);
    static acs_segment segments[COUNT];
    for (int i = 0; i < COUNT; i++)
        segments[i] = i % 2 ? ACS_IN(AT(i * 8), 8) : ACS_INOUT(AT(i * 8), 12);

    for (int i = 0; i < 3; i++) {
        acs_op op = scene_insert(s, ACS_KIND_KERNEL, (acs_entry_traits){0}, segments, COUNT);
        assert_int_equal(scene_state(s, op), ACS_ENTRY_READY);
        assert_true(acs_window_check(&s->w));
        scene_run(s, op);
    }
    scene_close(s);
}

/* Ops with many segments fill the pool of edges long before the window is full. */
static void has_room_without_edges_is_false_until_ops_end(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    scene *s = scene_open(2048, false);
    static acs_segment segments[COUNT];
    for (int i = 0; i < COUNT; i++)
        segments[i] = ACS_IN(AT(i * 64), 64);
    s->w.edge_count = 4000; /* as if the pool were this small */
    for (int i = 0; i < 900; i++)
        KERNEL(s, ACS_OUT(AT((i % COUNT) * 64), 64));

    acs_record *next = scene_record(s, ACS_KIND_KERNEL, segments, COUNT);
    acs_entry_traits none = {0};
    while (acs_window_has_room(&s->w, next)) {
        acs_window_insert(&s->w, next, &none);
        next = scene_record(s, ACS_KIND_KERNEL, segments, COUNT);
    }

    assert_true(s->w.live < s->w.limit);
    assert_true(s->w.edges_used <= s->w.edge_count);
    assert_true(acs_window_check(&s->w));
    for (acs_op op = 1; op <= 900; op++)
        scene_run(s, op);
    assert_true(acs_window_has_room(&s->w, next));
    acs_window_insert(&s->w, next, &none);
    while (s->w.ready.count)
        scene_run(s, s->w.entries[s->w.ready.head].seq);
    assert_int_equal(s->w.live, 0);
    assert_int_equal(s->w.live_joins, 0);
    assert_int_equal(s->w.edges_used, 0);
    scene_close(s);
}

/* What is expected of an op is a guess: by its insertion its regions are gone, and their places may be others'. */
static void insert_of_an_expected_op_whose_region_was_evicted_finds_its_own(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_segment segments[2] = {ACS_OUT(AT(0), 64), ACS_IN(AT(PART), 64)};
    scene_end(s, KERNEL(s, ACS_OUT(AT(0), 64), ACS_OUT(AT(PART), 64)));
    acs_record *op = scene_record(s, ACS_KIND_KERNEL, segments, 2);
    acs_window_expect(&s->w, &op, 1);
    acs_regions_evict_idle(s->w.regions);
    acs_shape other = {.base = AT(7 * PART), .row_bytes = 64, .rows = 1};
    assert_non_null(acs_regions_get(s->w.regions, &other, ACS_UPDATE));
    (void)acs_window_insert(&s->w, op, &(acs_entry_traits){0});
    assert_int_equal(acs_regions_count(s->w.regions), 3);
    assert_int_equal(scene_state(s, KERNEL(s, ACS_IN(AT(0), 8))), ACS_ENTRY_PENDING);
    assert_int_equal(scene_state(s, KERNEL(s, ACS_IN(AT(PART), 8))), ACS_ENTRY_READY);
    scene_close(s);
}

/* Whole readers over part writers make joins of writers, shared readers make joins of readers: all in one insertion. */
static void has_room_for_joins_of_both_kinds_leaves_edges_for_them(void **state)
{
    (void)state;
    enum { PARTS = 60, WHOLES = 10, SHARED = 40 };
    scene *s = scene_open(256, false);
    s->w.readers_most = ACS_REGION_READERS;
    acs_segment segments[WHOLES + SHARED];
    acs_entry_traits none = {0};
    for (int i = 0; i < PARTS; i++)
        KERNEL(s, ACS_OUT(AT(i * PART), PART));
    for (int i = 0; i < WHOLES; i++)
        segments[i] = ACS_IN(AT(i), PARTS * PART - i);
    for (int i = 0; i < SHARED; i++)
        segments[WHOLES + i] = ACS_IN(AT(0x10000 + i * PART), PART);
    for (int i = 0; i < ACS_REGION_READERS; i++)
        scene_insert(s, ACS_KIND_KERNEL, none, segments + WHOLES, SHARED);
    acs_record *op = scene_record(s, ACS_KIND_KERNEL, segments, WHOLES + SHARED);
    while (acs_window_has_room(&s->w, op)) /* as if the pool were as small as that */
        s->w.edge_count--;
    s->w.edges[++s->w.edge_count].next = 0;

    acs_window_insert(&s->w, op, &none);

    assert_true(s->w.edges_used <= s->w.edge_count);
    scene_close(s);
}

static void has_room_without_places_for_joins_is_false_until_ops_end(void **state)
{
    (void)state;
    scene *s = scene_open(256, false);
    acs_segment segment = ACS_IN(AT(0), 64);
    acs_entry_traits none = {0};
    s->w.joins = 20;
    s->w.readers_most = ACS_REGION_READERS;
    acs_record *next = scene_record(s, ACS_KIND_KERNEL, &segment, 1);
    while (acs_window_has_room(&s->w, next)) {
        acs_window_insert(&s->w, next, &none);
        next = scene_record(s, ACS_KIND_KERNEL, &segment, 1);
    }

    assert_true(s->w.live < s->w.limit);
    assert_in_range(s->w.live_joins, 10, 20);
    for (acs_op op = 1; op < next->seq; op++)
        scene_run(s, op);
    assert_int_equal(s->w.live_joins, 0);
    assert_true(acs_window_has_room(&s->w, next));
    scene_close(s);
}

/* ----------------------------------------------------------------------------------------------------------- poison */

/* The second of two ops is skipped because the first failed: while it waits for it, and when inserted later. */
static void assert_skipped(acs_segment first, acs_segment second)
{
    scene *s = scene_open(16, false);
    acs_op failing = KERNEL(s, first), waiting = KERNEL(s, second), free_op = KERNEL(s, ACS_OUT(AT(9000), 8));
    scene_fail(s, failing);
    acs_op later = KERNEL(s, second);

    assert_int_equal(s->status[failing], ACS_ERR_LAUNCH);
    assert_int_equal(s->status[waiting], ACS_ERR_SKIPPED);
    assert_int_equal(s->cause[waiting], failing);
    assert_int_equal(s->status[later], ACS_ERR_SKIPPED);
    assert_int_equal(s->cause[later], failing);
    assert_int_equal(scene_state(s, free_op), ACS_ENTRY_READY);
    scene_run(s, free_op);
    acs_window_clear_poison(&s->w);
    assert_int_equal(scene_state(s, KERNEL(s, second)), ACS_ENTRY_READY);
    scene_close(s);
}

static void fail_skips_what_depends_on_the_op_until_poison_is_cleared(void **state)
{
    (void)state;
    assert_skipped(ACS_OUT(AT(0), 64), ACS_IN(AT(0), 64));
    assert_skipped(ACS_IN(AT(0), 64), ACS_OUT(AT(0), 64));
    assert_skipped(ACS_OUT(AT(0), 64), ACS_OUT(AT(0), 64));
    assert_skipped(ACS_OUT(AT(0), 64), ACS_IN(AT(32), 64));
    assert_skipped(ACS_TOKEN(5), ACS_TOKEN(5));
    assert_skipped(ACS_TILE_OUT(AT(0), 8, 4, 32), ACS_TILE_IN(AT(4), 8, 4, 32));
}

static void fail_of_a_reader_leaves_other_readers_alone(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op failing = KERNEL(s, ACS_IN(AT(0), 64)), reader = KERNEL(s, ACS_IN(AT(0), 64));

    scene_fail(s, failing);

    assert_int_equal(scene_state(s, reader), ACS_ENTRY_READY);
    assert_int_equal(scene_state(s, KERNEL(s, ACS_IN(AT(0), 64))), ACS_ENTRY_READY);
    scene_close(s);
}

static void fail_names_the_first_op_along_a_path_of_skipped_ones(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op failing = KERNEL(s, ACS_OUT(AT(0), 64));
    acs_op second = KERNEL(s, ACS_IN(AT(0), 64), ACS_OUT(AT(100), 64));
    acs_op third = KERNEL(s, ACS_IN(AT(100), 64), ACS_OUT(AT(200), 64));

    scene_fail(s, failing);

    assert_int_equal(s->cause[second], failing);
    assert_int_equal(s->cause[third], failing);
    acs_op late = KERNEL(s, ACS_IN(AT(200), 64));
    assert_int_equal(s->status[late], ACS_ERR_SKIPPED);
    assert_int_equal(s->cause[late], failing);
    scene_close(s);
}

static void fail_of_one_of_many_readers_skips_the_writer_through_the_join(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    for (int i = 0; i < 20; i++)
        KERNEL(s, ACS_IN(AT(0), 64));
    acs_op writer = KERNEL(s, ACS_OUT(AT(0), 64));
    scene_fail(s, 1); /* the deepest in the joins */
    for (acs_op op = 2; op <= 20; op++)
        scene_run(s, op);

    assert_int_equal(s->status[writer], ACS_ERR_SKIPPED);
    assert_int_equal(s->cause[writer], 1);
    scene_close(s);
}

static void fail_of_a_part_writer_skips_a_whole_reader_through_the_cover(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    for (int i = 0; i < 16; i++)
        KERNEL(s, ACS_OUT(AT(i * PART), PART));
    acs_op first = KERNEL(s, ACS_IN(AT(0), 16 * PART)), second = KERNEL(s, ACS_IN(AT(0), 16 * PART));
    scene_fail(s, 3);
    for (acs_op op = 1; op <= 16; op++)
        if (op != 3)
            scene_run(s, op);

    assert_int_equal(s->cause[first], 3);
    assert_int_equal(s->cause[second], 3);
    /* Remembered for the part, and for the whole that was to be read. */
    acs_op part = KERNEL(s, ACS_IN(AT(2 * PART), 1)), other = KERNEL(s, ACS_IN(AT(9 * PART), 1));
    assert_int_equal(s->status[part], ACS_ERR_SKIPPED);
    assert_int_equal(scene_state(s, other), ACS_ENTRY_READY);
    scene_close(s);
}

static void fail_of_an_op_that_may_touch_anything_skips_all_that_touch(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op any = scene_any(s), waiting = KERNEL(s, ACS_IN(AT(0), 1));
    scene_fail(s, any);

    assert_int_equal(s->cause[waiting], any);
    assert_int_equal(s->status[KERNEL(s, ACS_TOKEN(3))], ACS_ERR_SKIPPED);
    assert_int_equal(scene_state(s, KERNEL0(s)), ACS_ENTRY_READY);
    scene_close(s);
}

static void fail_of_any_op_skips_one_that_may_touch_anything(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op failing = KERNEL(s, ACS_IN(AT(0), 64));
    scene_fail(s, failing);

    assert_int_equal(scene_state(s, KERNEL(s, ACS_ALL_MEMORY_IN)), ACS_ENTRY_READY);
    acs_op any = scene_any(s);
    scene_run(s, 2);
    assert_int_equal(s->status[any], ACS_ERR_SKIPPED);
    assert_int_equal(s->cause[any], failing);
    scene_close(s);
}

static void fail_before_an_immune_op_does_not_skip_it(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_entry_traits immune = {.on_host = true, .never_skipped = true};
    acs_op failing = KERNEL(s, ACS_OUT(AT(0), 64));
    acs_op waiting = scene_insert(s, ACS_KIND_FREE, immune, SEGMENTS(ACS_OUT(AT(0), 64)));
    scene_fail(s, failing);
    acs_op later = scene_insert(s, ACS_KIND_FREE, immune, SEGMENTS(ACS_OUT(AT(0), 64)));

    assert_int_equal(scene_state(s, waiting), ACS_ENTRY_READY);
    scene_end(s, waiting);
    assert_int_equal(s->status[waiting], ACS_OK);
    assert_int_equal(scene_state(s, later), ACS_ENTRY_READY);
    scene_end(s, later);
    scene_close(s);
}

static void forget_block_clears_poison_inside_it_alone(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    scene_fail(s, KERNEL(s, ACS_OUT(AT(0), 64)));
    scene_fail(s, KERNEL(s, ACS_OUT(AT(1000), 64)));

    acs_window_forget_block(&s->w, AT(0), 256);

    assert_int_equal(scene_state(s, KERNEL(s, ACS_IN(AT(0), 64))), ACS_ENTRY_READY);
    assert_int_equal(s->status[KERNEL(s, ACS_IN(AT(1000), 64))], ACS_ERR_SKIPPED);
    scene_close(s);
}

/* An observer is told, but nothing is skipped because it was. */
static void fail_before_an_observer_skips_it_without_poison_of_its_own(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op failing = KERNEL(s, ACS_OUT(AT(0), 64));
    acs_op observer = OBSERVE(s, ACS_INOUT(AT(0), 64), ACS_INOUT(AT(500), 64));
    scene_fail(s, failing);

    assert_int_equal(s->status[observer], ACS_ERR_SKIPPED);
    assert_int_equal(s->cause[observer], failing);
    assert_int_equal(scene_state(s, KERNEL(s, ACS_IN(AT(500), 64))), ACS_ENTRY_READY);
    scene_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(issue_of_a_kernel_makes_kernels_behind_it_ready_and_end_makes_host_functions),
        cmocka_unit_test(end_of_a_host_function_not_its_start_makes_kernels_behind_it_ready),
        cmocka_unit_test(issue_with_host_wait_leaves_kernels_behind_it_pending_until_its_end),
        cmocka_unit_test(insert_behind_an_issued_op_is_ready_at_once_with_its_need),
        cmocka_unit_test(insert_behind_a_callback_target_waits_for_its_end),
        cmocka_unit_test(find_and_oldest_follow_what_is_in_the_window),
        cmocka_unit_test(ready_queue_gives_first_come_order_unless_pushed_in_front),
        cmocka_unit_test(skip_behind_an_issued_op_drains_until_that_op_ended),
        cmocka_unit_test(fail_behind_an_issued_op_drains_and_so_does_what_comes_behind_later),
        cmocka_unit_test(dead_window_ends_what_becomes_ready_except_immune_ops),
        cmocka_unit_test(has_room_of_a_full_window_is_false_until_an_op_is_freed),
        cmocka_unit_test(insert_of_an_op_with_1000_segments_into_a_window_of_one_works),
        cmocka_unit_test(has_room_without_edges_is_false_until_ops_end),
        cmocka_unit_test(insert_of_an_expected_op_whose_region_was_evicted_finds_its_own),
        cmocka_unit_test(has_room_for_joins_of_both_kinds_leaves_edges_for_them),
        cmocka_unit_test(has_room_without_places_for_joins_is_false_until_ops_end),
        cmocka_unit_test(fail_skips_what_depends_on_the_op_until_poison_is_cleared),
        cmocka_unit_test(fail_of_a_reader_leaves_other_readers_alone),
        cmocka_unit_test(fail_names_the_first_op_along_a_path_of_skipped_ones),
        cmocka_unit_test(fail_of_one_of_many_readers_skips_the_writer_through_the_join),
        cmocka_unit_test(fail_of_a_part_writer_skips_a_whole_reader_through_the_cover),
        cmocka_unit_test(fail_of_an_op_that_may_touch_anything_skips_all_that_touch),
        cmocka_unit_test(fail_of_any_op_skips_one_that_may_touch_anything),
        cmocka_unit_test(fail_before_an_immune_op_does_not_skip_it),
        cmocka_unit_test(forget_block_clears_poison_inside_it_alone),
        cmocka_unit_test(fail_before_an_observer_skips_it_without_poison_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

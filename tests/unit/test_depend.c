/*
 * Unit tests of window/depend: which edges an inserted op gets, and how few they are. What is skipped behind a failed
 * op is in test_window.c, the random comparison with a model of bytes in test_window_model.c.
 */
#include "window_fixture.h"

#include "base/tuning.h"

#define AT(offset) ((uintptr_t)0x10000 + (uintptr_t)(offset))

enum { MANY = 256, PART = 64 };

static uint64_t edges(const scene *s)
{
    return s->w.counters.edges;
}

/* Edges of the second of two ops in an empty window. */
static uint64_t edges_between(acs_segment first, acs_segment second)
{
    scene *s = scene_open(16, false);
    KERNEL(s, first);
    acs_op op = KERNEL(s, second);
    uint64_t found = edges(s);

    assert_int_equal(scene_state(s, op), found ? ACS_ENTRY_PENDING : ACS_ENTRY_READY);
    scene_close(s);
    return found;
}

/* ------------------------------------------------------------------------------------------------------------ pairs */

static void insert_with_only_a_raw_makes_one_edge(void **state)
{
    (void)state;
    assert_int_equal(edges_between(ACS_OUT(AT(0), 64), ACS_IN(AT(0), 64)), 1);
}

static void insert_with_only_a_war_makes_one_edge(void **state)
{
    (void)state;
    assert_int_equal(edges_between(ACS_IN(AT(0), 64), ACS_OUT(AT(0), 64)), 1);
}

static void insert_with_only_a_waw_makes_one_edge(void **state)
{
    (void)state;
    assert_int_equal(edges_between(ACS_OUT(AT(0), 64), ACS_OUT(AT(0), 64)), 1);
}

static void insert_of_two_readers_makes_no_edge(void **state)
{
    (void)state;
    assert_int_equal(edges_between(ACS_IN(AT(0), 64), ACS_IN(AT(0), 64)), 0);
    assert_int_equal(edges_between(ACS_IN(AT(0), 64), ACS_IN(AT(32), 64)), 0);
    assert_int_equal(edges_between(ACS_IN(AT(0), 64), ACS_ALL_MEMORY_IN), 0);
}

static void insert_with_every_hazard_at_once_makes_one_edge(void **state)
{
    (void)state;
    assert_int_equal(edges_between(ACS_INOUT(AT(0), 64), ACS_INOUT(AT(0), 64)), 1);
}

static void insert_with_part_overlap_makes_an_edge_only_where_bytes_meet(void **state)
{
    (void)state;
    acs_segment middle = ACS_OUT(AT(64), 64);

    assert_int_equal(edges_between(middle, ACS_IN(AT(0), 64)), 0);
    assert_int_equal(edges_between(middle, ACS_IN(AT(0), 65)), 1);
    assert_int_equal(edges_between(middle, ACS_IN(AT(127), 10)), 1);
    assert_int_equal(edges_between(middle, ACS_IN(AT(128), 10)), 0);
    assert_int_equal(edges_between(middle, ACS_IN(AT(80), 1)), 1);
    assert_int_equal(edges_between(middle, ACS_IN(AT(0), 1024)), 1);
}

static void insert_of_tiles_of_one_pitch_makes_an_edge_only_where_bytes_meet(void **state)
{
    (void)state;
    acs_segment tile = ACS_TILE_OUT(AT(0), 16, 8, 64);

    assert_int_equal(edges_between(tile, ACS_TILE_IN(AT(16), 16, 8, 64)), 0);
    assert_int_equal(edges_between(tile, ACS_TILE_IN(AT(15), 16, 8, 64)), 1);
    assert_int_equal(edges_between(tile, ACS_TILE_IN(AT(8 * 64), 16, 8, 64)), 0);
    assert_int_equal(edges_between(tile, ACS_TILE_IN(AT(7 * 64), 16, 8, 64)), 1);
    assert_int_equal(edges_between(tile, ACS_IN(AT(3 * 64 + 16), 48)), 0);
    assert_int_equal(edges_between(tile, ACS_IN(AT(3 * 64 + 16), 49)), 1);
}

static void insert_of_tokens_orders_by_key_and_never_against_bytes(void **state)
{
    (void)state;
    acs_segment seven = ACS_TOKEN(7), eight = ACS_TOKEN(8);
    acs_segment bytes = ACS_INOUT(AT(0), 16), of_address = ACS_TOKEN(AT(0));

    assert_int_equal(edges_between(seven, seven), 1);
    assert_int_equal(edges_between(seven, eight), 0);
    assert_int_equal(edges_between(bytes, of_address), 0);
}

static void insert_of_empty_segments_makes_no_edge(void **state)
{
    (void)state;
    assert_int_equal(edges_between(ACS_OUT(AT(0), 0), ACS_INOUT(AT(0), 64)), 0);
    assert_int_equal(edges_between(ACS_INOUT(AT(0), 64), ACS_TILE_OUT(AT(0), 8, 0, 16)), 0);
    assert_int_equal(edges_between(ACS_INOUT(AT(0), 64), ACS_TILE_OUT(AT(0), 0, 8, 16)), 0);
}

/* ----------------------------------------------------------------------------------------------- implied and reused */

static void insert_naming_an_upstream_op_many_times_makes_one_edge(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    KERNEL(s, ACS_OUT(AT(0), 64), ACS_OUT(AT(100), 64));

    KERNEL(s, ACS_INOUT(AT(0), 64), ACS_IN(AT(8), 8), ACS_OUT(AT(100), 64));

    assert_int_equal(edges(s), 1);
    scene_close(s);
}

static void insert_of_a_writer_behind_readers_has_no_edge_to_the_writer_before_them(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    KERNEL(s, ACS_OUT(AT(0), 64));
    KERNEL(s, ACS_IN(AT(0), 64));
    KERNEL(s, ACS_IN(AT(0), 64));
    uint64_t before = edges(s);

    KERNEL(s, ACS_OUT(AT(0), 64));

    assert_int_equal(before, 2);
    assert_int_equal(edges(s) - before, 2);
    scene_close(s);
}

static void insert_after_a_covering_write_depends_on_that_write_alone(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    for (int i = 0; i < 16; i++)
        KERNEL(s, ACS_OUT(AT(i * PART), PART));
    KERNEL(s, ACS_OUT(AT(0), 16 * PART));
    assert_int_equal(edges(s), 16);

    KERNEL(s, ACS_IN(AT(0), 16 * PART));
    assert_int_equal(edges(s), 17);
    KERNEL(s, ACS_IN(AT(5 * PART), PART));
    assert_int_equal(edges(s), 18);
    KERNEL(s, ACS_IN(AT(5 * PART + 1), 2 * PART));
    assert_int_equal(edges(s), 19);
    scene_close(s);
}

static void insert_of_whole_readers_over_part_writers_shares_one_join(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    for (int i = 0; i < 16; i++)
        KERNEL(s, ACS_OUT(AT(i * PART), PART));

    acs_op first = KERNEL(s, ACS_IN(AT(0), 16 * PART));
    assert_int_equal(s->w.counters.joins, 1);
    assert_int_equal(edges(s), 16 + 1);
    KERNEL(s, ACS_IN(AT(0), 16 * PART));
    assert_int_equal(s->w.counters.joins, 1);
    assert_int_equal(edges(s), 16 + 2);

    /* What was written since the join is linked beside it. */
    acs_op again = KERNEL(s, ACS_OUT(AT(3 * PART), PART));
    uint64_t before = edges(s);
    acs_op third = KERNEL(s, ACS_IN(AT(0), 16 * PART));
    assert_int_equal(s->w.counters.joins, 1);
    assert_int_equal(edges(s) - before, 2);
    for (acs_op op = 1; op <= 16; op++)
        scene_issue(s, op, 0);
    assert_int_equal(scene_state(s, first), ACS_ENTRY_READY);
    assert_int_equal(scene_state(s, third), ACS_ENTRY_PENDING);
    scene_issue(s, first, 1);
    scene_issue(s, first + 1, 1);
    scene_issue(s, again, 2);
    assert_int_equal(scene_state(s, third), ACS_ENTRY_READY);
    scene_close(s);
}

/* `most`: readers that a region remembers. As many joins and edges as that makes, the writer waits for all of them. */
static void many_readers_then_a_writer(uint32_t most, uint64_t joins, uint64_t writer_edges)
{
    scene *s = scene_open(64, false);
    acs_op readers[20];
    s->w.readers_most = most;
    for (int i = 0; i < 20; i++)
        readers[i] = KERNEL(s, ACS_IN(AT(0), 64));
    assert_int_equal(s->w.counters.joins, joins);
    uint64_t before = edges(s);

    acs_op writer = KERNEL(s, ACS_OUT(AT(0), 64));

    assert_int_equal(edges(s) - before, writer_edges);
    for (int i = 0; i < 20; i++) { /* the last of them is the first reader, deepest in the joins */
        assert_int_equal(scene_state(s, writer), ACS_ENTRY_PENDING);
        scene_issue(s, readers[19 - i], i % SCENE_SLOTS);
    }
    assert_int_equal(scene_state(s, writer), ACS_ENTRY_READY);
    assert_int_equal(scene_entry(s, writer)->wait_mask, 0xff);
    scene_close(s);
}

static void insert_of_many_readers_remembers_each_and_makes_no_join(void **state)
{
    (void)state;
    many_readers_then_a_writer(64, 0, 20);
}

static void insert_of_more_readers_than_are_remembered_makes_joins_and_a_writer_waits_for_each_reader(void **state)
{
    (void)state;
    many_readers_then_a_writer(ACS_REGION_READERS, 6, 2);
}

/*
 * Readers that nothing writes behind, as of constants: those that ended are forgotten, or the list would grow for ever.
 */
static void insert_of_readers_again_and_again_forgets_those_that_ended(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    for (int i = 0; i < 40 * MANY; i++) {
        acs_op reader = KERNEL(s, ACS_IN(AT(0), 64));
        scene_issue(s, reader, 0);
        scene_end(s, reader);
    }
    acs_shape shape = {.base = AT(0), .row_bytes = 64, .rows = 1};
    assert_in_range(acs_regions_find(s->w.regions, &shape)->reader_count, 1, 2 * ACS_REGION_READERS);
    assert_int_equal(s->w.counters.joins, 0);
    scene_close(s);
}

static void insert_of_many_issued_readers_keeps_the_newest_of_each_slot(void **state)
{
    (void)state;
    scene *s = scene_open(MANY, false);
    for (int i = 0; i < 100; i++)
        scene_issue(s, KERNEL(s, ACS_IN(AT(0), 64)), i % 2);
    acs_op writer = KERNEL(s, ACS_OUT(AT(0), 64));

    assert_int_equal(s->w.counters.joins, 0);
    assert_in_range(edges(s), 1, ACS_REGION_READERS);
    assert_int_equal(scene_state(s, writer), ACS_ENTRY_READY);
    assert_int_equal(acs_entry_waits(&s->w, scene_entry(s, writer))[0].value, 50);
    assert_int_equal(acs_entry_waits(&s->w, scene_entry(s, writer))[1].value, 50);
    scene_close(s);
}

/* Readers were issued in another order than the program's: what counts is the order in the slot. */
static void insert_of_readers_issued_in_reverse_keeps_the_last_of_the_slot(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    for (int i = 0; i < ACS_REGION_READERS; i++)
        KERNEL(s, ACS_IN(AT(0), 64));
    for (acs_op op = ACS_REGION_READERS; op > 1; op--)
        scene_issue(s, op, 0);
    scene_issue(s, 1, 2);
    scene_issue(s, KERNEL(s, ACS_IN(AT(0), 64)), 1);

    acs_entry *writer = scene_entry(s, KERNEL(s, ACS_OUT(AT(0), 64)));

    assert_int_equal(writer->wait_mask, 7);
    assert_int_equal(acs_entry_waits(&s->w, writer)[0].value, ACS_REGION_READERS - 1);
    assert_int_equal(acs_entry_waits(&s->w, writer)[1].value, 1);
    assert_int_equal(acs_entry_waits(&s->w, writer)[2].value, 1);
    scene_close(s);
}

/* A batch under way may come back refused, so the op in it stands for nobody yet. */
static void insert_of_readers_keeps_one_whose_follower_in_the_slot_is_only_being_issued(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    for (int i = 0; i < ACS_REGION_READERS; i++)
        KERNEL(s, ACS_IN(AT(0), 64));
    for (acs_op op = 1; op < ACS_REGION_READERS; op++)
        scene_issue(s, op, 0);
    acs_entry *follower = scene_entry(s, ACS_REGION_READERS);
    follower->state = ACS_ENTRY_ISSUING;
    follower->slot = 0;
    follower->value = ACS_REGION_READERS;
    KERNEL(s, ACS_IN(AT(0), 64)); /* the list is full: it is compacted */
    follower->state = ACS_ENTRY_READY;
    follower->slot = -1;
    follower->value = 0;

    acs_entry *writer = scene_entry(s, KERNEL(s, ACS_OUT(AT(0), 64)));

    assert_int_equal(writer->wait_mask, 1);
    assert_int_equal(acs_entry_waits(&s->w, writer)[0].value, ACS_REGION_READERS - 1);
    scene_close(s);
}

/* The join before was made for an observer, so that nothing else stands between it and the second join. */
static void insert_of_a_second_join_over_part_writers_waits_for_the_first(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    for (int i = 0; i < 16; i++)
        KERNEL(s, ACS_OUT(AT(i * PART), PART));
    OBSERVE(s, ACS_IN(AT(0), 32 * PART));
    for (int i = 16; i < 32; i++)
        scene_issue(s, KERNEL(s, ACS_OUT(AT(i * PART), PART)), 0);
    acs_op reader = KERNEL(s, ACS_IN(AT(0), 32 * PART));
    assert_int_equal(s->w.counters.joins, 2);

    for (acs_op op = 1; op <= 16; op++) {
        assert_int_equal(scene_state(s, reader), ACS_ENTRY_PENDING);
        scene_issue(s, op, 1);
    }
    assert_int_equal(scene_state(s, reader), ACS_ENTRY_READY);
    assert_int_equal(scene_entry(s, reader)->wait_mask, 3);
    scene_close(s);
}

static void insert_of_part_writers_then_whole_readers_makes_linear_edges(void **state)
{
    (void)state;
    scene *s = scene_open(3 * MANY, false);
    for (int i = 0; i < MANY; i++)
        KERNEL(s, ACS_OUT(AT(i * PART), PART));
    assert_int_equal(edges(s), 0);
    for (int i = 0; i < MANY; i++)
        KERNEL(s, ACS_IN(AT(0), MANY * PART));
    assert_true(edges(s) <= 4 * MANY);
    uint64_t before = edges(s);

    KERNEL(s, ACS_OUT(AT(0), MANY * PART));

    assert_true(edges(s) - before <= 2 * MANY + ACS_REGION_READERS);
    scene_close(s);
}

static void insert_of_whole_readers_then_part_writers_makes_linear_edges(void **state)
{
    (void)state;
    scene *s = scene_open(3 * MANY, false);
    for (int i = 0; i < MANY; i++)
        KERNEL(s, ACS_IN(AT(0), MANY * PART));
    for (int i = 0; i < MANY; i++)
        KERNEL(s, ACS_OUT(AT(i * PART), PART));

    assert_true(edges(s) <= (2 + ACS_REGION_READERS) * MANY);
    scene_close(s);
}

/* ----------------------------------------------------------------------------------------- many readers and writers */

/* One block after the other, `count` from the `first` on, as an op reads or writes them. */
static uint32_t blocks(acs_segment *segments, acs_access access, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        segments[i] = acs_make_segment(ACS_EXTENT_BYTES, access, AT(64 * (first + i)), 64, 1, 0);
    return count;
}

static acs_op reader_of(scene *s, uint32_t first, uint32_t count, uint32_t writes)
{
    acs_segment segments[40];
    uint32_t all = blocks(segments, ACS_READ, first, count);
    all += blocks(segments + all, ACS_WRITE, writes, 1);
    return scene_insert(s, ACS_KIND_KERNEL, (acs_entry_traits){0}, segments, all);
}

/*
 * Layers of 32 in which each op reads all of the layer before: 32 x 32 edges, and as many between readers, but for
 * joins.
 */
static void insert_of_layers_that_read_all_of_the_one_before_makes_linear_edges(void **state)
{
    (void)state;
    scene *s = scene_open(256, false);
    for (uint32_t i = 0; i < 6 * 32; i++)
        (void)reader_of(s, i / 32 % 2 ? 0 : 32, 32, i % 64);

    assert_true(s->w.counters.edges <= 5 * 32 * 6);
    for (acs_op op = 33; op <= 64; op++)
        assert_int_equal(scene_state(s, op), ACS_ENTRY_PENDING);
    for (acs_op op = 1; op <= 32; op++)
        scene_issue(s, op, (int)(op % 4));
    for (acs_op op = 33; op <= 64; op++) {
        assert_int_equal(scene_state(s, op), ACS_ENTRY_READY);
        assert_int_equal(scene_entry(s, op)->wait_mask, 0xf);
    }
    assert_int_equal(scene_state(s, 65), ACS_ENTRY_PENDING);
    scene_close(s);
}

/* Ten regions, but one op that wrote them: nothing is gained by a join. */
static void insert_behind_one_writer_of_many_regions_makes_no_join(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    acs_segment segments[10];
    (void)scene_insert(s, ACS_KIND_KERNEL, (acs_entry_traits){0}, segments, blocks(segments, ACS_WRITE, 0, 10));
    for (uint32_t i = 0; i < 4; i++)
        (void)reader_of(s, 0, 10, 50 + i);
    assert_int_equal(s->w.counters.joins, 0);
    assert_int_equal(edges(s), 4);
    scene_close(s);
}

/* The join of many writers has heard of a failure whose memory was given out again: who is behind the others runs. */
static void insert_behind_what_is_left_of_a_failed_set_is_not_skipped(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    for (uint32_t i = 0; i < 12; i++)
        (void)reader_of(s, 100, 0, i);
    for (uint32_t i = 0; i < 3; i++)
        (void)reader_of(s, 0, 12, 50 + i);
    scene_fail(s, 12);
    acs_window_forget_block(&s->w, AT(0), 64 * 60);
    assert_int_equal(s->w.poisoned, 0);

    acs_op others = reader_of(s, 0, 11, 53);

    assert_int_equal(scene_state(s, others), ACS_ENTRY_PENDING);
    assert_int_equal(scene_entry(s, others)->failed_by, 0);
    for (acs_op op = 1; op <= 11; op++)
        scene_issue(s, op, 0);
    assert_int_equal(scene_state(s, others), ACS_ENTRY_READY);
    for (acs_op op = 13; op <= 15; op++)
        assert_int_not_equal(scene_state(s, op), ACS_ENTRY_READY); /* skipped, when what they are behind is over */
    scene_close(s);
}

/* ------------------------------------------------------------------------------------------------------- all memory */

static void insert_reading_all_memory_waits_for_writers_alone(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    KERNEL(s, ACS_IN(AT(0), 64));
    acs_op writer = KERNEL(s, ACS_OUT(AT(100), 64)), token = KERNEL(s, ACS_TOKEN(3));
    KERNEL0(s);

    acs_op all = KERNEL(s, ACS_ALL_MEMORY_IN);

    assert_int_equal(edges(s), 2);
    scene_issue(s, writer, 0);
    assert_int_equal(scene_state(s, all), ACS_ENTRY_PENDING);
    scene_issue(s, token, 0);
    assert_int_equal(scene_state(s, all), ACS_ENTRY_READY);
    scene_close(s);
}

static void insert_behind_a_reader_of_all_memory_waits_only_to_write(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    for (int i = 0; i < 20; i++)
        KERNEL(s, ACS_ALL_MEMORY_IN);
    uint64_t before = edges(s);

    acs_op reader = KERNEL(s, ACS_IN(AT(0), 64));
    assert_int_equal(edges(s), before);
    assert_int_equal(scene_state(s, reader), ACS_ENTRY_READY);
    acs_op writer = KERNEL(s, ACS_OUT(AT(100), 64));
    assert_in_range(edges(s) - before, 1, TUNE_ALL_READERS);
    for (acs_op op = 1; op <= 20; op++) {
        assert_int_equal(scene_state(s, writer), ACS_ENTRY_PENDING);
        scene_issue(s, op, 0);
    }
    assert_int_equal(scene_state(s, writer), ACS_ENTRY_READY);
    scene_close(s);
}

static void insert_of_an_op_that_may_touch_anything_orders_all_that_touch(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    KERNEL(s, ACS_IN(AT(0), 64));
    KERNEL(s, ACS_TOKEN(1));
    KERNEL0(s);
    acs_op any = scene_any(s);
    assert_int_equal(edges(s), 2);
    assert_int_equal(scene_state(s, any), ACS_ENTRY_PENDING);

    /* Everything later is behind it by one edge, and needs none to what was before it. */
    acs_op nothing = KERNEL0(s), reader = KERNEL(s, ACS_IN(AT(500), 1)), writer = KERNEL(s, ACS_OUT(AT(0), 64));
    acs_op token = KERNEL(s, ACS_TOKEN(1));
    assert_int_equal(edges(s), 2 + 3);
    assert_int_equal(scene_state(s, nothing), ACS_ENTRY_READY);
    assert_int_equal(scene_state(s, reader), ACS_ENTRY_PENDING);
    assert_int_equal(scene_state(s, writer), ACS_ENTRY_PENDING);
    assert_int_equal(scene_state(s, token), ACS_ENTRY_PENDING);

    /* A second one waits for what came since, and so for the first. */
    scene_any(s);
    assert_int_equal(edges(s), 2 + 3 + 4);
    scene_close(s);
}

static void insert_of_an_op_without_segments_may_come_first(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op nothing = KERNEL0(s), some = KERNEL(s, ACS_IN(AT(0), 64));
    assert_int_equal(scene_state(s, nothing), ACS_ENTRY_READY);
    assert_int_equal(scene_state(s, some), ACS_ENTRY_READY);
    scene_close(s);
}

static void insert_behind_an_ended_op_that_touched_anything_has_no_edge(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    KERNEL(s, ACS_OUT(AT(0), 64));
    scene_run(s, 1);
    scene_run(s, scene_any(s));

    acs_op reader = KERNEL(s, ACS_IN(AT(0), 64));

    assert_int_equal(edges(s), 0);
    assert_int_equal(scene_state(s, reader), ACS_ENTRY_READY);
    scene_close(s);
}

static void insert_of_an_observer_waits_and_is_waited_for_by_nobody(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op writer = KERNEL(s, ACS_OUT(AT(0), 64));
    acs_op observer = OBSERVE(s, ACS_INOUT(AT(0), 64));
    assert_int_equal(edges(s), 1);

    KERNEL(s, ACS_IN(AT(0), 64));
    scene_any(s);

    assert_int_equal(edges(s), 2 + 2); /* all to kernels */
    scene_issue(s, writer, 0);
    assert_int_equal(scene_state(s, observer), ACS_ENTRY_PENDING); /* retirement is what it waits for */
    scene_end(s, writer);
    assert_int_equal(s->status[observer], ACS_OK);
    scene_close(s);
}

static void insert_of_a_chain_counts_its_levels_also_after_ops_ended(void **state)
{
    (void)state;
    scene *s = scene_open(4, false);
    for (int i = 0; i < 10; i++)
        scene_run(s, KERNEL(s, ACS_INOUT(AT(0), 64)));
    for (int i = 0; i < 10; i++)
        scene_run(s, KERNEL(s, ACS_IN(AT(0), 64)));

    assert_int_equal(s->w.counters.levels, 11);
    scene_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(insert_of_an_op_without_segments_may_come_first),
        cmocka_unit_test(insert_with_only_a_raw_makes_one_edge),
        cmocka_unit_test(insert_with_only_a_war_makes_one_edge),
        cmocka_unit_test(insert_with_only_a_waw_makes_one_edge),
        cmocka_unit_test(insert_of_two_readers_makes_no_edge),
        cmocka_unit_test(insert_with_every_hazard_at_once_makes_one_edge),
        cmocka_unit_test(insert_with_part_overlap_makes_an_edge_only_where_bytes_meet),
        cmocka_unit_test(insert_of_tiles_of_one_pitch_makes_an_edge_only_where_bytes_meet),
        cmocka_unit_test(insert_of_tokens_orders_by_key_and_never_against_bytes),
        cmocka_unit_test(insert_of_empty_segments_makes_no_edge),
        cmocka_unit_test(insert_naming_an_upstream_op_many_times_makes_one_edge),
        cmocka_unit_test(insert_of_a_writer_behind_readers_has_no_edge_to_the_writer_before_them),
        cmocka_unit_test(insert_after_a_covering_write_depends_on_that_write_alone),
        cmocka_unit_test(insert_of_whole_readers_over_part_writers_shares_one_join),
        cmocka_unit_test(insert_of_many_readers_remembers_each_and_makes_no_join),
        cmocka_unit_test(insert_of_more_readers_than_are_remembered_makes_joins_and_a_writer_waits_for_each_reader),
        cmocka_unit_test(insert_of_readers_again_and_again_forgets_those_that_ended),
        cmocka_unit_test(insert_of_many_issued_readers_keeps_the_newest_of_each_slot),
        cmocka_unit_test(insert_of_readers_issued_in_reverse_keeps_the_last_of_the_slot),
        cmocka_unit_test(insert_of_readers_keeps_one_whose_follower_in_the_slot_is_only_being_issued),
        cmocka_unit_test(insert_of_a_second_join_over_part_writers_waits_for_the_first),
        cmocka_unit_test(insert_of_part_writers_then_whole_readers_makes_linear_edges),
        cmocka_unit_test(insert_of_whole_readers_then_part_writers_makes_linear_edges),
        cmocka_unit_test(insert_of_layers_that_read_all_of_the_one_before_makes_linear_edges),
        cmocka_unit_test(insert_behind_one_writer_of_many_regions_makes_no_join),
        cmocka_unit_test(insert_behind_what_is_left_of_a_failed_set_is_not_skipped),
        cmocka_unit_test(insert_reading_all_memory_waits_for_writers_alone),
        cmocka_unit_test(insert_behind_a_reader_of_all_memory_waits_only_to_write),
        cmocka_unit_test(insert_of_an_op_that_may_touch_anything_orders_all_that_touch),
        cmocka_unit_test(insert_behind_an_ended_op_that_touched_anything_has_no_edge),
        cmocka_unit_test(insert_of_an_observer_waits_and_is_waited_for_by_nobody),
        cmocka_unit_test(insert_of_a_chain_counts_its_levels_also_after_ops_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

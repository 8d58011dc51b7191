/*
 * The order of captured ops against brute force: what each op runs behind, over random programs with tiles, readers of
 * wholes and ops that touch everything; in windows that overflow; and that no edge is made which another one implies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "capture/capture_order.h"
#include "window/regions.h"

#include <string.h>

enum { OPS = 1000, NODES = 2 * OPS, SEGMENTS = 40, WORDS = (NODES + 63) / 64 };

typedef struct node {
    uint64_t before[WORDS]; /* nodes that a path leads from */
} node;

typedef struct taken {
    acs_segment segments[SEGMENTS];
    uint32_t count;
    bool any;
    const char *block;      /* handed out anew just before; NULL: none */
    bool reuse;             /* no op, but that: its one segment is the block */
    uint32_t node;          /* what it ends with; UINT32_MAX: it became none */
    acs_nodes ends;
    uint64_t conflicts[(OPS + 63) / 64]; /* ops that a path of conflicts leads from */
} taken;

static node g_nodes[NODES];
static uint32_t g_node_count, g_edges, g_join_nodes;
static taken g_ops[OPS];
static uint32_t g_op_count;
static bool g_refuse_joins;

static void bit_set(uint64_t *words, uint32_t bit)
{
    words[bit / 64] |= 1ull << (bit % 64);
}

static bool bit_get(const uint64_t *words, uint32_t bit)
{
    return words[bit / 64] >> (bit % 64) & 1;
}

/* Nodes are numbers from 1, as pointers. */
static uint32_t number_of(const void *pointer)
{
    return (uint32_t)(uintptr_t)pointer - 1;
}

static void *node_new(const acs_nodes *behind)
{
    node *made = &g_nodes[g_node_count++];
    memset(made, 0, sizeof *made);
    for (uint32_t i = 0; i < behind->count; i++) {
        uint32_t up = number_of(behind->list[i]);
        assert_true(up < g_node_count - 1);
        for (uint32_t j = 0; j < i; j++)
            assert_ptr_not_equal(behind->list[i], behind->list[j]);
        bit_set(made->before, up);
        for (uint32_t w = 0; w < WORDS; w++)
            made->before[w] |= g_nodes[up].before[w];
    }
    g_edges += behind->count;
    return (void *)(uintptr_t)g_node_count;
}

static acs_status join(void *user, const acs_nodes *behind, acs_nodes *end)
{
    (void)user;
    if (g_refuse_joins)
        return ACS_ERR_LAUNCH;
    g_join_nodes++;
    return acs_nodes_add(end, node_new(behind)) ? ACS_OK : ACS_ERR_MEMORY;
}

static acs_capture_order *order_new(uint32_t limit, bool in_order)
{
    const acs_capture_order_config config = {.limit = limit, .in_order = in_order, .join = join};
    acs_capture_order *order = NULL;
    for (uint32_t i = 0; i < g_op_count; i++)
        acs_nodes_fini(&g_ops[i].ends);
    memset(g_ops, 0, sizeof g_ops);
    g_node_count = g_edges = g_join_nodes = g_op_count = 0;
    g_refuse_joins = false;
    assert_int_equal(acs_capture_order_create(&config, &order), ACS_OK);
    return order;
}

static bool segments_conflict(const acs_segment *a, const acs_segment *b)
{
    acs_shape x, y;
    if (!((a->access | b->access) & ACS_WRITE))
        return false;
    if (a->extent == ACS_EXTENT_ALL || b->extent == ACS_EXTENT_ALL)
        return (a->extent == ACS_EXTENT_ALL || acs_shape_of(a, &x) == ACS_OK) &&
               (b->extent == ACS_EXTENT_ALL || acs_shape_of(b, &y) == ACS_OK);
    return acs_shape_of(a, &x) == ACS_OK && acs_shape_of(b, &y) == ACS_OK && acs_shape_overlap(&x, &y);
}

static bool conflict(const taken *a, const taken *b)
{
    if (a->any || b->any)
        return (a->any || a->count) && (b->any || b->count);
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < b->count; j++) {
            /* Who reads all memory has no block in hand, so former readers of one are nothing to it. */
            if (a->reuse && b->segments[j].extent == ACS_EXTENT_ALL && !(b->segments[j].access & ACS_WRITE))
                continue;
            if (segments_conflict(&a->segments[i], &b->segments[j]))
                return true;
        }
    return false;
}

static void note_conflicts(taken *op)
{
    uint32_t self = (uint32_t)(op - g_ops);
    for (uint32_t i = 0; i < self; i++)
        if (conflict(&g_ops[i], op)) {
            bit_set(op->conflicts, i);
            for (uint32_t w = 0; w < (OPS + 63) / 64; w++)
                op->conflicts[w] |= g_ops[i].conflicts[w];
        }
}

static bool reached(const acs_nodes *behind, const void *end)
{
    for (uint32_t i = 0; i < behind->count; i++)
        if (behind->list[i] == end || bit_get(g_nodes[number_of(behind->list[i])].before, number_of(end)))
            return true;
    return false;
}

/* CAP-1: every op that it conflicts with lies behind it. */
static void check_sound(const taken *op, const acs_nodes *behind)
{
    uint32_t self = (uint32_t)(op - g_ops);
    for (uint32_t i = 0; i < self; i++)
        for (uint32_t j = 0; bit_get(op->conflicts, i) && j < g_ops[i].ends.count; j++)
            if (!reached(behind, g_ops[i].ends.list[j]))
                fail_msg("op %u is not behind op %u", self, i);
}

/* CAP-1: nothing else does. */
static void check_precise(const taken *op, const acs_nodes *behind)
{
    uint32_t self = (uint32_t)(op - g_ops);
    for (uint32_t i = 0; i < self; i++)
        if (g_ops[i].node != UINT32_MAX && !bit_get(op->conflicts, i) &&
            reached(behind, (void *)(uintptr_t)(g_ops[i].node + 1)))
            fail_msg("op %u is behind op %u without need", self, i);
}

/* CAP-2. */
static void check_reduced(const acs_nodes *behind)
{
    for (uint32_t i = 0; i < behind->count; i++)
        for (uint32_t j = 0; j < behind->count; j++)
            if (i != j && bit_get(g_nodes[number_of(behind->list[i])].before, number_of(behind->list[j])))
                fail_msg("an edge to node %u, which node %u is behind", number_of(behind->list[j]),
                         number_of(behind->list[i]));
}

enum { PRECISE = 1, REDUCED = 2, OBSERVER = 4, NO_NODE = 8 };

enum { BLOCK = 256 };

/* Who touches the block from the next op on is behind all that touched it before. */
static void reuse(acs_record *record, acs_reuse *life, const char *block)
{
    taken *op = &g_ops[g_op_count];
    *op = (taken){.segments = {ACS_INOUT(block, BLOCK)}, .count = 1, .reuse = true, .node = UINT32_MAX};
    note_conflicts(op);
    g_op_count++;
    *life = (acs_reuse){.base = (uint64_t)(uintptr_t)block, .bytes = BLOCK};
    record->reuses = life;
    record->flags |= ACS_RECORD_REUSES;
}

static void take(acs_capture_order *order, const taken *what, int flags)
{
    static const acs_site site = {"op", "file.c", 1};
    acs_nodes behind = {NULL, 0, 0}, end = {NULL, 0, 0};
    uint64_t number = 0;
    acs_segment segments[SEGMENTS];
    acs_reuse life;
    memcpy(segments, what->segments, sizeof segments);
    acs_record record = {.kind = ACS_KIND_KERNEL, .site = &site, .segments = segments, .segment_count = what->count,
                         .any = what->any};
    if (what->block)
        reuse(&record, &life, what->block);
    taken *op = &g_ops[g_op_count];
    *op = *what;
    note_conflicts(op);
    assert_int_equal(acs_capture_order_take(order, &record, flags & OBSERVER, &behind), ACS_OK);
    memset(segments, 0xff, sizeof segments); /* the record is not kept */
    check_sound(op, &behind);
    if (flags & PRECISE)
        check_precise(op, &behind);
    if (flags & REDUCED)
        check_reduced(&behind);
    if (!(flags & OBSERVER)) {
        op->node = UINT32_MAX;
        if (flags & NO_NODE) {
            op->ends = behind;
            behind = (acs_nodes){NULL, 0, 0};
        } else {
            assert_true(acs_nodes_add(&end, node_new(&behind)));
            op->node = g_node_count - 1;
            op->ends = end;
        }
        g_op_count++;
        assert_int_equal(acs_capture_order_put(order, &op->ends, &number), ACS_OK);
    }
    acs_nodes_fini(&behind);
}

static taken with(const acs_segment *segments, uint32_t count)
{
    taken op = {.count = count};
    memcpy(op.segments, segments, count * sizeof *segments);
    return op;
}

#define TAKE(order, flags, ...)                                                                                        \
    do {                                                                                                               \
        const acs_segment list[] = {__VA_ARGS__};                                                                      \
        taken op = with(list, sizeof list / sizeof list[0]);                                                           \
        take(order, &op, flags);                                                                                       \
    } while (0)

static char *at(uint32_t offset)
{
    return (char *)(uintptr_t)(0x10000 + offset);
}

/* ---------------------------------------------------------------------------------------------------------- random */

static uint64_t g_random;

static uint32_t below(uint32_t n)
{
    g_random = g_random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((g_random >> 33) % n);
}

static acs_segment random_segment(uint32_t buffers)
{
    const acs_access access = (acs_access)(1 + below(3));
    char *buffer = at(below(buffers) * 256);
    switch (below(8)) {
    case 0: return acs_make_segment(ACS_EXTENT_BYTES, access, (uint64_t)(uintptr_t)buffer, 8, 4, 32);
    case 1: return ACS_BYTES_(access, buffer, 256);
    case 2: return acs_make_segment(ACS_EXTENT_TOKEN, access, below(4), 0, 0, 0);
    case 3: return ACS_IN(at(0), buffers * 256);
    default: return ACS_BYTES_(access, buffer + 16 * below(16), 16);
    }
}

static void run_random(uint64_t seed, uint32_t limit, uint32_t ops, int flags)
{
    g_random = seed;
    acs_capture_order *order = order_new(limit, false);
    uint32_t buffers = 1 + below(24), segments = 1 + below(6);
    g_refuse_joins = seed % 5 == 0;
    for (uint32_t i = 0; i < ops; i++) {
        taken op = {.count = below(segments + 1), .any = below(200) == 0};
        for (uint32_t s = 0; s < op.count; s++)
            op.segments[s] = random_segment(buffers);
        if (below(300) == 0)
            op.segments[0] = below(2) ? ACS_ALL_MEMORY : ACS_ALL_MEMORY_IN;
        const int observer = below(20) == 0 ? OBSERVER : 0;
        /* A block's new life orders more than it must: also who touches other parts of a larger block from before. */
        if (!observer && !(flags & PRECISE) && seed % 2 && below(8) == 0)
            op.block = at(below(buffers) * BLOCK);
        take(order, &op, flags | observer | (below(30) == 0 ? NO_NODE : 0));
    }
    acs_capture_order_destroy(order);
}

static void random_programs_are_ordered_by_their_conflicts_and_no_more(void **state)
{
    (void)state;
    /* Shorter than the reach, and without nodes for joins: every edge is then needed, and none is missing. */
    for (uint64_t seed = 0; seed < 100; seed += 5)
        run_random(seed, 2048, 300, PRECISE | REDUCED);
    for (uint64_t seed = 1; seed < 14; seed++)
        run_random(seed, 2048, 300, 0);
}

static void long_programs_lose_no_order_in_small_windows(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 14; seed++)
        run_random(seed, 1 + (uint32_t)(seed % 20), 300, 0);
    run_random(7, 64, 600, 0);
    run_random(10, 2048, 560, PRECISE);
}

/* --------------------------------------------------------------------------------------------------------- by hand */

static void ops_that_were_overwritten_leave_the_window(void **state)
{
    (void)state;
    acs_capture_order *order = order_new(8, false);
    for (uint32_t i = 0; i < OPS; i++) {
        char *chain = at(64 * (i % 4));
        TAKE(order, PRECISE | REDUCED, ACS_INOUT(chain, 64));
    }
    assert_int_equal(g_join_nodes, 0);
    assert_int_equal(g_edges, OPS - 4); /* four chains, whatever their length */
    acs_capture_order_destroy(order);
}

static void window_that_overflows_puts_one_node_behind_all(void **state)
{
    (void)state;
    acs_capture_order *order = order_new(16, false);
    for (uint32_t i = 0; i < 40; i++)
        TAKE(order, REDUCED, ACS_OUT(at(64 * i), 64));
    assert_int_equal(g_join_nodes, 2);
    assert_int_equal(g_edges, 16 + 15 + 15 + 9);
    acs_capture_order_destroy(order);
}

/* 64 parts, read as a whole by many: a node stands for the parts from the second reader on. */
static void wholes_that_are_read_often_get_a_node_for_their_parts(void **state)
{
    (void)state;
    acs_capture_order *order = order_new(2048, false);
    for (uint32_t i = 0; i < 64; i++)
        TAKE(order, PRECISE, ACS_OUT(at(64 * i), 64));
    for (uint32_t i = 0; i < 100; i++)
        TAKE(order, PRECISE, ACS_IN(at(0), 64 * 64), ACS_OUT(at(8192 + 64 * i), 64));
    assert_int_equal(g_join_nodes, 1);
    assert_int_equal(g_edges, 64 + 64 + 99);
    TAKE(order, 0, ACS_ALL_MEMORY); /* behind the readers, and so behind the parts */
    assert_int_equal(g_edges, 64 + 64 + 99 + 100);
    acs_capture_order_destroy(order);
}

/* Many readers become a join, which an op that touches everything does not look at: so they have to be there themselves. */
static void readers_that_only_a_join_stands_for_stay_in_the_window(void **state)
{
    (void)state;
    for (int observers = 0; observers < 3; observers++) {
        acs_capture_order *order = order_new(2048, false);
        for (uint32_t i = 0; i < 50; i++)
            TAKE(order, PRECISE, ACS_IN(at(0), 64));
        for (int i = 0; i < observers; i++)
            TAKE(order, OBSERVER, ACS_INOUT(at(0), 64));
        for (uint32_t i = 1; i < 200; i++)
            TAKE(order, PRECISE, ACS_OUT(at(64 * i), 64));
        TAKE(order, 0, ACS_ALL_MEMORY);
        acs_capture_order_destroy(order);
    }
}

/* More than the window holds: nothing has to make room for them. */
static void observers_take_no_place(void **state)
{
    (void)state;
    acs_capture_order *order = order_new(32, false);
    TAKE(order, PRECISE, ACS_OUT(at(0), 64));
    for (uint32_t i = 0; i < 500; i++)
        TAKE(order, OBSERVER, ACS_INOUT(at(0), 64));
    assert_int_equal(g_join_nodes, 0);
    TAKE(order, PRECISE, ACS_OUT(at(0), 64));
    acs_capture_order_destroy(order);
}

static void in_order_every_op_is_behind_the_one_before(void **state)
{
    (void)state;
    acs_capture_order *order = order_new(2048, true);
    for (uint32_t i = 0; i < 100; i++)
        TAKE(order, REDUCED, ACS_OUT(at(64 * i), 64));
    assert_int_equal(g_edges, 99);
    assert_int_equal(g_join_nodes, 0);
    acs_capture_order_destroy(order);
}

static void ops_that_touch_nothing_are_behind_nothing_and_do_not_fill_the_window(void **state)
{
    (void)state;
    acs_capture_order *order = order_new(4, false);
    for (uint32_t i = 0; i < 200; i++)
        TAKE(order, PRECISE, ACS_OUT(at(0), 0));
    assert_int_equal(g_edges, 0);
    assert_int_equal(g_join_nodes, 0);
    acs_capture_order_destroy(order);
}

static void op_of_too_many_segments_is_behind_everything(void **state)
{
    enum { MANY = 1000 };
    static acs_segment many[MANY];
    acs_record record = {.kind = ACS_KIND_KERNEL, .segments = many, .segment_count = MANY};
    acs_nodes behind = {NULL, 0, 0}, end = {NULL, 0, 0};
    uint64_t number;
    (void)state;
    acs_capture_order *order = order_new(4, false);
    TAKE(order, 0, ACS_OUT(at(1 << 20), 64));
    for (uint32_t i = 0; i < MANY; i++)
        many[i] = ACS_OUT(at(64 * i), 64);
    assert_int_equal(acs_capture_order_take(order, &record, false, &behind), ACS_OK);
    assert_true(reached(&behind, g_ops[0].ends.list[0]));
    assert_true(acs_nodes_add(&end, node_new(&behind)));
    assert_int_equal(acs_capture_order_put(order, &end, &number), ACS_OK);
    const acs_segment part = ACS_IN(at(64 * 500), 64);
    acs_record reader = {.kind = ACS_KIND_KERNEL, .segments = (acs_segment *)(uintptr_t)&part, .segment_count = 1};
    assert_int_equal(acs_capture_order_take(order, &reader, true, &behind), ACS_OK);
    assert_true(reached(&behind, end.list[0]));
    assert_true(acs_capture_order_implies(order, number));
    acs_nodes_fini(&behind);
    acs_nodes_fini(&end);
    acs_capture_order_destroy(order);
}

/* Ops that left the window have not ended: who is behind the rest of a set is not behind them. */
static void join_of_many_is_not_used_when_one_of_them_has_left(void **state)
{
    (void)state;
    acs_capture_order *order = order_new(2048, false);
    taken reader = {.count = 10};
    for (uint32_t i = 0; i < 10; i++)
        TAKE(order, PRECISE, ACS_OUT(at(64 * i), 64));
    for (uint32_t i = 0; i < 10; i++)
        reader.segments[i] = ACS_IN(at(64 * i), 64);
    for (int k = 0; k < 3; k++)
        take(order, &reader, PRECISE);
    TAKE(order, PRECISE, ACS_OUT(at(0), 64));
    for (uint32_t i = 0; i < 200; i++) /* until the window is swept */
        TAKE(order, PRECISE, ACS_INOUT(at(65536), 64));
    reader.count = 9;
    for (uint32_t i = 1; i < 10; i++)
        reader.segments[i - 1] = ACS_IN(at(64 * i), 64);
    take(order, &reader, PRECISE);
    acs_capture_order_destroy(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_are_ordered_by_their_conflicts_and_no_more),
        cmocka_unit_test(long_programs_lose_no_order_in_small_windows),
        cmocka_unit_test(ops_that_were_overwritten_leave_the_window),
        cmocka_unit_test(window_that_overflows_puts_one_node_behind_all),
        cmocka_unit_test(wholes_that_are_read_often_get_a_node_for_their_parts),
        cmocka_unit_test(readers_that_only_a_join_stands_for_stay_in_the_window),
        cmocka_unit_test(observers_take_no_place),
        cmocka_unit_test(in_order_every_op_is_behind_the_one_before),
        cmocka_unit_test(ops_that_touch_nothing_are_behind_nothing_and_do_not_fill_the_window),
        cmocka_unit_test(op_of_too_many_segments_is_behind_everything),
        cmocka_unit_test(join_of_many_is_not_used_when_one_of_them_has_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

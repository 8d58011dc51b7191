/*
 * Unit tests of groups/liveness: programs whose least memory is known, and random ones against what a plan promises (LIVE-1,
 * LIVE-2, LIVE-3), looked at pair by pair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "groups/liveness.h"

#include <stdlib.h>
#include <string.h>

enum { OPS = 48, BLOCKS = 40, UNIT = 256 };

typedef struct program {
    acs_op_sets before;
    bool soon[OPS];
    acs_live_block blocks[BLOCKS];
    uint32_t users[BLOCKS][OPS];
    uint32_t order[OPS], slot[OPS], rank[OPS];
    acs_liveness plan;
} program;

static program *program_of(uint32_t ops, uint32_t blocks)
{
    program *p = calloc(1, sizeof *p);
    assert_non_null(p);
    assert_int_equal(acs_op_sets_create(&p->before, ops, ops), ACS_OK);
    p->plan = (acs_liveness){.before = &p->before, .soon = p->soon, .blocks = p->blocks, .block_count = blocks,
                             .order = p->order, .slot = p->slot};
    for (uint32_t b = 0; b < blocks; b++)
        p->blocks[b] = (acs_live_block){.bytes = UNIT, .users = p->users[b]};
    return p;
}

static void use(program *p, uint32_t op, uint32_t b)
{
    p->users[b][p->blocks[b].user_count++] = op;
}

static void release(program *p)
{
    acs_op_sets_destroy(&p->before);
    free(p);
}

/* By what the program says, and by slots if the plan was to look at them, each in the plan's order. */
static bool behind(const program *p, uint32_t op, uint32_t up)
{
    bool reached[OPS] = {false};
    if (p->rank[up] >= p->rank[op])
        return false;
    reached[up] = true;
    for (uint32_t i = p->rank[up] + 1; i <= p->rank[op]; i++) {
        uint32_t at = p->order[i];
        bool first = true;
        for (uint32_t k = i; k-- > p->rank[up] && !reached[at];) {
            uint32_t other = p->order[k];
            bool same = p->plan.slots && p->slot[other] == p->slot[at] && first;
            first &= p->slot[other] != p->slot[at];
            reached[at] = reached[other] && (same || acs_op_set_has(acs_op_set(&p->before, at), other));
        }
    }
    return reached[op];
}

static bool all_behind(const program *p, const acs_live_block *later, const acs_live_block *earlier)
{
    for (uint32_t i = 0; i < later->user_count; i++)
        for (uint32_t k = 0; k < earlier->user_count; k++)
            if (!behind(p, later->users[i], earlier->users[k]))
                return false;
    return true;
}

/* Of blocks in one place one is all behind the other, and only the later one takes it over. */
static void check_block(const program *p, const acs_live_block *b)
{
    bool taken_over = false;
    for (uint32_t i = 0; i < p->plan.block_count; i++) {
        const acs_live_block *a = &p->blocks[i];
        if (a == b || a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset)
            continue;
        bool later = all_behind(p, b, a);
        assert_true(later || all_behind(p, a, b));
        taken_over |= later;
    }
    assert_true(b->taken_over || !taken_over);
}

static void plan_and_check(program *p, uint32_t slots)
{
    const uint32_t ops = p->before.count;
    p->plan.slots = slots;
    assert_int_equal(acs_liveness_plan(&p->plan), ACS_OK);
    memset(p->rank, 0xff, sizeof p->rank);
    for (uint32_t i = 0; i < ops; i++) {
        assert_true(p->order[i] < ops);
        assert_int_equal(p->rank[p->order[i]], UINT32_MAX); /* once */
        p->rank[p->order[i]] = i;
        assert_true(!slots || p->slot[p->order[i]] < slots);
    }
    for (uint32_t op = 0; op < ops; op++)
        for (uint32_t up = 0; up < op; up++)
            if (acs_op_set_has(acs_op_set(&p->before, op), up))
                assert_true(p->rank[up] < p->rank[op]);
    uint64_t sum = 0;
    for (uint32_t b = 0; b < p->plan.block_count; b++) {
        sum += (p->blocks[b].bytes + UNIT - 1) / UNIT * UNIT;
        assert_int_equal(p->blocks[b].offset % UNIT, 0);
        assert_true(p->blocks[b].offset + p->blocks[b].bytes <= p->plan.peak);
        check_block(p, &p->blocks[b]);
    }
    assert_int_equal(p->plan.sum, sum);
    assert_true(p->plan.peak <= sum && p->plan.bound <= sum);
}

/* Each op reads what the one before it wrote: two blocks take turns. */
static void a_chain_takes_two_blocks(void **state)
{
    (void)state;
    program *p = program_of(10, 11);
    for (uint32_t op = 0; op < 10; op++) {
        if (op)
            acs_op_sets_behind(&p->before, op, op - 1);
        use(p, op, op);
        use(p, op, op + 1);
    }
    plan_and_check(p, 0);
    assert_int_equal(p->plan.peak, 2 * UNIT);
    assert_int_equal(p->plan.bound, 2 * UNIT);
    assert_int_equal(p->plan.sum, 11 * UNIT);
    release(p);
}

/* Copy in, compute, copy out, six times, side by side: the copies come first and last in the program. */
static void streams_side_by_side_share_by_slots_alone(void **state)
{
    (void)state;
    enum { STREAMS = 6 };
    program *p = program_of(3 * STREAMS, 2 * STREAMS);
    for (uint32_t k = 0; k < STREAMS; k++) {
        acs_op_sets_behind(&p->before, STREAMS + k, k);
        acs_op_sets_behind(&p->before, 2 * STREAMS + k, STREAMS + k);
        p->soon[2 * STREAMS + k] = true;
        use(p, k, 2 * k);
        use(p, STREAMS + k, 2 * k);
        use(p, STREAMS + k, 2 * k + 1);
        use(p, 2 * STREAMS + k, 2 * k + 1);
    }
    plan_and_check(p, 0);
    assert_int_equal(p->plan.peak, 2 * STREAMS * UNIT);
    plan_and_check(p, 2);
    assert_int_equal(p->plan.peak, 4 * UNIT);
    assert_int_equal(p->plan.bound, 4 * UNIT);
    plan_and_check(p, 1);
    assert_int_equal(p->plan.peak, 2 * UNIT);
    for (uint32_t k = 0; k < STREAMS; k++) { /* one after the other, not all copies first */
        assert_int_equal(p->order[3 * k], k);
        assert_int_equal(p->order[3 * k + 1], STREAMS + k);
        assert_int_equal(p->order[3 * k + 2], 2 * STREAMS + k);
    }
    release(p);
}

/* A tree, level by level in the program: what is done by depth has few blocks at a time. */
static void a_tree_is_gone_through_by_depth(void **state)
{
    (void)state;
    program *p = program_of(15, 15); /* op i writes block i; 0 to 7 read nothing, 8 + k reads 2 k and 2 k + 1 */
    for (uint32_t op = 0; op < 15; op++) {
        use(p, op, op);
        for (uint32_t i = 0; i < 2 && op >= 8; i++)
            acs_op_sets_behind(&p->before, op, 2 * (op - 8) + i);
    }
    for (uint32_t op = 8; op < 15; op++)
        for (uint32_t i = 0; i < 2; i++)
            use(p, op, 2 * (op - 8) + i);
    plan_and_check(p, 1);
    assert_int_equal(p->plan.peak, 5 * UNIT); /* 3 that wait, one more, and where they are put together */
    plan_and_check(p, 0);
    assert_true(p->plan.peak <= 12 * UNIT);
    release(p);
}

static uint32_t below(uint64_t *random, uint32_t n)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*random >> 33) % n);
}

static void random_programs_keep_the_promises(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (uint32_t round = 0; round < 400; round++) {
        uint32_t ops = 1 + below(&random, OPS), blocks = below(&random, BLOCKS), edges = below(&random, 4);
        program *p = program_of(ops, blocks);
        for (uint32_t op = 1; op < ops; op++) {
            for (uint32_t i = 0; i < edges; i++)
                acs_op_sets_behind(&p->before, op, below(&random, op));
            p->soon[op] = below(&random, 4) == 0;
        }
        for (uint32_t b = 0; b < blocks; b++) {
            p->blocks[b].bytes = 1 + below(&random, 5 * UNIT);
            uint32_t first = below(&random, ops), span = 1 + below(&random, 6);
            for (uint32_t op = first; op < ops && op < first + span; op++)
                if (op == first || below(&random, 2))
                    use(p, op, b);
        }
        plan_and_check(p, below(&random, 6));
        release(p);
    }
}

static void nothing_is_a_plan_too(void **state)
{
    (void)state;
    program *p = program_of(0, 0);
    plan_and_check(p, 0);
    assert_int_equal(p->plan.peak, 0);
    release(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_takes_two_blocks),
        cmocka_unit_test(streams_side_by_side_share_by_slots_alone),
        cmocka_unit_test(a_tree_is_gone_through_by_depth),
        cmocka_unit_test(random_programs_keep_the_promises),
        cmocka_unit_test(nothing_is_a_plan_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

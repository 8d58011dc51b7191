/*
 * Contexts that share a device through the ledger: what a program keeps is not waited for by others, and nobody waits for
 * one that waits for it. Each context here could be a process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admission_fixture.h"

#include "base/tuning.h"

static const size_t PIECE = (size_t)512 << 10; /* four of them in a chunk */

static void stream_pieces(acs_context *context, int groups)
{
    static unsigned char seen;
    for (int i = 0; i < groups; i++) {
        assert_int_equal(acs_group_begin(context, 0), ACS_OK);
        unsigned char *block = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, PIECE);
        acs_memset(context, block, 1, 64);
        acs_memcpy(context, &seen, block, 1);
        acs_free(context, block);
        assert_int_equal(acs_group_submit(context, NULL, NULL), ACS_OK);
    }
}

/* A chunk with a block in it stays, and so do the pieces beside that: to wait until they go would be for ever. */
static void pieces_beside_blocks_are_kept(void **state)
{
    enum { PIECES = 12, CHUNK = 4 };
    (void)state;
    for (int devices = 1; devices <= 2; devices++) {
        latecomer late;
        acs_context *a = open_on(devices, 1), *other = open_on(devices, 1);
        unsigned char *kept[2][PIECES], *rest[2];
        for (int d = 0; d < devices; d++) {
            assert_int_equal(acs_on(a, d), ACS_OK);
            for (int i = 0; i < PIECES; i++)
                kept[d][i] = block_of(a, ACS_MEMORY_DEVICE, PIECE);
            for (int i = 0; i < PIECES; i++)
                if (i % CHUNK)
                    acs_free(a, kept[d][i]);
            assert_int_equal(acs_on(other, d), ACS_OK);
            rest[d] = block_of(other, ACS_MEMORY_DEVICE, TOTAL_MIB * MIB - PIECES / CHUNK * 2 * MIB);
        }
        assert_int_equal(acs_sync(a), ACS_OK);
        begin_late(&late, devices, 2);
        stream_pieces(a, 4 * devices * TUNE_LEDGER_PASSES);
        assert_int_equal(waiting_now(), devices);
        assert_int_equal(acs_sync(a), ACS_OK);
        for (int d = 0; d < devices; d++)
            acs_free(other, rest[d]);
        assert_int_equal(acs_sync(other), ACS_OK);
        end_late(&late);
        assert_int_equal(acs_close(a), ACS_OK);
        assert_int_equal(acs_close(other), ACS_OK);
    }
}

/* What a group gave back, behind an op that runs, and acs_malloc hands out again: others do not wait for that, either. */
static void what_is_handed_out_again_is_kept(void **state)
{
    (void)state;
    latecomer late;
    acs_context *a = open_sharing(1), *b = open_sharing(1);
    atomic_store_explicit(&g_go, 0, memory_order_release); /* pairs with gate_body */
    submit_gate(a, 40 * MIB);
    unsigned char *again = block_of(a, ACS_MEMORY_DEVICE, 40 * MIB);
    unsigned char *kept = block_of(b, ACS_MEMORY_DEVICE, 4096);
    assert_int_equal(statistics_of(a).memory_live, 40 * MIB);
    begin_late(&late, 1, 36);
    stream(b, 8, 4 * TUNE_LEDGER_PASSES);
    assert_int_equal(waiting_now(), 1);
    atomic_store_explicit(&g_go, 1, memory_order_release); /* pairs with gate_body */
    acs_free(a, again);
    assert_int_equal(acs_sync(a), ACS_OK);
    assert_int_equal(acs_sync(b), ACS_OK);
    end_late(&late);
    acs_free(b, kept);
    assert_int_equal(acs_close(a), ACS_OK);
    assert_int_equal(acs_close(b), ACS_OK);
}

/* A program without groups that is always busy never looks whether others wait: nobody waits for what lies idle there. */
static void who_makes_no_groups_is_not_waited_for(void **state)
{
    (void)state;
    latecomer late;
    acs_context *busy = open_sharing(1), *b = open_sharing(1);
    unsigned char *small = block_of(busy, ACS_MEMORY_DEVICE, 4096), *idle = block_of(busy, ACS_MEMORY_DEVICE, 40 * MIB);
    atomic_store_explicit(&g_go, 0, memory_order_release); /* pairs with gate_body */
    ACS_LAUNCH_ON(busy, &g_gate, 100, 64, 0, ACS_ARGS(small), ACS_USES(ACS_OUT(small, 4096)));
    acs_free(busy, idle);
    unsigned char *more = block_of(busy, ACS_MEMORY_DEVICE, 4096);
    begin_late(&late, 1, 36);
    stream(b, 8, 4 * TUNE_LEDGER_PASSES);
    assert_int_equal(waiting_now(), 1);
    atomic_store_explicit(&g_go, 1, memory_order_release); /* pairs with gate_body */
    assert_int_equal(acs_sync(busy), ACS_OK);
    assert_int_equal(acs_sync(b), ACS_OK);
    end_late(&late);
    acs_free(busy, small);
    acs_free(busy, more);
    assert_int_equal(acs_close(busy), ACS_OK);
    assert_int_equal(acs_close(b), ACS_OK);
}

/* Pieces that could not go may go once the blocks beside them were freed, whatever else was taken since. */
static void pieces_go_when_what_was_beside_them_is_freed(void **state)
{
    enum { PIECES = 12, CHUNK = 4 };
    (void)state;
    latecomer late;
    acs_context *a = open_sharing(0), *other = open_sharing(1);
    unsigned char *pieces[PIECES];
    for (int i = 0; i < PIECES; i++)
        pieces[i] = block_of(a, ACS_MEMORY_DEVICE, PIECE);
    for (int i = 0; i < PIECES; i++)
        if (i % CHUNK)
            acs_free(a, pieces[i]);
    assert_int_equal(acs_sync(a), ACS_OK); /* from here on it is known what cannot go */
    unsigned char *kept = block_of(a, ACS_MEMORY_DEVICE, 4 * MIB);
    acs_memset(a, kept, 1, 64); /* with nothing under way they went at once */
    for (int i = 0; i < PIECES; i += CHUNK)
        acs_free(a, pieces[i]);
    unsigned char *rest = block_of(other, ACS_MEMORY_DEVICE, (TOTAL_MIB - 12) * MIB);
    begin_late(&late, 1, 6);
    stream_pieces(a, 2 * TUNE_LEDGER_PASSES);
    const uint64_t waiting = waiting_now();
    assert_int_equal(acs_sync(a), ACS_OK);
    end_late(&late);
    assert_int_equal(waiting, 0);
    acs_free(a, kept);
    acs_free(other, rest);
    assert_int_equal(acs_close(a), ACS_OK);
    assert_int_equal(acs_close(other), ACS_OK);
}

/* Passed often enough, but what it waits for is kept: newcomers, and others that wait and will have room, come before. */
static void who_will_have_no_room_is_in_nobodys_way(void **state)
{
    (void)state;
    latecomer hopeless, late = {.mib = 34};
    unsigned char seen;
    acs_context *a = open_sharing(0), *newcomer = open_sharing(0);
    unsigned char *kept = block_of(a, ACS_MEMORY_DEVICE, 10 * MIB);
    stream(a, 30, 3);
    begin_late(&hopeless, 1, 60);
    stream(a, 30, 2 * TUNE_LEDGER_PASSES);
    unsigned char *block = block_of(newcomer, ACS_MEMORY_DEVICE, 5 * MIB);
    acs_free(newcomer, block);
    assert_int_equal(acs_sync(newcomer), ACS_OK);
    assert_int_equal(statistics_of(newcomer).memory_reserved, 0);
    assert_int_equal(submit_large(newcomer, 5, &seen, 9), ACS_OK);
    assert_int_equal(acs_close(newcomer), ACS_OK);
    late.context = open_sharing(1);
    assert_int_equal(pthread_create(&late.thread, NULL, come_late, &late), 0);
    while (waiting_now() < 2)
        sched_yield();
    stream(a, 30, TUNE_LEDGER_PASSES + 1);
    const uint64_t waiting = waiting_now();
    assert_int_equal(acs_sync(a), ACS_OK);
    end_late(&late);
    assert_int_equal(waiting, 1);
    acs_free(a, kept);
    assert_int_equal(acs_sync(a), ACS_OK);
    end_late(&hopeless);
    assert_int_equal(acs_close(a), ACS_OK);
}

/* What allocations lack is told with who has it. */
static void errors_tell_what_other_programs_have(void **state)
{
    (void)state;
    acs_context *a = open_sharing(0), *b = open_sharing(0);
    void *none = NULL;
    unsigned char *held = block_of(a, ACS_MEMORY_DEVICE, 40 * MIB);
    assert_int_equal(acs_malloc(b, 30 * MIB, ACS_MEMORY_DEVICE, &none), ACS_ERR_MEMORY);
    if (!strstr(acs_error_thread()->text, "of the ledger's 67108864 other programs reserve 41943040, and 25165824 are left"))
        fail_msg("%s", acs_error_thread()->text);
    acs_free(a, held);
    assert_int_equal(acs_close(a), ACS_OK);
    assert_int_equal(acs_close(b), ACS_OK);
}

/* However long others would have to be waited for: it is known before. */
static void what_no_device_has_is_refused_at_once(void **state)
{
    (void)state;
    for (int devices = 1; devices <= 2; devices++) {
        acs_context *a = open_on(devices, 1);
        unsigned char seen;
        atomic_store_explicit(&g_go, 0, memory_order_release); /* pairs with gate_body */
        submit_gate(a, 4096);
        assert_int_equal(submit_large(a, TOTAL_MIB + 1, &seen, 1), ACS_ERR_MEMORY); /* the gate is shut */
        if (!strstr(acs_error_thread()->text, "no device has more than 67108864"))
            fail_msg("%s", acs_error_thread()->text);
        assert_int_equal(acs_group_cancel(a), ACS_OK);
        atomic_store_explicit(&g_go, 1, memory_order_release); /* pairs with gate_body */
        assert_int_equal(acs_sync(a), ACS_OK);
        assert_int_equal(acs_close(a), ACS_OK);
    }
}

int main(void)
{
    acs_ledger_patience(NEVER_MS); /* who waits for what never comes hangs */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_beside_blocks_are_kept),
        cmocka_unit_test(what_is_handed_out_again_is_kept),
        cmocka_unit_test(who_makes_no_groups_is_not_waited_for),
        cmocka_unit_test(pieces_go_when_what_was_beside_them_is_freed),
        cmocka_unit_test(who_will_have_no_room_is_in_nobodys_way),
        cmocka_unit_test(errors_tell_what_other_programs_have),
        cmocka_unit_test(what_no_device_has_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, make_name, remove_file);
}

/*
 * Contexts that share a device through the ledger (ACS_LEDGER), on the CPU: what one has others lack, groups wait for
 * theirs, idle contexts hold nothing for nothing, and results are what they are. Each context here could be a process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admission_fixture.h"

#include "base/tuning.h"

#include <fcntl.h>

enum { PROGRAMS = 6, ROUNDS = 5, BLOCKS = 6 };

static void what_one_context_has_another_lacks(void **state)
{
    (void)state;
    acs_context *a = open_sharing(0), *b = open_sharing(0);
    uint64_t sums[2] = {0};
    void *block = NULL;
    unsigned char *mine = block_of(a, ACS_MEMORY_DEVICE, 50 * MIB);
    assert_int_equal(acs_malloc(b, 20 * MIB, ACS_MEMORY_DEVICE, &block), ACS_ERR_MEMORY);
    assert_int_equal(acs_malloc(b, 10 * MIB, ACS_MEMORY_DEVICE, &block), ACS_OK);
    assert_int_equal(acs_ledger_each(g_name, add, sums), ACS_OK);
    assert_int_equal(sums[0], statistics_of(a).memory_reserved + statistics_of(b).memory_reserved);
    acs_free(b, block);
    acs_free(a, mine);
    assert_int_equal(acs_sync(a), ACS_OK); /* from here on they are idle */
    assert_int_equal(acs_sync(b), ACS_OK);
    assert_int_equal(acs_malloc(b, 60 * MIB, ACS_MEMORY_DEVICE, &block), ACS_OK);
    assert_int_equal(acs_close(a), ACS_OK);
    assert_int_equal(acs_close(b), ACS_OK);
    memset(sums, 0, sizeof sums);
    assert_int_equal(acs_ledger_each(g_name, add, sums), ACS_OK);
    assert_int_equal(sums[0], 0);
}

static void bad_ledgers_are_refused(void **state)
{
    static const char *const wrong[] = {"yes", "name", "/name:", "/name:many", "/name:-1", "/name:0", "/name:12x", "/a/b",
                                        "/name: -1", "/name:+5", "/name:99999999999999999999999"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        acs_context *context = NULL;
        assert_int_equal(open_with(wrong[i], 0, 1, &context), ACS_ERR_OPTION);
        assert_null(context);
    }
    acs_context *context = NULL;
    assert_int_equal(open_with("off", 0, 1, &context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Its user may truncate the file at any time. */
static void allocation_after_the_ledger_was_truncated_says_so(void **state)
{
    (void)state;
    acs_error error = {.size = sizeof error};
    acs_context *context = open_sharing(0);
    void *block = NULL;
    int file = shm_open(g_path, O_RDWR, 0600);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, 0), 0);
    close(file);
    assert_int_equal(acs_malloc(context, MIB, ACS_MEMORY_DEVICE, &block), ACS_ERR_MEMORY);
    acs_last_error(&error);
    assert_non_null(strstr(error.text, "the ledger cannot be used: its file was truncated"));
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(remove_file(state), 0);
}

/* ------------------------------------------------------------------------------------------------------------- groups */

/* A byte of each page one more than the same of the block before: all of them would take minutes under a sanitizer. */
static void next_body(const acs_grid *grid, void *const *args)
{
    unsigned char *to = *(unsigned char **)args[0];
    const unsigned char *from = *(const unsigned char **)args[1];
    (void)grid;
    for (size_t i = 0; i < 8 * MIB; i += 4096)
        to[i] = (unsigned char)(from[i] + 1);
}

static const acs_kernel g_next = ACS_KERNEL_HOST_INIT("next", next_body);

/* A chain through lazy blocks, all of which are in use until the end: BLOCKS * 8 MiB at once. */
static acs_status submit_chain(acs_context *context, unsigned char *seen, unsigned char first)
{
    unsigned char *blocks[BLOCKS];
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, 8 * MIB);
    acs_memset(context, blocks[0], first, 8 * MIB);
    for (int i = 1; i < BLOCKS; i++)
        ACS_LAUNCH_ON(context, &g_next, 1, 1, 0, ACS_ARGS(blocks[i], blocks[i - 1]),
                      ACS_USES(ACS_OUT(blocks[i], 8 * MIB), ACS_IN(blocks[i - 1], 8 * MIB)));
    for (int i = 0; i < BLOCKS; i++)
        acs_memcpy(context, seen + i, blocks[i], 1);
    for (int i = 0; i < BLOCKS; i++)
        acs_free(context, blocks[i]);
    return acs_group_submit(context, NULL, NULL);
}

static bool is_chain(const unsigned char *seen, unsigned char first)
{
    for (int i = 0; i < BLOCKS; i++)
        if (seen[i] != (unsigned char)(first + i))
            return false;
    return true;
}

typedef struct program {
    pthread_t thread;
    acs_context *context;
    unsigned char first;
    uint32_t wrong;
} program;

static void *run_program(void *argument)
{
    program *p = argument;
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char seen[BLOCKS] = {0};
        if (submit_chain(p->context, seen, p->first) != ACS_OK) {
            acs_error error = {.size = sizeof error};
            acs_last_error(&error);
            fprintf(stderr, "round %d of %u: %s\n", i, p->first, error.text);
            p->wrong++;
            acs_group_cancel(p->context);
        }
        p->wrong += acs_sync(p->context) != ACS_OK;
        p->wrong += !is_chain(seen, p->first);
    }
    return NULL;
}

/* Each in a thread of its own, to its end. */
static void run_all(program programs[PROGRAMS])
{
    for (int i = 0; i < PROGRAMS; i++)
        assert_int_equal(pthread_create(&programs[i].thread, NULL, run_program, &programs[i]), 0);
    for (int i = 0; i < PROGRAMS; i++) {
        assert_int_equal(pthread_join(programs[i].thread, NULL), 0);
        assert_int_equal(programs[i].wrong, 0);
    }
}

/* All of them together would need several times as much as there is. */
static void groups_wait_for_their_memory(void **state)
{
    (void)state;
    program programs[PROGRAMS];
    for (int i = 0; i < PROGRAMS; i++)
        programs[i] = (program){.context = open_sharing(i % 2), .first = (unsigned char)(10 * i)};
    run_all(programs);
    for (int i = 0; i < PROGRAMS; i++)
        assert_int_equal(acs_close(programs[i].context), ACS_OK);
}

/* A group that never fits is refused, and can be cancelled; one that fits once others are gone waits for them. */
static void what_never_fits_is_refused_and_what_will_is_waited_for(void **state)
{
    (void)state;
    acs_context *a = open_sharing(1), *b = open_sharing(0); /* a worker gives back what was freed */
    unsigned char seen[BLOCKS];
    program waits = {.context = b, .first = 3};
    uint64_t sums[2] = {0};
    unsigned char *held = block_of(a, ACS_MEMORY_DEVICE, 40 * MIB);
    assert_int_equal(submit_chain(a, seen, 1), ACS_ERR_MEMORY);
    acs_error error = {.size = sizeof error};
    acs_last_error(&error);
    if (!strstr(error.text, "this cannot fit beside what it has"))
        fail_msg("%s", error.text);
    assert_int_equal(acs_group_cancel(a), ACS_OK);
    assert_int_equal(pthread_create(&waits.thread, NULL, run_program, &waits), 0);
    while (sums[1] == 0) {
        sums[0] = 0;
        assert_int_equal(acs_ledger_each(g_name, add, sums), ACS_OK);
        sched_yield();
    }
    acs_free(a, held);
    assert_int_equal(pthread_join(waits.thread, NULL), 0);
    assert_int_equal(waits.wrong, 0);
    assert_int_equal(acs_close(a), ACS_OK);
    assert_int_equal(acs_close(b), ACS_OK);
}

/* The ledger takes nothing from a program that is alone: what rests is used again, and lazy blocks make room. */
static void a_program_alone_does_what_it_does_without(void **state)
{
    (void)state;
    for (int64_t workers = 0; workers < 2; workers++) {
        acs_context *context = open_sharing(workers);
        unsigned char seen[4][BLOCKS], resident[2] = {0};
        unsigned char *lazy = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, 40 * MIB);
        acs_memset(context, lazy, 9, 40 * MIB);
        for (int i = 0; i < 4; i++)
            assert_int_equal(submit_chain(context, seen[i], (unsigned char)i), ACS_OK);
        acs_memcpy(context, resident, lazy + 1, 1);
        assert_int_equal(acs_sync(context), ACS_OK);
        for (int i = 0; i < 4; i++)
            assert_true(is_chain(seen[i], (unsigned char)i));
        assert_int_equal(resident[0], 9);
        acs_free(context, lazy);
        assert_int_equal(statistics_of(context).memory_reserved, 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* Threads of one context: what one waited for is nobody else's. */
static void threads_wait_for_memory_of_their_own(void **state)
{
    (void)state;
    acs_context *context = open_sharing(1), *other = open_sharing(1);
    program programs[PROGRAMS];
    for (int i = 0; i < PROGRAMS; i++)
        programs[i] = (program){.context = i % 3 ? context : other, .first = (unsigned char)(10 * i)};
    run_all(programs);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(acs_close(other), ACS_OK);
}

/* ------------------------------------------------------------------------------------------- who streams, and who waits */

/* It is passed so many times on each device, whatever the other has in its pools. Who has no workers is never idle. */
static void who_streams_lets_others_come(void **state)
{
    (void)state;
    for (int devices = 1; devices <= 3; devices++) {
        latecomer late;
        acs_context *a = open_on(devices, 0);
        stream(a, 40, 3 * devices); /* all devices are its own */
        begin_late(&late, devices, 40);
        stream(a, 40, devices * TUNE_LEDGER_PASSES + 1);
        const uint64_t waiting = waiting_now();
        assert_int_equal(acs_sync(a), ACS_OK);
        end_late(&late);
        assert_int_equal(waiting, 0);
        assert_int_equal(acs_close(a), ACS_OK);
    }
}

/* Several of them have memory, and what is left beside one would not do. */
static void groups_under_way_end_before_others_come(void **state)
{
    (void)state;
    latecomer late;
    acs_context *a = open_sharing(1);
    atomic_store_explicit(&g_go, 0, memory_order_release); /* pairs with gate_body */
    submit_gate(a, 4096);
    stream(a, 20, 3);
    begin_late(&late, 1, 60);
    stream(a, 20, TUNE_LEDGER_PASSES);
    assert_int_equal(waiting_now(), 1);
    atomic_store_explicit(&g_go, 1, memory_order_release); /* pairs with gate_body */
    stream(a, 20, 1);
    const uint64_t waiting = waiting_now();
    assert_int_equal(acs_sync(a), ACS_OK);
    end_late(&late);
    assert_int_equal(waiting, 0);
    assert_int_equal(acs_close(a), ACS_OK);
}

/* The other waits for a block, which its program may free behind any group: to let it go first would be for ever. */
static void who_keeps_memory_is_not_held_up_for_it(void **state)
{
    (void)state;
    for (int devices = 1; devices <= 2; devices++) {
        latecomer late;
        acs_context *a = open_on(devices, 0);
        unsigned char *kept[2] = {NULL, NULL};
        for (int d = 0; d < devices; d++) {
            assert_int_equal(acs_on(a, d), ACS_OK);
            kept[d] = block_of(a, ACS_MEMORY_DEVICE, 10 * MIB);
        }
        stream(a, 20, 3);
        begin_late(&late, devices, 60);
        stream(a, 20, 4 * devices * TUNE_LEDGER_PASSES);
        assert_int_equal(waiting_now(), devices); /* an entry for each */
        for (int d = 0; d < devices; d++)
            acs_free(a, kept[d]);
        assert_int_equal(acs_sync(a), ACS_OK);
        end_late(&late);
        assert_int_equal(acs_close(a), ACS_OK);
    }
}

typedef struct streamer {
    pthread_t thread;
    acs_context *context;
    const _Atomic(int) *over;
    uint32_t wrong;
    unsigned char seen;
} streamer;

static void *stream_on(void *argument)
{
    streamer *s = argument;
    while (!atomic_load_explicit(s->over, memory_order_acquire)) /* pairs with the test's store */
        s->wrong += submit_large(s->context, 20, &s->seen, 5) != ACS_OK;
    s->wrong += acs_sync(s->context) != ACS_OK;
    s->wrong += s->seen != 5;
    return NULL;
}

/* Programs, and threads of one, that never pause, each with a block to keep: who needs nearly all gets it, and again. */
static void who_needs_nearly_all_gets_it(void **state)
{
    enum { STREAMERS = 4, TIMES = 50 };
    (void)state;
    for (int devices = 1; devices <= 2; devices++) {
        static _Atomic(int) over;
        acs_context *contexts[] = {open_on(devices, 1), open_on(devices, 0)};
        streamer streamers[STREAMERS];
        unsigned char *kept[] = {block_of(contexts[0], ACS_MEMORY_DEVICE, 4096),
                                 block_of(contexts[1], ACS_MEMORY_DEVICE, 4096)};
        atomic_store_explicit(&over, 0, memory_order_release); /* nobody reads it yet */
        for (int i = 0; i < STREAMERS; i++) {
            streamers[i] = (streamer){.context = contexts[i % 2], .over = &over};
            assert_int_equal(pthread_create(&streamers[i].thread, NULL, stream_on, &streamers[i]), 0);
        }
        latecomer late = {.context = open_on(devices, 1), .mib = 58};
        for (int i = 0; i < TIMES && late.status == ACS_OK; i++)
            (void)come_late(&late);
        atomic_store_explicit(&over, 1, memory_order_release); /* pairs with stream_on */
        for (int i = 0; i < STREAMERS; i++) {
            assert_int_equal(pthread_join(streamers[i].thread, NULL), 0);
            assert_int_equal(streamers[i].wrong, 0);
        }
        assert_int_equal(late.status, ACS_OK);
        assert_int_equal(late.seen, 77);
        for (int i = 0; i < 2; i++) {
            acs_free(contexts[i], kept[i]);
            assert_int_equal(acs_close(contexts[i]), ACS_OK);
        }
        assert_int_equal(acs_close(late.context), ACS_OK);
    }
}

/* ---------------------------------------------------------------------------------------------------- several devices */

/* Reserved of each of two devices, by all. */
static void add_of_device(void *user, const acs_ledger_line *line)
{
    ((uint64_t *)user)[strcmp(line->device, "host") != 0] += line->reserved;
}

static void reserved_now(uint64_t of[2])
{
    of[0] = of[1] = 0;
    assert_int_equal(acs_ledger_each(g_name, add_of_device, of), ACS_OK);
}

/* A program has memory of one device, then of the other: another's group does not wait for it. */
static void groups_go_where_other_programs_leave_room(void **state)
{
    (void)state;
    acs_context *a = open_on(2, 0), *b = open_on(2, 0);
    unsigned char seen[2][BLOCKS] = {{0}};
    for (int device = 0; device < 2; device++) {
        assert_int_equal(acs_on(a, device), ACS_OK);
        unsigned char *held = block_of(a, ACS_MEMORY_DEVICE, 40 * MIB);
        uint64_t before[2], now[2];
        reserved_now(before);
        assert_int_equal(submit_chain(b, seen[device], 5), ACS_OK); /* not run yet: its memory is reserved */
        reserved_now(now);
        assert_int_equal(now[device] - before[device], 0);
        assert_true(now[!device] - before[!device] >= BLOCKS * 8 * MIB);
        assert_int_equal(acs_sync(b), ACS_OK);
        assert_true(is_chain(seen[device], 5));
        acs_free(a, held);
        assert_int_equal(acs_sync(a), ACS_OK);
    }
    assert_int_equal(acs_close(a), ACS_OK);
    assert_int_equal(acs_close(b), ACS_OK);
}

/* On which device a group of the context was. */
static int device_of_chain(acs_context *context)
{
    unsigned char seen[BLOCKS] = {0};
    uint64_t before[2], now[2];
    reserved_now(before);
    assert_int_equal(submit_chain(context, seen, 7), ACS_OK); /* not run yet: its memory is reserved */
    reserved_now(now);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_true(is_chain(seen, 7));
    assert_int_not_equal(now[0] > before[0], now[1] > before[1]);
    return now[1] > before[1];
}

/* HuntKTm's Algorithm 1 over programs: both devices have room, but on the first another program's group runs for a while. */
static void groups_go_where_other_programs_run_less(void **state)
{
    (void)state;
    acs_context *a = open_on(2, 1), *b = open_on(2, 0);
    assert_int_equal(device_of_chain(b), 0);
    atomic_store_explicit(&g_go, 0, memory_order_release); /* pairs with gate_body */
    submit_gate(a, 4096);
    assert_int_equal(device_of_chain(b), 1);
    atomic_store_explicit(&g_go, 1, memory_order_release); /* pairs with gate_body */
    assert_int_equal(acs_sync(a), ACS_OK);
    assert_int_equal(device_of_chain(b), 0);
    assert_int_equal(acs_close(a), ACS_OK);
    assert_int_equal(acs_close(b), ACS_OK);
}

/* Programs with one device and with two, and several times as much work as there is memory. */
static void groups_wait_for_whichever_device_has_room(void **state)
{
    (void)state;
    program programs[PROGRAMS];
    for (int i = 0; i < PROGRAMS; i++)
        programs[i] = (program){.context = open_on(1 + i % 3, i % 2), .first = (unsigned char)(10 * i)};
    run_all(programs);
    for (int i = 0; i < PROGRAMS; i++)
        assert_int_equal(acs_close(programs[i].context), ACS_OK);
}

/* Of one context, too: what one thread took is nobody else's. */
static void threads_share_devices_with_other_programs(void **state)
{
    (void)state;
    acs_context *context = open_on(2, 1), *other = open_on(2, 0);
    program programs[PROGRAMS];
    for (int i = 0; i < PROGRAMS; i++)
        programs[i] = (program){.context = i % 3 ? context : other, .first = (unsigned char)(10 * i)};
    run_all(programs);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(acs_close(other), ACS_OK);
    uint64_t now[2];
    reserved_now(now);
    assert_int_equal(now[0] + now[1], 0);
}

/* What no device will ever have is refused, and the next group goes on. */
static void what_fits_no_device_is_refused(void **state)
{
    (void)state;
    acs_context *a = open_on(2, 0);
    unsigned char seen[BLOCKS] = {0};
    unsigned char *held[2];
    for (int device = 0; device < 2; device++) {
        assert_int_equal(acs_on(a, device), ACS_OK);
        held[device] = block_of(a, ACS_MEMORY_DEVICE, 40 * MIB);
    }
    assert_int_equal(submit_chain(a, seen, 1), ACS_ERR_MEMORY);
    if (!strstr(acs_error_thread()->text, "the other devices are no better"))
        fail_msg("%s", acs_error_thread()->text);
    assert_int_equal(acs_group_cancel(a), ACS_OK);
    acs_free(a, held[1]);
    assert_int_equal(submit_chain(a, seen, 1), ACS_OK);
    assert_int_equal(acs_sync(a), ACS_OK);
    assert_true(is_chain(seen, 1));
    acs_free(a, held[0]);
    assert_int_equal(acs_close(a), ACS_OK);
}

int main(void)
{
    acs_ledger_patience(NEVER_MS); /* who waits for what never comes hangs */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_context_has_another_lacks),
        cmocka_unit_test(bad_ledgers_are_refused),
        cmocka_unit_test(allocation_after_the_ledger_was_truncated_says_so),
        cmocka_unit_test(a_program_alone_does_what_it_does_without),
        cmocka_unit_test(threads_wait_for_memory_of_their_own),
        cmocka_unit_test(groups_wait_for_their_memory),
        cmocka_unit_test(groups_go_where_other_programs_leave_room),
        cmocka_unit_test(groups_go_where_other_programs_run_less),
        cmocka_unit_test(groups_wait_for_whichever_device_has_room),
        cmocka_unit_test(threads_share_devices_with_other_programs),
        cmocka_unit_test(what_fits_no_device_is_refused),
        cmocka_unit_test(who_streams_lets_others_come),
        cmocka_unit_test(groups_under_way_end_before_others_come),
        cmocka_unit_test(who_keeps_memory_is_not_held_up_for_it),
        cmocka_unit_test(who_needs_nearly_all_gets_it),
        cmocka_unit_test(what_never_fits_is_refused_and_what_will_is_waited_for),
    };
    return cmocka_run_group_tests(tests, make_name, remove_file);
}

/*
 * Unit tests of devices/ledger for programs with several devices: they wait for any of them, not in rings, and see what
 * others run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "devices/ledger.h"
#include "ledger_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PARTIES = 6, TURNS = 60 };

/* A program with an entry for each of two devices. */
typedef struct party {
    acs_ledger *of[2];
    pthread_t thread;
    uint32_t asked;
    uint64_t bytes;
    uint32_t which;
    acs_status status;
    char text[ACS_ERROR_TEXT_BYTES];
} party;

static party party_join(void)
{
    return (party){.of = {join_on("GPU-1"), join_on("GPU-2")}};
}

static void party_leave(party *p)
{
    acs_ledger_close(p->of[0]);
    acs_ledger_close(p->of[1]);
}

static void *party_waits(void *argument)
{
    party *p = argument;
    p->status = acs_ledger_wait_any(p->of, 2, p->asked, p->bytes, &p->which);
    (void)snprintf(p->text, sizeof p->text, "%s", p->status ? acs_error_thread()->text : "");
    return NULL;
}

static void party_start(party *p, uint32_t asked, uint64_t bytes)
{
    p->asked = asked;
    p->bytes = bytes;
    assert_int_equal(pthread_create(&p->thread, NULL, party_waits, p), 0);
}

static acs_status party_end(party *p)
{
    assert_int_equal(pthread_join(p->thread, NULL), 0);
    return p->status;
}

static void whichever_device_has_it_first_will_do(void **state)
{
    (void)state;
    party a = party_join(), b = party_join();
    assert_int_equal(acs_ledger_take(b.of[0], 900), ACS_OK);
    assert_int_equal(acs_ledger_take(b.of[1], 900), ACS_OK);
    party_start(&a, 3, 500);
    await_waiting(2);
    acs_ledger_give(b.of[1], 900, 0);
    assert_int_equal(party_end(&a), ACS_OK);
    assert_int_equal(a.which, 1);
    assert_int_equal(acs_ledger_reserved(a.of[0]), 0);
    assert_int_equal(acs_ledger_reserved(a.of[1]), 500);
    assert_int_equal(look().waiting, 0);
    party_leave(&a);
    party_leave(&b);
}

/* Each has what the other waits for, on other devices: whoever began last gives way, and says so. */
static void nobody_waits_in_a_ring_over_devices(void **state)
{
    (void)state;
    for (int one = 0; one < 2; one++) { /* waiting for any device, for the other one */
        party a = party_join(), b = party_join();
        assert_int_equal(acs_ledger_take(a.of[0], 800), ACS_OK);
        assert_int_equal(acs_ledger_take(b.of[1], 800), ACS_OK);
        party_start(&a, one ? 2 : 3, 500);
        await_waiting(one ? 1 : 2);
        party_start(&b, one ? 1 : 3, 500);
        assert_int_equal(party_end(&b), ACS_ERR_MEMORY);
        if (!strstr(b.text, "all programs that have some wait for more") ||
            (strstr(b.text, "the other devices are no better") != NULL) == (one == 1))
            fail_msg("%s", b.text);
        assert_int_equal(look().waiting, one ? 1 : 2);
        acs_ledger_give(b.of[1], 800, 0);
        assert_int_equal(party_end(&a), ACS_OK);
        assert_int_equal(a.which, 1);
        party_leave(&a);
        party_leave(&b);
    }
}

static void what_fits_no_device_is_refused(void **state)
{
    (void)state;
    party a = party_join();
    party_start(&a, 3, TOTAL + 1);
    assert_int_equal(party_end(&a), ACS_ERR_MEMORY);
    assert_non_null(strstr(a.text, "this cannot fit; the other devices are no better"));
    party_leave(&a);
}

/* Programs with memory of one device that wait for some of any: some give way, and all get on. */
static void *party_lives(void *argument)
{
    party *p = argument;
    acs_random random = {p->bytes};
    uint64_t held[2] = {0};
    for (int i = 0; i < TURNS; i++) {
        const uint64_t bytes = 1 + acs_random_below(&random, 700);
        uint32_t which = 0;
        acs_status status = acs_ledger_wait_any(p->of, 2, 1 + acs_random_below(&random, 3), bytes, &which);
        if (status == ACS_OK)
            held[which] += bytes;
        else if (status != ACS_ERR_MEMORY)
            p->status = status;
        if (status != ACS_OK || acs_random_below(&random, 2))
            for (int d = 0; d < 2; d++) {
                acs_ledger_give(p->of[d], held[d], 0);
                held[d] = 0;
            }
        for (int d = 0; d < 2; d++)
            if (acs_ledger_reserved(p->of[d]) != held[d])
                p->status = ACS_ERR_INTERNAL;
    }
    for (int d = 0; d < 2; d++)
        acs_ledger_give(p->of[d], held[d], 0);
    return NULL;
}

static void parties_get_on_whatever_they_hold(void **state)
{
    (void)state;
    party parties[PARTIES];
    for (uint32_t i = 0; i < PARTIES; i++) {
        parties[i] = party_join();
        parties[i].bytes = i + 1;
        assert_int_equal(pthread_create(&parties[i].thread, NULL, party_lives, &parties[i]), 0);
    }
    for (uint32_t i = 0; i < PARTIES; i++) {
        assert_int_equal(party_end(&parties[i]), ACS_OK);
        party_leave(&parties[i]);
    }
}

static void others_see_what_runs_and_what_is_left(void **state)
{
    (void)state;
    party a = party_join(), b = party_join();
    const acs_demand runs = {.threads = 10, .registers = 20, .shared = 30, .memory = 40, .queues = 50};
    acs_demand is;
    uint64_t room = 0;
    bool awaited = true;
    acs_ledger_runs(a.of[0], &runs);
    assert_int_equal(acs_ledger_take(a.of[0], 300), ACS_OK);
    assert_int_equal(acs_ledger_take(b.of[0], 100), ACS_OK);
    assert_int_equal(acs_ledger_look(b.of[0], &room, &is, &awaited), ACS_OK);
    assert_int_equal(room, 600);
    assert_true(is.threads == 10 && is.registers == 20 && is.shared == 30 && is.memory == 300);
    assert_int_equal(acs_ledger_look(a.of[0], &room, &is, &awaited), ACS_OK); /* nobody is an other to himself */
    assert_true(is.threads == 0 && is.memory == 100);
    assert_int_equal(acs_ledger_look(b.of[1], &room, &is, &awaited), ACS_OK);
    assert_true(room == TOTAL && is.threads == 0);
    party_leave(&a);
    assert_int_equal(acs_ledger_look(b.of[0], &room, &is, &awaited), ACS_OK);
    assert_true(room == 900 && is.threads == 0);
    party_leave(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whichever_device_has_it_first_will_do),
        cmocka_unit_test(nobody_waits_in_a_ring_over_devices),
        cmocka_unit_test(what_fits_no_device_is_refused),
        cmocka_unit_test(parties_get_on_whatever_they_hold),
        cmocka_unit_test(others_see_what_runs_and_what_is_left),
    };
    return cmocka_run_group_tests(tests, make_name, remove_file);
}

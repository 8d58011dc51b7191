/* Hashes of kernels that passes queued (src/repeats/sightings.c), against a list of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "repeats/repeat_internal.h"

/* Some share the places of others, however large the table is. */
static uint64_t hash_of(uint32_t number)
{
    return number % 8 ? acs_hash64(number + 1) : (uint64_t)(number / 8) << 48;
}

static void kernels_are_seen_again_in_later_passes_only(void **state)
{
    (void)state;
    enum { KERNELS = TUNE_REPEAT_OPS, PASSES = 5 };
    acs_sightings s = {0};
    for (uint64_t pass = 1; pass <= PASSES; pass++)
        for (int time = 0; time < 2; time++) /* a pass queues each one twice */
            for (uint32_t i = 0; i < KERNELS; i++) {
                const bool earlier = time == 0 && pass > 1 && !(pass == 2 && i >= KERNELS / 2);
                if (pass > 1 || i < KERNELS / 2) /* half of them come in the second pass first */
                    assert_int_equal(acs_sightings_had(&s, hash_of(i), pass), earlier);
            }
    assert_int_equal(s.count, KERNELS);
    acs_sightings_free(&s);
}

static void without_room_all_are_forgotten(void **state)
{
    (void)state;
    acs_sightings s = {0};
    for (uint32_t i = 0; i < 2 * TUNE_REPEAT_OPS; i++)
        assert_false(acs_sightings_had(&s, hash_of(i), 1));
    const uint32_t most = s.mask + 1;
    assert_false(acs_sightings_had(&s, hash_of(2 * TUNE_REPEAT_OPS + 1), 1));
    assert_int_equal(s.count, 1);
    assert_false(acs_sightings_had(&s, hash_of(0), 2));
    assert_true(acs_sightings_had(&s, hash_of(2 * TUNE_REPEAT_OPS + 1), 2));
    assert_int_equal(s.mask + 1, most);
    acs_sightings_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_seen_again_in_later_passes_only),
        cmocka_unit_test(without_room_all_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

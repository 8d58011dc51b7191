/*
 * Templates of library calls against a model: made-up calls whose words are constants, or follow from one pointer. What a
 * template predicts is always what the call would have issued; and it predicts all calls once their pointers have moved.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bundles/call_template.h"

#include <string.h>

enum { WORDS = 40, BASES = 5 };

/* What a call issues: word = constant + the base that it follows, if any. */
typedef struct model {
    int follows[WORDS]; /* -1: none */
    uint64_t plus[WORDS];
} model;

static model model_of(acs_random *random)
{
    model m;
    for (int i = 0; i < WORDS; i++) {
        m.follows[i] = (int)acs_random_below(random, 2 * BASES) - BASES;
        m.follows[i] = m.follows[i] < 0 ? -1 : m.follows[i];
        m.plus[i] = acs_random_below(random, 1000);
    }
    return m;
}

static void issue(const model *m, const uint64_t *base, uint64_t *words)
{
    for (int i = 0; i < WORDS; i++)
        words[i] = m->plus[i] + (m->follows[i] < 0 ? 0 : base[m->follows[i]]);
}

/* Whoever reads a capture knows which words are addresses, and no more. */
static acs_call_work capture_of(const model *m, const uint64_t *base)
{
    acs_call_work c = {.bases = BASES, .steps = 1, .words = WORDS, .step = {{.count = WORDS}}};
    memcpy(c.base, base, BASES * sizeof *base);
    issue(m, base, c.word);
    for (int i = 0; i < WORDS; i++)
        c.follows[i] = m->follows[i] < 0 ? 0 : (1u << BASES) - 1;
    return c;
}

/* Some pointers move, some of them together. */
static void move(acs_random *random, uint64_t *base)
{
    const uint64_t together = acs_random_below(random, 3) ? 0 : 64 * acs_random_below(random, 100);
    for (int b = 0; b < BASES; b++)
        if (acs_random_below(random, 3))
            base[b] += together ? together : 64 * acs_random_below(random, 1000);
}

static void predictions_are_what_the_call_issues(void **state)
{
    static acs_call_template t[2];
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        acs_random random;
        random = (acs_random){seed};
        uint64_t base[BASES], expected[WORDS], words[ACS_CALL_WORDS];
        int now = 0, unknown_late = 0;
        const model m = model_of(&random);
        for (int b = 0; b < BASES; b++)
            base[b] = 0x7f0000000000 + (uint64_t)b * 0x10000000;
        acs_call_work c = capture_of(&m, base);
        acs_call_template_begin(&t[now], &c);
        for (int n = 0; n < 60; n++) {
            issue(&m, base, expected);
            if (acs_call_template_fill(&t[now], base, words)) {
                assert_memory_equal(words, expected, sizeof expected);
            } else {
                unknown_late += n > 40;
                c = capture_of(&m, base);
                assert_true(acs_call_template_refine(&t[now], &c, &t[!now]));
                now = !now;
            }
            move(&random, base);
        }
        assert_int_equal(unknown_late, 0);
    }
}

static void a_pointer_must_have_moved_twice_before_it_may_move(void **state)
{
    static acs_call_template t[2];
    uint64_t base[BASES] = {4096, 8192, 12288, 16384, 20480}, words[ACS_CALL_WORDS];
    acs_random random;
    int now = 0;
    (void)state;
    random = (acs_random){3};
    const model m = model_of(&random);
    acs_call_work c = capture_of(&m, base);
    acs_call_template_begin(&t[now], &c);
    assert_true(acs_call_template_fill(&t[now], base, words));
    for (int moved = 0; moved < ACS_CALL_MOVES; moved++) {
        base[0] += 64;
        assert_false(acs_call_template_fill(&t[now], base, words));
        c = capture_of(&m, base);
        assert_true(acs_call_template_refine(&t[now], &c, &t[!now]));
        now = !now;
    }
    base[0] += 64;
    assert_true(acs_call_template_fill(&t[now], base, words));
    base[1] += 64;
    assert_false(acs_call_template_fill(&t[now], base, words));
}

/* A word that changes although it is no address, an address that no pointer explains, other work: no template. */
static void what_no_pointer_explains_is_refused(void **state)
{
    static acs_call_template t, made;
    uint64_t base[BASES] = {4096, 8192, 12288, 16384, 20480};
    model m = {.follows = {0, -1}, .plus = {8, 5}};
    (void)state;
    for (int i = 2; i < WORDS; i++)
        m.follows[i] = -1;
    acs_call_work c = capture_of(&m, base);
    acs_call_template_begin(&t, &c);
    base[0] += 640;
    c = capture_of(&m, base);
    assert_true(acs_call_template_refine(&t, &c, &made));
    c.word[1]++;
    assert_false(acs_call_template_refine(&t, &c, &made));
    c = capture_of(&m, base);
    c.word[0] += 8;
    assert_false(acs_call_template_refine(&t, &c, &made));
    c = capture_of(&m, base);
    c.step[0].what[2] = 1;
    assert_false(acs_call_template_refine(&t, &c, &made));
    c = capture_of(&m, base);
    c.words--;
    assert_false(acs_call_template_refine(&t, &c, &made));
}

/* ---------------------------------------------------------------------------------------------------------------- keys */

static bool same_key(const uint64_t *a, const uint64_t *b, size_t bytes, uint64_t pointers)
{
    acs_call_key x, y;
    assert_true(acs_call_key_make(a, bytes, pointers, &x));
    assert_true(acs_call_key_make(b, bytes, pointers, &y));
    const bool same = x.bytes == y.bytes && memcmp(x.closure, y.closure, bytes) == 0;
    assert_true(!same || x.hash == y.hash);
    return same;
}

static void keys_know_pointers_by_equality_and_low_bits_alone(void **state)
{
    const uint64_t a[] = {1, 0x1000, 0x2000, 7};
    (void)state;
    assert_true(same_key(a, (uint64_t[]){1, 0x5000, 0x9000, 7}, 32, 6));
    assert_false(same_key(a, (uint64_t[]){1, 0x5000, 0x9000, 8}, 32, 6));
    assert_false(same_key(a, (uint64_t[]){1, 0x5000, 0x5000, 7}, 32, 6));
    assert_false(same_key(a, (uint64_t[]){1, 0x5000, 0x9010, 7}, 32, 6));
    assert_false(same_key(a, (uint64_t[]){1, 0x5000, 0, 7}, 32, 6));
    assert_true(same_key(a, (uint64_t[]){1, 0x5000, 0x9000, 9}, 30, 6) == false);
    assert_true(same_key(a, a, 30, 6));
}

static void keys_of_what_is_too_large_are_refused(void **state)
{
    uint64_t closure[ACS_CALL_CLOSURE / 8 + 1];
    acs_call_key key;
    (void)state;
    for (size_t i = 0; i < sizeof closure / sizeof *closure; i++)
        closure[i] = 4096 * (i + 1);
    assert_true(acs_call_key_make(closure, ACS_CALL_CLOSURE, 1, &key));
    assert_false(acs_call_key_make(closure, ACS_CALL_CLOSURE + 1, 1, &key));
    assert_false(acs_call_key_make(closure, 64, 1u << 8, &key)); /* behind its end */
    assert_false(acs_call_key_make(closure, 12, 2, &key));       /* half of it */
    assert_true(acs_call_key_make(closure, ACS_CALL_CLOSURE, (1u << (ACS_CALL_BASES - 1)) - 1, &key));
    assert_false(acs_call_key_make(closure, ACS_CALL_CLOSURE, (1u << ACS_CALL_BASES) - 1, &key));
    assert_true(acs_call_key_make(NULL, 0, 0, &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_are_what_the_call_issues),
        cmocka_unit_test(a_pointer_must_have_moved_twice_before_it_may_move),
        cmocka_unit_test(what_no_pointer_explains_is_refused),
        cmocka_unit_test(keys_know_pointers_by_equality_and_low_bits_alone),
        cmocka_unit_test(keys_of_what_is_too_large_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

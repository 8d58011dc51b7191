/* The index of cached graphs: against a model that remembers everything in arrays, and its bounds one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bundles/graph_cache.h"

#include <stdlib.h>
#include <string.h>

enum { BUDGET = 40, SLOTS = 3, KEYS = 6, MOST = 64, STEPS = 40000 };

/* One copy as the model sees it. */
typedef struct model_copy {
    acs_graph_copy *copy; /* NULL: no copy here */
    void *object;
    uint64_t key, value;
    uint32_t nodes, used; /* when it was used last */
    int slot;             /* of its latest launch; -1: taken */
} model_copy;

typedef struct fixture {
    acs_graph_cache *kept;
    model_copy copies[MOST];
    uint64_t completed[SLOTS], issued[SLOTS];
    uint32_t clock;
    uintptr_t objects;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);

    *state = f;
    return f ? (int)acs_graph_cache_create(BUDGET, SLOTS, &f->kept) : -1;
}

static int teardown(void **state)
{
    fixture *f = *state;

    while (acs_graph_cache_drain(f->kept))
        continue;
    acs_graph_cache_destroy(f->kept);
    free(f);
    return 0;
}

/* ----------------------------------------------------------------------------------------------------------- model */

static bool model_free(const fixture *f, const model_copy *c)
{
    return c->copy && c->slot >= 0 && c->value <= f->completed[c->slot];
}

static uint64_t model_nodes(const fixture *f)
{
    uint64_t nodes = 0;

    for (uint32_t i = 0; i < MOST; i++)
        nodes += f->copies[i].copy ? f->copies[i].nodes : 0;
    return nodes;
}

/* The copy that is to be given out for a key: the free one that was used last. */
static model_copy *model_to_take(fixture *f, uint64_t key)
{
    model_copy *best = NULL;

    for (uint32_t i = 0; i < MOST; i++) {
        model_copy *c = &f->copies[i];
        if (c->copy && c->key == key && model_free(f, c) && (!best || c->used > best->used))
            best = c;
    }
    return best;
}

/* The copy that has to go for `nodes` more. */
static model_copy *model_to_evict(fixture *f, uint64_t nodes)
{
    uint64_t could = BUDGET - model_nodes(f);
    model_copy *oldest = NULL;

    if (nodes <= could)
        return NULL;
    for (uint32_t i = 0; i < MOST; i++) {
        model_copy *c = &f->copies[i];
        if (!model_free(f, c))
            continue;
        could += c->nodes;
        if (!oldest || c->used < oldest->used)
            oldest = c;
    }
    return could >= nodes ? oldest : NULL;
}

static model_copy *model_taken(fixture *f, acs_random *random)
{
    uint32_t from = acs_random_below(random, MOST);

    for (uint32_t i = 0; i < MOST; i++) {
        model_copy *c = &f->copies[(from + i) % MOST];
        if (c->copy && c->slot == -1)
            return c;
    }
    return NULL;
}

/* ----------------------------------------------------------------------------------------------------------- steps */

static void step_take(fixture *f, uint64_t key)
{
    model_copy *expected = model_to_take(f, key);
    acs_graph_copy *copy = acs_graph_cache_take(f->kept, key);

    assert_ptr_equal(copy, expected ? expected->copy : NULL);
    if (!expected)
        return;
    assert_ptr_equal(copy->object, expected->object);
    assert_true(copy->key == key);
    expected->slot = -1;
    expected->used = ++f->clock;
}

static void step_add(fixture *f, uint64_t key, uint32_t nodes)
{
    model_copy *victim, *place = f->copies;
    acs_graph_copy *copy;
    void *object = (void *)++f->objects, *gone;

    while ((gone = acs_graph_cache_evict(f->kept, nodes, UINT64_MAX))) {
        victim = model_to_evict(f, nodes);
        assert_non_null(victim);
        assert_ptr_equal(gone, victim->object);
        victim->copy = NULL;
    }
    assert_null(model_to_evict(f, nodes));
    copy = acs_graph_cache_add(f->kept, key, nodes, object);
    assert_int_equal(copy != NULL, model_nodes(f) + nodes <= BUDGET);
    if (!copy)
        return;
    while (place->copy)
        place++;
    *place = (model_copy){copy, object, key, 0, nodes, ++f->clock, -1};
}

static void step_finish(fixture *f, acs_random *random)
{
    model_copy *c = model_taken(f, random);
    uint32_t slot = acs_random_below(random, SLOTS), what = acs_random_below(random, 8);

    if (!c)
        return;
    if (what == 0) {
        assert_ptr_equal(acs_graph_cache_drop(f->kept, c->copy), c->object);
        c->copy = NULL;
    } else {
        c->slot = (int)slot;
        c->value = ++f->issued[slot];
        acs_graph_cache_launched(f->kept, c->copy, c->slot, c->value);
    }
}

static void step_complete(fixture *f, acs_random *random)
{
    uint32_t slot = acs_random_below(random, SLOTS);
    uint64_t behind = f->issued[slot] - f->completed[slot];

    f->completed[slot] += behind ? 1 + acs_random_below(random, (uint32_t)behind) : 0;
    acs_graph_cache_completed(f->kept, (int)slot, f->completed[slot]);
}

static void compare(const fixture *f)
{
    uint32_t all = 0;

    for (uint64_t key = 0; key < KEYS; key++) {
        uint32_t count = 0, not_free = 0, busy;
        for (uint32_t i = 0; i < MOST; i++) {
            const model_copy *c = &f->copies[i];
            if (!c->copy || c->key != key)
                continue;
            count++;
            not_free += !model_free(f, c);
        }
        assert_int_equal(acs_graph_copies(f->kept, key, &busy), count);
        assert_int_equal(busy, not_free);
        all += count;
    }
    assert_int_equal(acs_graph_cache_count(f->kept), all);
    assert_int_equal(acs_graph_cache_nodes(f->kept), model_nodes(f));
}

static void random_steps_are_as_the_model_says(void **state)
{
    fixture *f = *state;
    acs_random random = {7};

    for (uint32_t i = 0; i < STEPS; i++) {
        uint64_t key = acs_random_below(&random, KEYS);
        switch (acs_random_below(&random, 6)) {
        case 0:
            step_add(f, key, 1 + acs_random_below(&random, 12));
            break;
        case 1:
        case 2:
            step_take(f, key);
            break;
        case 3:
        case 4:
            step_finish(f, &random);
            break;
        default:
            step_complete(f, &random);
        }
        compare(f);
    }
}

/* ----------------------------------------------------------------------------------------------------------- bounds */

/* It is launched, and ends at once. */
static void use(fixture *f, acs_graph_copy *copy)
{
    acs_graph_cache_launched(f->kept, copy, 0, 0);
}

static void busy_copy_is_neither_given_out_nor_evicted(void **state)
{
    fixture *f = *state;
    int object;
    acs_graph_copy *copy = acs_graph_cache_add(f->kept, 1, BUDGET, &object);

    assert_null(acs_graph_cache_take(f->kept, 1));
    assert_null(acs_graph_cache_evict(f->kept, 1, UINT64_MAX));
    acs_graph_cache_launched(f->kept, copy, 1, 5);
    acs_graph_cache_completed(f->kept, 1, 4);
    acs_graph_cache_completed(f->kept, 2, 9);
    assert_null(acs_graph_cache_take(f->kept, 1));
    assert_null(acs_graph_cache_evict(f->kept, 1, UINT64_MAX));
    assert_false(acs_graph_cache_has_room(f->kept, 1));
    acs_graph_cache_completed(f->kept, 1, 5);
    assert_ptr_equal(acs_graph_cache_take(f->kept, 1), copy);
    use(f, copy);
    assert_ptr_equal(acs_graph_cache_evict(f->kept, 1, UINT64_MAX), &object);
    assert_null(acs_graph_cache_take(f->kept, 1));
}

static void graph_beyond_the_budget_throws_nothing_out(void **state)
{
    fixture *f = *state;
    int object;

    use(f, acs_graph_cache_add(f->kept, 1, 2, &object));
    assert_null(acs_graph_cache_evict(f->kept, BUDGET + 1, UINT64_MAX));
    assert_null(acs_graph_cache_add(f->kept, 2, BUDGET + 1, &object));
    assert_int_equal(acs_graph_cache_count(f->kept), 1);
}

/* What was built has been paid with the sightings before: to be built again it has to come as often again. */
static void sightings_begin_again_when_the_last_copy_is_evicted(void **state)
{
    fixture *f = *state;
    int object[2];

    for (uint32_t i = 1; i <= 5; i++)
        assert_int_equal(acs_graph_cache_sight(f->kept, 1), i);
    use(f, acs_graph_cache_add(f->kept, 1, BUDGET / 2, &object[0]));
    use(f, acs_graph_cache_add(f->kept, 1, BUDGET / 2, &object[1]));
    assert_non_null(acs_graph_cache_evict(f->kept, BUDGET / 2, UINT64_MAX));
    assert_int_equal(acs_graph_cache_sight(f->kept, 1), 6);
    assert_non_null(acs_graph_cache_evict(f->kept, BUDGET, UINT64_MAX));
    assert_int_equal(acs_graph_cache_sight(f->kept, 1), 1);
    acs_graph_cache_sight(f->kept, 1);
    (void)acs_graph_cache_drop(f->kept, acs_graph_cache_add(f->kept, 1, 1, &object[0]));
    assert_int_equal(acs_graph_cache_sight(f->kept, 1), 3); /* it was not for want of room */
}

/* More graphs come again and again than there is room for: those that are there stay, until they no longer come. */
static void graph_that_comes_again_evicts_only_what_does_not(void **state)
{
    fixture *f = *state;
    int object[2];
    acs_graph_cache_sight(f->kept, 1);
    use(f, acs_graph_cache_add(f->kept, 1, BUDGET, &object[0]));
    for (int pass = 0; pass < 3; pass++) { /* both come in each pass */
        acs_graph_cache_sight(f->kept, 2);
        assert_int_equal(acs_graph_cache_since(f->kept, 2) != 0, pass > 0);
        assert_false(acs_graph_cache_may_fit(f->kept, 1, acs_graph_cache_since(f->kept, 2)));
        assert_null(acs_graph_cache_evict(f->kept, 1, acs_graph_cache_since(f->kept, 2)));
        use(f, acs_graph_cache_take(f->kept, 1));
    }
    assert_int_equal(acs_graph_cache_since(f->kept, 3), 0);
    for (int pass = 0; pass < 2; pass++) { /* only another one does */
        acs_graph_cache_sight(f->kept, 3);
        assert_int_equal(acs_graph_cache_may_fit(f->kept, 1, acs_graph_cache_since(f->kept, 3)), pass > 0);
    }
    assert_ptr_equal(acs_graph_cache_evict(f->kept, 1, acs_graph_cache_since(f->kept, 3)), &object[0]);
}

static void sightings_are_counted_and_age(void **state)
{
    fixture *f = *state;

    for (uint32_t i = 1; i <= 10; i++)
        assert_int_equal(acs_graph_cache_sight(f->kept, 42), i);
    for (uint64_t other = 1000; other < 1000 + 100; other++)
        assert_int_equal(acs_graph_cache_sight(f->kept, other), 1);
    assert_int_equal(acs_graph_cache_sight(f->kept, 42), 11);
    for (uint64_t other = 5000; other < 5000 + 20000; other++)
        acs_graph_cache_sight(f->kept, other);
    assert_int_equal(acs_graph_cache_sight(f->kept, 42), 1);
}

static void count_of_a_key_among_few_ages_too(void **state)
{
    fixture *f = *state;

    assert_int_equal(acs_graph_cache_sight(f->kept, 42), 1);
    for (uint32_t i = 0; i < 20000; i++)
        acs_graph_cache_sight(f->kept, 43);
    assert_int_equal(acs_graph_cache_sight(f->kept, 42), 1);
    assert_true(acs_graph_cache_sight(f->kept, 43) > 20000);
}

static void drain_gives_every_object_once(void **state)
{
    fixture *f = *state;
    char objects[5];
    uint32_t seen = 0;
    void *object;

    for (uint32_t i = 0; i < 5; i++) {
        acs_graph_copy *copy = acs_graph_cache_add(f->kept, i % 2, 3, &objects[i]);
        if (i)
            acs_graph_cache_launched(f->kept, copy, 0, i); /* the first stays taken, the others busy */
    }
    while ((object = acs_graph_cache_drain(f->kept)))
        seen |= 1u << ((char *)object - objects);
    assert_int_equal(seen, 31);
    assert_int_equal(acs_graph_cache_nodes(f->kept), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_steps_are_as_the_model_says, setup, teardown),
        cmocka_unit_test_setup_teardown(busy_copy_is_neither_given_out_nor_evicted, setup, teardown),
        cmocka_unit_test_setup_teardown(graph_beyond_the_budget_throws_nothing_out, setup, teardown),
        cmocka_unit_test_setup_teardown(sightings_begin_again_when_the_last_copy_is_evicted, setup, teardown),
        cmocka_unit_test_setup_teardown(graph_that_comes_again_evicts_only_what_does_not, setup, teardown),
        cmocka_unit_test_setup_teardown(sightings_are_counted_and_age, setup, teardown),
        cmocka_unit_test_setup_teardown(count_of_a_key_among_few_ages_too, setup, teardown),
        cmocka_unit_test_setup_teardown(drain_gives_every_object_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

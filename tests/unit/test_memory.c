/*
 * Unit tests of pool/memory: which blocks share a chunk, what is asked of the device and when, limits, errors, and threads
 * that take and give at random. The device is this process's heap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "pool/memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 20000, HELD = 16 };
static const size_t MIB = (size_t)1 << 20;

/* What the device gave and got back. */
typedef struct device {
    _Atomic(uint32_t) obtained, released;
    uint32_t refuse; /* takes back this one, counted from 1, and says that it failed */
    _Atomic(uint64_t) bytes;
    size_t last, most; /* asked for last; more in one piece is not to be had */
    acs_status fault;
    bool slow; /* others run while it is asked */
    _Atomic(acs_op) settled;
} device;

static acs_status obtain(void *user, int kind, size_t bytes, void **ptr)
{
    device *d = user;
    (void)kind;
    if (d->fault != ACS_OK)
        return ACS_FAIL(d->fault, 719, "the device faulted");
    for (int i = 0; d->slow && i < 20; i++)
        sched_yield();
    if (d->most)
        d->last = bytes;
    if (d->most && bytes > d->most)
        return ACS_FAIL(ACS_ERR_MEMORY, 2, "out of memory");
    *ptr = aligned_alloc(ACS_ARENA_ALIGN, (bytes + ACS_ARENA_ALIGN - 1) / ACS_ARENA_ALIGN * ACS_ARENA_ALIGN);
    assert_non_null(*ptr);
    atomic_fetch_add(&d->obtained, 1);
    return ACS_OK;
}

static acs_status release(void *user, int kind, void *ptr, size_t bytes)
{
    (void)kind, (void)bytes;
    device *d = user;
    free(ptr);
    const bool refused = atomic_fetch_add(&d->released, 1) + 1 == d->refuse;
    return refused ? ACS_FAIL(ACS_ERR_DEVICE, 719, "the device faulted") : ACS_OK;
}

static acs_op settled(void *user)
{
    return atomic_load(&((device *)user)->settled);
}

static acs_memory *open_pools(device *d, bool pooled, uint64_t limit)
{
    acs_memory *memory = NULL;
    const acs_memory_config config = {.pooled = pooled, .limit = limit, .slack = 4 * MIB, .user = d,
                                      .obtain = obtain, .release = release, .settled = settled};
    assert_int_equal(acs_memory_create(&config, &memory), ACS_OK);
    return memory;
}

/* All that the device gave is back. */
static void close_pools(acs_memory *memory, device *d)
{
    assert_int_equal(acs_memory_count(memory, ACS_MEMORY_DEVICE).live, 0);
    assert_int_equal(acs_memory_count(memory, ACS_MEMORY_HOST).live, 0);
    acs_memory_destroy(memory, false);
    assert_int_equal(d->released, d->obtained);
}

static acs_status ask(acs_memory *memory, int kind, size_t bytes, bool early, acs_block *block)
{
    static const acs_site site = {"acs_malloc", "program.c", 7};
    const acs_memory_request request = {.bytes = bytes, .kind = kind, .early = early, .site = &site};
    return acs_memory_take(memory, &request, block);
}

static acs_block take(acs_memory *memory, int kind, size_t bytes)
{
    acs_block block = {0};
    assert_int_equal(ask(memory, kind, bytes, true, &block), ACS_OK);
    assert_int_equal((uintptr_t)block.ptr % ACS_ARENA_ALIGN, 0);
    assert_int_equal(block.bytes, bytes);
    assert_int_equal(block.kind, kind);
    return block;
}

static acs_status release_block(acs_memory *memory, const acs_block *block, acs_op last)
{
    acs_block freed;
    return block->range ? acs_memory_free(memory, block->ptr, last, &freed) : acs_memory_give(memory, block);
}

static void give(acs_memory *memory, acs_block block)
{
    assert_int_equal(release_block(memory, &block, 0), ACS_OK);
}

static void small_blocks_share_a_chunk_that_stays(void **state)
{
    (void)state;
    device d = {0};
    acs_memory *memory = open_pools(&d, true, 0);
    for (int round = 0; round < 100; round++) {
        acs_block blocks[20];
        for (int i = 0; i < 20; i++)
            blocks[i] = take(memory, ACS_MEMORY_DEVICE, 1000 + (size_t)i);
        for (int i = 0; i < 20; i++)
            give(memory, blocks[i]);
    }
    acs_memory_counts counts = acs_memory_count(memory, ACS_MEMORY_DEVICE);
    assert_int_equal(counts.obtained, 1);
    assert_int_equal(counts.reserved, 2 * MIB);
    assert_int_equal(counts.peak, 20 * 1024);
    close_pools(memory, &d);
}

static void sizes_and_kinds_have_chunks_of_their_own(void **state)
{
    (void)state;
    device d = {0};
    acs_memory *memory = open_pools(&d, true, 0);
    acs_block small = take(memory, ACS_MEMORY_DEVICE, MIB), large = take(memory, ACS_MEMORY_DEVICE, MIB + 1);
    acs_block host = take(memory, ACS_MEMORY_HOST, 1), own = take(memory, ACS_MEMORY_DEVICE, 33 * MIB);

    assert_int_equal(d.obtained, 4);
    assert_int_equal(acs_memory_count(memory, ACS_MEMORY_DEVICE).reserved, (2 + 32 + 34) * MIB);
    assert_int_equal(acs_memory_count(memory, ACS_MEMORY_HOST).reserved, 2 * MIB);
    give(memory, small);
    give(memory, large);
    give(memory, host);
    give(memory, own);
    close_pools(memory, &d);
}

static void apart_each_block_is_an_allocation(void **state)
{
    (void)state;
    device d = {0};
    acs_memory *memory = open_pools(&d, false, 5000);
    acs_block a = take(memory, ACS_MEMORY_DEVICE, 1000), b = take(memory, ACS_MEMORY_DEVICE, 4000), none;

    assert_null(a.range);
    assert_int_equal(ask(memory, ACS_MEMORY_DEVICE, 1, true, &none), ACS_ERR_MEMORY);
    assert_int_equal(acs_memory_count(memory, ACS_MEMORY_DEVICE).live, 5000);
    give(memory, a);
    assert_int_equal(d.released, 1);
    assert_int_equal(acs_memory_count(memory, ACS_MEMORY_DEVICE).reserved, 4000);
    give(memory, take(memory, ACS_MEMORY_DEVICE, 1000));
    give(memory, b);
    close_pools(memory, &d);
}

static void a_limit_is_kept_and_the_error_says_what_is_in_use(void **state)
{
    (void)state;
    device d = {0};
    acs_memory *memory = open_pools(&d, true, 40 * MIB);
    acs_block held = take(memory, ACS_MEMORY_DEVICE, 3 * MIB), none = {0};

    assert_int_equal(ask(memory, ACS_MEMORY_DEVICE, 35 * MIB, true, &none), ACS_ERR_MEMORY);
    assert_non_null(strstr(acs_error_thread()->text, "no 36700160 bytes of device memory: 3145728 are in use"));
    assert_non_null(strstr(acs_error_thread()->text, "the limit is 41943040"));
    assert_null(none.ptr);
    acs_block host = take(memory, ACS_MEMORY_HOST, 64 * MIB); /* the limit is the device's */
    acs_block more = take(memory, ACS_MEMORY_DEVICE, 20 * MIB); /* out of the chunk that there is */
    assert_int_equal(d.obtained, 2);
    give(memory, more);
    give(memory, host);
    give(memory, held);
    assert_int_equal(ask(memory, ACS_MEMORY_DEVICE, SIZE_MAX, true, &none), ACS_ERR_MEMORY);
    close_pools(memory, &d);
}

/* Of the other sizes' chunks, too: memory is memory. */
static void idle_chunks_make_room(void **state)
{
    (void)state;
    device d = {0};
    acs_memory *memory = open_pools(&d, true, 40 * MIB);
    acs_block small = take(memory, ACS_MEMORY_DEVICE, 100);
    give(memory, take(memory, ACS_MEMORY_DEVICE, 2 * MIB));
    acs_block large = take(memory, ACS_MEMORY_DEVICE, 38 * MIB);

    assert_int_equal(d.released, 1);
    assert_int_equal(acs_memory_count(memory, ACS_MEMORY_DEVICE).reserved, 40 * MIB);
    give(memory, large);
    give(memory, small);
    close_pools(memory, &d);
}

static void a_device_that_is_short_gives_no_more_than_has_to_be(void **state)
{
    (void)state;
    device d = {.most = 3 * MIB};
    acs_memory *memory = open_pools(&d, true, 0);
    acs_block block = take(memory, ACS_MEMORY_DEVICE, 2 * MIB + 100), none;
    assert_int_equal(d.last, 2 * MIB + ACS_ARENA_ALIGN);

    assert_int_equal(ask(memory, ACS_MEMORY_DEVICE, 4 * MIB, true, &none), ACS_ERR_MEMORY);
    assert_int_equal(acs_error_thread()->native, 2); /* the device's */
    assert_int_equal(acs_memory_count(memory, ACS_MEMORY_DEVICE).reserved, 2 * MIB + ACS_ARENA_ALIGN);
    give(memory, block);
    close_pools(memory, &d);
}

static void a_fault_is_handed_on(void **state)
{
    (void)state;
    device d = {.fault = ACS_ERR_DEVICE};
    for (int pooled = 0; pooled < 2; pooled++) {
        acs_memory *memory = open_pools(&d, pooled, 0);
        acs_block none;
        assert_int_equal(ask(memory, ACS_MEMORY_DEVICE, 100, true, &none), ACS_ERR_DEVICE);
        assert_int_equal(acs_memory_count(memory, ACS_MEMORY_DEVICE).reserved, 0);
        close_pools(memory, &d);
    }
}

static void trimming_keeps_what_is_in_use_and_what_is_to_be_kept(void **state)
{
    (void)state;
    device d = {0};
    acs_memory *memory = open_pools(&d, true, 0);
    acs_block blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = take(memory, ACS_MEMORY_DEVICE, 20 * MIB);
    give(memory, blocks[0]);
    give(memory, blocks[1]);

    assert_int_equal(acs_memory_trim(memory, ACS_MEMORY_DEVICE, 40 * MIB), ACS_OK);
    assert_int_equal(d.released, 0);
    assert_int_equal(acs_memory_trim(memory, ACS_MEMORY_DEVICE, 39 * MIB), ACS_OK);
    assert_int_equal(d.released, 1);
    assert_int_equal(acs_memory_trim(memory, ACS_MEMORY_DEVICE, 0), ACS_OK);
    assert_int_equal(d.released, 2);
    assert_int_equal(acs_memory_count(memory, ACS_MEMORY_DEVICE).reserved, 20 * MIB);
    give(memory, blocks[2]);
    close_pools(memory, &d);
}

/* -------------------------------------------------------------------------------------------------------------- rest */

static void give_behind(acs_memory *memory, acs_block block, acs_op last)
{
    assert_int_equal(release_block(memory, &block, last), ACS_OK);
}

static void a_block_rests_until_its_ops_have_ended(void **state)
{
    (void)state;
    device d = {0};
    acs_memory *memory = open_pools(&d, true, 0);
    acs_block first = take(memory, ACS_MEMORY_DEVICE, 1000);
    give_behind(memory, first, 7);
    acs_block second = take(memory, ACS_MEMORY_DEVICE, 1000);
    acs_memory_counts counts = acs_memory_count(memory, ACS_MEMORY_DEVICE);
    d.settled = 7;
    acs_block third = take(memory, ACS_MEMORY_DEVICE, 1000);

    assert_ptr_not_equal(first.ptr, second.ptr);
    assert_int_equal(counts.live, 1024);
    assert_int_equal(counts.quarantined, 1024);
    assert_int_equal(counts.peak, 2048);
    assert_ptr_equal(first.ptr, third.ptr);
    assert_int_equal(third.behind, 0);
    assert_int_equal(acs_memory_count(memory, ACS_MEMORY_DEVICE).early, 0);
    give(memory, second);
    give(memory, third);
    close_pools(memory, &d);
}

/* The oldest first; whoever gets it has to know behind what. */
static void what_rests_beyond_the_slack_is_handed_out_early(void **state)
{
    (void)state;
    device d = {0};
    acs_memory *memory = open_pools(&d, true, 0);
    acs_block first = take(memory, ACS_MEMORY_DEVICE, 20 * MIB), second = take(memory, ACS_MEMORY_DEVICE, 20 * MIB);
    give_behind(memory, first, 3);
    give_behind(memory, second, 5);
    acs_block early = take(memory, ACS_MEMORY_DEVICE, 20 * MIB), other = take(memory, ACS_MEMORY_DEVICE, 100);

    assert_ptr_equal(early.ptr, first.ptr);
    assert_int_equal(early.behind, 3);
    assert_int_equal(other.behind, 0); /* none of that size was given back */
    assert_int_equal(d.obtained, 3);
    assert_int_equal(acs_memory_count(memory, ACS_MEMORY_DEVICE).early, 1);
    assert_int_equal(acs_memory_quarantined_until(memory, ACS_MEMORY_DEVICE), 5);
    /* Freed again before op 3 has ended: what it is behind stays with it. */
    give_behind(memory, early, 2);
    d.settled = 2;
    assert_int_equal(acs_memory_trim(memory, ACS_MEMORY_DEVICE, 0), ACS_OK);
    assert_int_equal(d.released, 0);
    d.settled = 5;
    assert_int_equal(acs_memory_trim(memory, ACS_MEMORY_DEVICE, 0), ACS_OK);
    assert_int_equal(d.released, 2);
    assert_int_equal(acs_memory_quarantined_until(memory, ACS_MEMORY_DEVICE), 0);
    give(memory, other);
    close_pools(memory, &d);
}

/* What the device no longer gives need not have been waited for. */
static void a_short_device_has_what_rests_handed_out_early(void **state)
{
    (void)state;
    device d = {0};
    acs_memory *memory = open_pools(&d, true, 2 * MIB);
    acs_block half = take(memory, ACS_MEMORY_DEVICE, MIB), other = take(memory, ACS_MEMORY_DEVICE, MIB);
    give_behind(memory, half, 9);
    acs_block early = take(memory, ACS_MEMORY_DEVICE, MIB), none;

    assert_int_equal(early.behind, 9);
    give_behind(memory, other, 10);
    give_behind(memory, early, 11);
    assert_int_equal(ask(memory, ACS_MEMORY_DEVICE, MIB, false, &none), ACS_ERR_MEMORY); /* cannot order */
    d.settled = 11;
    assert_int_equal(ask(memory, ACS_MEMORY_DEVICE, MIB, false, &none), ACS_OK);
    assert_int_equal(none.behind, 0);
    give(memory, none);
    close_pools(memory, &d);
}

/* The CPU may touch it at once, so nobody gets it early; nor is ever more of it reserved while one op takes its time. */
static void pinned_memory_is_waited_for(void **state)
{
    (void)state;
    device d = {0};
    acs_memory *memory = open_pools(&d, true, 0);
    acs_block large = take(memory, ACS_MEMORY_HOST, 20 * MIB), none, oldest;
    give_behind(memory, large, 4);
    assert_int_equal(ask(memory, ACS_MEMORY_HOST, 20 * MIB, true, &none), ACS_NOT_READY);
    assert_true(acs_memory_oldest_quarantined(memory, ACS_MEMORY_HOST, &oldest));
    assert_ptr_equal(oldest.ptr, large.ptr);
    acs_memory_end_quarantine(memory, &oldest);
    assert_false(acs_memory_oldest_quarantined(memory, ACS_MEMORY_HOST, &none));
    acs_memory_end_quarantine(memory, &oldest);
    acs_block again = take(memory, ACS_MEMORY_HOST, 20 * MIB);

    assert_ptr_equal(again.ptr, large.ptr);
    assert_int_equal(again.behind, 0);
    assert_int_equal(d.obtained, 1);
    give(memory, again);
    close_pools(memory, &d);
}

static acs_memory_place place_of(acs_memory *memory, const void *ptr, uint64_t offset, acs_block *block)
{
    return acs_memory_find(memory, (uint64_t)(uintptr_t)ptr + offset, block);
}

static void addresses_of_pools_are_known(void **state)
{
    (void)state;
    device d = {0};
    acs_memory *memory = open_pools(&d, true, 0);
    acs_block small = take(memory, ACS_MEMORY_DEVICE, 100), next = take(memory, ACS_MEMORY_DEVICE, 100), found;
    acs_block host = take(memory, ACS_MEMORY_HOST, 20 * MIB);

    assert_int_equal(place_of(memory, small.ptr, 0, &found), ACS_PLACE_BLOCK);
    assert_int_equal(place_of(memory, next.ptr, 255, &found), ACS_PLACE_BLOCK);
    assert_ptr_equal(found.ptr, next.ptr);
    assert_int_equal(found.bytes, 100);
    assert_string_equal(found.site->file, "program.c");
    assert_int_equal(place_of(memory, next.ptr, 256, &found), ACS_PLACE_IDLE);
    assert_int_equal(place_of(memory, small.ptr, 2 * MIB - 1, &found), ACS_PLACE_IDLE);
    assert_int_equal(place_of(memory, host.ptr, 19 * MIB, &found), ACS_PLACE_BLOCK);
    assert_int_equal(place_of(memory, small.ptr, UINT64_MAX, &found), ACS_PLACE_FOREIGN); /* the byte before */
    assert_int_equal(place_of(memory, NULL, 0, &found), ACS_PLACE_FOREIGN);
    assert_int_equal(place_of(memory, NULL, UINT64_MAX, &found), ACS_PLACE_FOREIGN);
    give_behind(memory, small, 6);
    assert_int_equal(place_of(memory, small.ptr, 99, &found), ACS_PLACE_FREED);
    assert_int_equal(found.behind, 6);
    give(memory, host);
    assert_int_equal(acs_memory_trim(memory, ACS_MEMORY_HOST, 0), ACS_OK);
    assert_int_equal(place_of(memory, host.ptr, 0, &found), ACS_PLACE_FOREIGN);
    give(memory, next);
    close_pools(memory, &d);
}

/* Who can do without is told no, no error is made, and nothing is released for it. */
static void what_is_optional_takes_nothing_from_others(void **state)
{
    (void)state;
    static const acs_site site = {"acs_malloc", "program.c", 7};
    device d = {0};
    acs_memory *memory = open_pools(&d, true, 34 * MIB);
    const acs_memory_request request = {.bytes = 20 * MIB, .kind = ACS_MEMORY_DEVICE, .optional = true, .site = &site};
    acs_block block, kept = take(memory, ACS_MEMORY_DEVICE, 2 * MIB), idle = take(memory, ACS_MEMORY_DEVICE, 100);
    give(memory, idle);
    *acs_error_thread() = (acs_error){0};
    assert_int_equal(acs_memory_take(memory, &request, &block), ACS_OK);
    assert_int_equal(block.behind, 0);
    acs_block none;
    assert_int_equal(acs_memory_take(memory, &request, &none), ACS_NOT_READY);
    assert_int_equal(acs_error_thread()->status, ACS_OK);
    assert_int_equal(d.released, 0);
    give_behind(memory, block, 9);
    assert_int_equal(acs_memory_take(memory, &request, &none), ACS_NOT_READY); /* ops use it */
    d.settled = 9;
    assert_int_equal(acs_memory_take(memory, &request, &none), ACS_OK);
    give(memory, none);
    give(memory, kept);
    close_pools(memory, &d);
}

static void frees_that_are_wrong_say_why(void **state)
{
    (void)state;
    device d = {0};
    acs_memory *memory = open_pools(&d, true, 0);
    acs_block block = take(memory, ACS_MEMORY_DEVICE, 1000);
    char *ptr = block.ptr;
    assert_int_equal(acs_memory_free(memory, ptr + 8, 0, &block), ACS_ERR_ARGUMENT);
    assert_non_null(strstr(acs_error_thread()->text, "lies 8 bytes inside the block of 1000 bytes"));
    assert_non_null(strstr(acs_error_thread()->text, "program.c:7"));
    give_behind(memory, block, 3);
    assert_int_equal(acs_memory_free(memory, ptr, 0, &block), ACS_ERR_ARGUMENT);
    assert_non_null(strstr(acs_error_thread()->text, "freed before, behind op 3, as the block of 1000 bytes"));
    assert_int_equal(acs_memory_free(memory, &d, 0, &block), ACS_ERR_ARGUMENT);
    assert_non_null(strstr(acs_error_thread()->text, "is not a block of acs_malloc"));
    close_pools(memory, &d);
}

static void count_block(void *user, const acs_block *block)
{
    *(size_t *)user += block->bytes;
}

/* At the end they go back, too. */
static void blocks_that_are_out_are_listed(void **state)
{
    (void)state;
    device d = {0};
    size_t bytes = 0;
    acs_memory *memory = open_pools(&d, true, 0);
    (void)take(memory, ACS_MEMORY_DEVICE, 1000);
    give(memory, take(memory, ACS_MEMORY_DEVICE, 7));
    (void)take(memory, ACS_MEMORY_HOST, 20 * MIB);
    acs_memory_each(memory, count_block, &bytes);
    assert_int_equal(bytes, 1000 + 20 * MIB);
    acs_memory_destroy(memory, false);
    assert_int_equal(d.released, d.obtained);
}

/* All are tried: when the pools are closed nobody comes back for the others. */
static void a_chunk_that_cannot_be_released_keeps_none_of_the_others(void **state)
{
    (void)state;
    for (int close = 0; close < 2; close++) {
        device d = {.refuse = 2};
        acs_memory *memory = open_pools(&d, true, 0);
        acs_block blocks[4];
        for (int i = 0; i < 4; i++)
            blocks[i] = take(memory, ACS_MEMORY_DEVICE, 40 * MIB);
        for (int i = 0; i < 4; i++)
            give(memory, blocks[i]);
        assert_int_equal(d.obtained, 4);
        if (!close) {
            assert_int_equal(acs_memory_trim(memory, ACS_MEMORY_DEVICE, 0), ACS_ERR_DEVICE);
            assert_int_equal(d.released, 4);
            assert_int_equal(acs_memory_count(memory, ACS_MEMORY_DEVICE).reserved, 0);
        }
        close_pools(memory, &d);
    }
}

/* ----------------------------------------------------------------------------------------------------------- threads */

typedef struct taker {
    acs_memory *memory;
    uint64_t seed;
    uint32_t wrong, refused;
} taker;

static bool holds_only(const acs_block *block, unsigned char value)
{
    const unsigned char *bytes = block->ptr;
    return bytes[0] == value && bytes[block->bytes / 2] == value && bytes[block->bytes - 1] == value;
}

/* Each block is marked at both ends and in the middle, and has to have its marks when it is given back. */
static void *take_and_give(void *argument)
{
    taker *t = argument;
    acs_random random = {t->seed};
    acs_block held[HELD] = {{0}};
    for (uint32_t i = 0; i < ROUNDS + HELD; i++) {
        uint32_t place = i < ROUNDS ? acs_random_below(&random, HELD) : i - ROUNDS;
        unsigned char value = (unsigned char)(t->seed * HELD + place);
        if (held[place].ptr) {
            t->wrong += !holds_only(&held[place], value);
            t->wrong += release_block(t->memory, &held[place], 0) != ACS_OK;
            held[place].ptr = NULL;
        } else if (i < ROUNDS) {
            size_t bytes = 1 + acs_random_below(&random, 1u << acs_random_below(&random, 22));
            if (ask(t->memory, ACS_MEMORY_DEVICE, bytes, true, &held[place]) == ACS_OK)
                memset(held[place].ptr, value, bytes);
            else
                t->refused++;
        }
    }
    return NULL;
}

static void threads_never_share_a_block(void **state)
{
    (void)state;
    for (int tight = 0; tight < 2; tight++) {
        device d = {0};
        acs_memory *memory = open_pools(&d, true, tight ? 34 * MIB : 0);
        taker takers[THREADS];
        pthread_t threads[THREADS];
        for (uint64_t i = 0; i < THREADS; i++) {
            takers[i] = (taker){.memory = memory, .seed = 1 + i};
            assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &takers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(takers[i].wrong, 0);
            assert_true(tight || takers[i].refused == 0);
        }
        close_pools(memory, &d);
    }
}

/* Blocks that fit together are never refused: what another thread is about to add is waited for. */
static void *take_hold_and_give(void *argument)
{
    taker *t = argument;
    for (uint32_t i = 0; i < ROUNDS / 20; i++) {
        acs_block block;
        if (ask(t->memory, ACS_MEMORY_DEVICE, 4 * MIB, true, &block) != ACS_OK)
            t->refused++;
        else
            t->wrong += release_block(t->memory, &block, 0) != ACS_OK;
        if (i % 8 == 0)
            t->wrong += acs_memory_trim(t->memory, ACS_MEMORY_DEVICE, 0) != ACS_OK;
    }
    return NULL;
}

static void what_fits_together_is_never_refused(void **state)
{
    (void)state;
    device d = {.slow = true};
    acs_memory *memory = open_pools(&d, true, 32 * MIB);
    taker takers[THREADS];
    pthread_t threads[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        takers[i] = (taker){.memory = memory, .seed = 1 + i};
        assert_int_equal(pthread_create(&threads[i], NULL, take_hold_and_give, &takers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(takers[i].wrong, 0);
        assert_int_equal(takers[i].refused, 0);
    }
    close_pools(memory, &d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_blocks_share_a_chunk_that_stays),
        cmocka_unit_test(sizes_and_kinds_have_chunks_of_their_own),
        cmocka_unit_test(apart_each_block_is_an_allocation),
        cmocka_unit_test(a_limit_is_kept_and_the_error_says_what_is_in_use),
        cmocka_unit_test(idle_chunks_make_room),
        cmocka_unit_test(a_device_that_is_short_gives_no_more_than_has_to_be),
        cmocka_unit_test(a_fault_is_handed_on),
        cmocka_unit_test(trimming_keeps_what_is_in_use_and_what_is_to_be_kept),
        cmocka_unit_test(a_block_rests_until_its_ops_have_ended),
        cmocka_unit_test(what_rests_beyond_the_slack_is_handed_out_early),
        cmocka_unit_test(a_short_device_has_what_rests_handed_out_early),
        cmocka_unit_test(pinned_memory_is_waited_for),
        cmocka_unit_test(addresses_of_pools_are_known),
        cmocka_unit_test(what_is_optional_takes_nothing_from_others),
        cmocka_unit_test(frees_that_are_wrong_say_why),
        cmocka_unit_test(blocks_that_are_out_are_listed),
        cmocka_unit_test(a_chunk_that_cannot_be_released_keeps_none_of_the_others),
        cmocka_unit_test(threads_never_share_a_block),
        cmocka_unit_test(what_fits_together_is_never_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

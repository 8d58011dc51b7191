/*
 * Unit tests of pool/pages through pool/memory: growth that joins, pieces that move to where they are missing, limits, what
 * goes back, devices that fail at each call, random sequences against a model of what is mapped, and threads. But for the
 * threads, addresses are numbers: pools never touch what they hand out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/host_kernel.h"
#include "pool/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PAGES = 4096, PIECES = 4096, THREADS = 4, ROUNDS = 4000, HELD = 12 };
static const size_t MIB = (size_t)1 << 20;
#define PAGE (2 * MIB)
#define FIRST ((uint64_t)1 << 44) /* address of page 0 */

/* Which piece is behind each page, and which pieces there are. The calls that are to fail are counted from 1. */
typedef struct device {
    uint32_t piece_of[PAGES];  /* 0: none */
    uint64_t piece_bytes[PIECES];
    bool mapped[PIECES];
    uint32_t pieces, next_page, reserved_spans;
    uint64_t physical, physical_most; /* bytes; 0: as many as wanted */
    uint32_t calls, fail_at, wrong;
    acs_status fault;
    bool no_addresses;
    acs_op settled;
} device;

static acs_status may_fail(device *d)
{
    bool fails = ++d->calls == d->fail_at;
    return fails ? ACS_FAIL(d->fault, 2, "the device refused call %u", d->calls) : ACS_OK;
}

static acs_status reserve(void *user, size_t bytes, uint64_t *base)
{
    device *d = user;
    if (d->no_addresses)
        return ACS_FAIL(ACS_ERR_MEMORY, 2, "no addresses");
    ACS_TRY(may_fail(d));
    *base = FIRST + d->next_page * PAGE;
    d->next_page += (uint32_t)(bytes / PAGE) + 1; /* spans do not touch */
    d->reserved_spans++;
    d->wrong += bytes % PAGE != 0 || d->next_page > PAGES;
    return ACS_OK;
}

static acs_status unreserve(void *user, uint64_t base, size_t bytes)
{
    device *d = user;
    for (uint64_t page = (base - FIRST) / PAGE; page < (base - FIRST + bytes) / PAGE; page++)
        d->wrong += d->piece_of[page] != 0;
    d->reserved_spans--;
    return ACS_OK;
}

static acs_status create(void *user, size_t bytes, uint64_t *piece)
{
    device *d = user;
    ACS_TRY(may_fail(d));
    if (d->physical_most && d->physical + bytes > d->physical_most)
        return ACS_FAIL(ACS_ERR_MEMORY, 2, "out of memory");
    assert_true(d->pieces + 1 < PIECES && bytes % PAGE == 0 && bytes > 0);
    *piece = ++d->pieces;
    d->piece_bytes[*piece] = bytes;
    d->physical += bytes;
    return ACS_OK;
}

static acs_status destroy(void *user, uint64_t piece, size_t bytes)
{
    device *d = user;
    d->wrong += d->piece_bytes[piece] != bytes || d->mapped[piece];
    d->physical -= bytes;
    d->piece_bytes[piece] = 0;
    return ACS_OK;
}

static acs_status map(void *user, uint64_t base, size_t bytes, uint64_t piece)
{
    device *d = user;
    ACS_TRY(may_fail(d));
    d->wrong += d->piece_bytes[piece] != bytes || d->mapped[piece];
    for (uint64_t page = (base - FIRST) / PAGE; page < (base - FIRST + bytes) / PAGE; page++) {
        d->wrong += d->piece_of[page] != 0;
        d->piece_of[page] = (uint32_t)piece;
    }
    d->mapped[piece] = true;
    return ACS_OK;
}

/* Whole pieces. */
static acs_status unmap(void *user, uint64_t base, size_t bytes)
{
    device *d = user;
    ACS_TRY(may_fail(d));
    uint64_t from = (base - FIRST) / PAGE, to = from + bytes / PAGE;
    d->wrong += from > 0 && d->piece_of[from] == d->piece_of[from - 1];
    d->wrong += to < PAGES && d->piece_of[to] != 0 && d->piece_of[to] == d->piece_of[to - 1];
    for (uint64_t page = from; page < to; page++) {
        d->wrong += d->piece_of[page] == 0;
        d->mapped[d->piece_of[page]] = false;
        d->piece_of[page] = 0;
    }
    return ACS_OK;
}

static acs_status obtain(void *user, int kind, size_t bytes, void **ptr)
{
    (void)user, (void)kind;
    *ptr = aligned_alloc(ACS_ARENA_ALIGN, bytes);
    return *ptr ? ACS_OK : ACS_FAIL(ACS_ERR_MEMORY, 2, "out of memory");
}

static acs_status release(void *user, int kind, void *ptr, size_t bytes)
{
    (void)user, (void)kind, (void)bytes;
    free(ptr);
    return ACS_OK;
}

static acs_op settled(void *user)
{
    return ((device *)user)->settled;
}

static acs_memory *open_pages(device *d, const acs_page_ops *ops, uint64_t limit)
{
    acs_memory *memory = NULL;
    const acs_memory_config config = {.pooled = true, .limit = limit, .slack = 4 * MIB, .user = d, .obtain = obtain,
                                      .release = release, .settled = settled, .pages = ops, .page_user = d};
    assert_int_equal(acs_memory_create(&config, &memory), ACS_OK);
    return memory;
}

static acs_page_ops ops_of(size_t span_mib)
{
    return (acs_page_ops){PAGE, span_mib * MIB, reserve, unreserve, create, destroy, map, unmap};
}

static void close_pages(acs_memory *memory, device *d)
{
    acs_memory_destroy(memory, false);
    assert_int_equal(d->physical, 0);
    assert_int_equal(d->reserved_spans, 0);
    assert_int_equal(d->wrong, 0);
}

static acs_status ask(acs_memory *memory, size_t bytes, bool early, acs_block *block)
{
    const acs_memory_request request = {.bytes = bytes, .kind = ACS_MEMORY_DEVICE, .early = early};
    return acs_memory_take(memory, &request, block);
}

/* Memory is behind all of it. */
static void check_block(const device *d, const acs_block *block)
{
    uint64_t base = (uint64_t)(uintptr_t)block->ptr - FIRST;
    assert_int_equal(base % ACS_ARENA_ALIGN, 0);
    for (uint64_t page = base / PAGE; page <= (base + block->bytes - 1) / PAGE; page++)
        assert_true(page < PAGES && d->piece_of[page] != 0);
}

static acs_block take(acs_memory *memory, const device *d, size_t mib)
{
    acs_block block = {0};
    assert_int_equal(ask(memory, mib * MIB, true, &block), ACS_OK);
    check_block(d, &block);
    return block;
}

static void give_behind(acs_memory *memory, acs_block block, acs_op last)
{
    assert_int_equal(acs_memory_free(memory, block.ptr, last, &block), ACS_OK);
}

static acs_memory_counts counts_of(acs_memory *memory)
{
    return acs_memory_count(memory, ACS_MEMORY_DEVICE);
}

static void what_came_bit_by_bit_is_one(void **state)
{
    (void)state;
    device *d = calloc(1, sizeof *d);
    const acs_page_ops ops = ops_of(1024);
    acs_memory *memory = open_pages(d, &ops, 0);
    acs_block blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = take(memory, d, 20);
    for (int i = 0; i < 8; i++)
        give_behind(memory, blocks[i], 0);
    uint64_t physical = d->physical;
    acs_block all = take(memory, d, 160);
    assert_ptr_equal(all.ptr, blocks[0].ptr);
    assert_int_equal(d->physical, physical);
    assert_int_equal(counts_of(memory).moved, 0);
    give_behind(memory, all, 0);
    close_pages(memory, d);
    free(d);
}

/* Every other block is free: together enough, but nowhere in one place. */
static void idle_pieces_move_to_where_they_are_missing(void **state)
{
    (void)state;
    device *d = calloc(1, sizeof *d);
    const acs_page_ops ops = ops_of(2048);
    acs_memory *memory = open_pages(d, &ops, 0);
    acs_block blocks[20];
    for (int i = 0; i < 20; i++)
        blocks[i] = take(memory, d, 32);
    uint64_t reserved = counts_of(memory).reserved;
    for (int i = 0; i < 20; i += 2)
        give_behind(memory, blocks[i], 0);
    acs_block large = take(memory, d, 200);
    acs_memory_counts counts = counts_of(memory);
    assert_true(counts.moved >= 100 * MIB);
    assert_true(counts.reserved <= reserved + 64 * MIB);
    assert_int_equal(counts.reserved, d->physical);
    for (int i = 1; i < 20; i += 2) {
        check_block(d, &blocks[i]);
        give_behind(memory, blocks[i], 0);
    }
    give_behind(memory, large, 0);
    close_pages(memory, d);
    free(d);
}

/* What ops may still use stays where it is. */
static void what_is_in_use_does_not_move(void **state)
{
    (void)state;
    device *d = calloc(1, sizeof *d);
    const acs_page_ops ops = ops_of(1024);
    acs_memory *memory = open_pages(d, &ops, 96 * MIB);
    acs_block blocks[3], large = take(memory, d, 96);
    give_behind(memory, large, 0);
    for (int i = 0; i < 3; i++)
        blocks[i] = take(memory, d, 32);
    give_behind(memory, blocks[0], 7);
    give_behind(memory, blocks[2], 7);
    assert_int_equal(ask(memory, 64 * MIB, false, &large), ACS_ERR_MEMORY);
    assert_int_equal(counts_of(memory).moved, 0);
    check_block(d, &blocks[0]);
    d->settled = 7;
    assert_int_equal(ask(memory, 64 * MIB, false, &large), ACS_OK);
    assert_int_equal(large.behind, 0);
    assert_true(counts_of(memory).moved > 0);
    check_block(d, &blocks[1]);
    assert_int_equal(d->physical, 96 * MIB);
    check_block(d, &large);
    close_pages(memory, d);
    free(d);
}

static void trimming_gives_idle_pieces_back(void **state)
{
    (void)state;
    device *d = calloc(1, sizeof *d);
    const acs_page_ops ops = ops_of(1024);
    acs_memory *memory = open_pages(d, &ops, 0);
    acs_block kept = take(memory, d, 16), a = take(memory, d, 64), b = take(memory, d, 32), found;
    give_behind(memory, a, 0);
    give_behind(memory, b, 0);
    assert_int_equal(acs_memory_trim(memory, ACS_MEMORY_DEVICE, 48 * MIB), ACS_OK);
    assert_true(counts_of(memory).reserved <= (16 + 48) * MIB);
    assert_true(counts_of(memory).reserved >= 32 * MIB);
    assert_int_equal(acs_memory_trim(memory, ACS_MEMORY_DEVICE, 0), ACS_OK);
    assert_int_equal(counts_of(memory).reserved, d->physical);
    assert_true(d->physical < 32 * MIB); /* the piece that the block shares */
    check_block(d, &kept);
    assert_int_equal(acs_memory_find(memory, (uint64_t)(uintptr_t)a.ptr + 1, &found), ACS_PLACE_FREED);
    a = take(memory, d, 64);
    give_behind(memory, a, 0);
    give_behind(memory, kept, 0);
    close_pages(memory, d);
    free(d);
}

static void a_block_is_found_by_any_address_in_it(void **state)
{
    (void)state;
    device *d = calloc(1, sizeof *d);
    const acs_page_ops ops = ops_of(4096);
    acs_memory *memory = open_pages(d, &ops, 0);
    acs_block small = take(memory, d, 3), large = take(memory, d, 3000), found = {0};
    assert_int_equal(acs_memory_find(memory, (uint64_t)(uintptr_t)large.ptr + 2999 * MIB, &found), ACS_PLACE_BLOCK);
    assert_ptr_equal(found.ptr, large.ptr);
    assert_int_equal(acs_memory_find(memory, (uint64_t)(uintptr_t)large.ptr + 3001 * MIB, &found), ACS_PLACE_IDLE);
    give_behind(memory, small, 0);
    give_behind(memory, large, 0);
    close_pages(memory, d);
    free(d);
}

static void spans_follow_each_other(void **state)
{
    (void)state;
    device *d = calloc(1, sizeof *d);
    const acs_page_ops ops = ops_of(64);
    acs_memory *memory = open_pages(d, &ops, 0);
    acs_block a = take(memory, d, 60), b = take(memory, d, 60), c = take(memory, d, 200);
    assert_int_equal(d->reserved_spans, 3); /* the last one larger than usual */
    give_behind(memory, a, 0);
    give_behind(memory, b, 0);
    give_behind(memory, c, 0);
    close_pages(memory, d);
    free(d);
}

static void without_addresses_there_are_chunks(void **state)
{
    (void)state;
    device *d = calloc(1, sizeof *d);
    const acs_page_ops ops = ops_of(64);
    acs_block block;
    d->no_addresses = true;
    acs_memory *memory = open_pages(d, &ops, 0);
    assert_int_equal(ask(memory, 20 * MIB, true, &block), ACS_OK);
    assert_int_equal(d->calls, 0);
    assert_int_equal(counts_of(memory).obtained, 1);
    memset(block.ptr, 1, block.bytes);
    give_behind(memory, block, 0);
    close_pages(memory, d);
    free(d);
}

/* A block that no machine has says nothing of addresses. */
static void a_block_that_is_too_large_is_refused_and_no_more(void **state)
{
    (void)state;
    device *d = calloc(1, sizeof *d);
    const acs_page_ops ops = ops_of(64);
    acs_block block;
    d->no_addresses = true; /* for its span */
    acs_memory *memory = open_pages(d, &ops, 0);
    assert_int_equal(ask(memory, (size_t)1 << 40, true, &block), ACS_ERR_MEMORY);
    d->no_addresses = false;
    block = take(memory, d, 20);
    give_behind(memory, block, 0);
    close_pages(memory, d);
    free(d);
}

/* Whole pages do not fit the limit, but the block does. */
static void a_limit_that_is_no_multiple_of_a_page_is_used(void **state)
{
    (void)state;
    device *d = calloc(1, sizeof *d);
    const acs_page_ops ops = ops_of(64);
    acs_block block, more;
    acs_memory *memory = open_pages(d, &ops, 5 * MIB);
    assert_int_equal(ask(memory, 9 * MIB / 2, true, &block), ACS_OK);
    memset(block.ptr, 1, block.bytes);
    assert_int_equal(ask(memory, 2 * MIB, true, &more), ACS_ERR_MEMORY);
    give_behind(memory, block, 0);
    more = take(memory, d, 2); /* for which the chunk goes back */
    give_behind(memory, more, 0);
    close_pages(memory, d);
    free(d);
}

/* What the device has idle elsewhere is found before the program is told that there is none. */
static void a_device_that_is_full_is_used_to_the_end(void **state)
{
    (void)state;
    device *d = calloc(1, sizeof *d);
    const acs_page_ops ops = ops_of(1024);
    acs_block blocks[8], block;
    d->physical_most = 256 * MIB;
    acs_memory *memory = open_pages(d, &ops, 0);
    for (int i = 0; i < 8; i++)
        blocks[i] = take(memory, d, 32);
    assert_int_equal(ask(memory, 2 * MIB, true, &block), ACS_ERR_MEMORY);
    assert_non_null(strstr(acs_error_thread()->text, "no 2097152 bytes of device memory: 268435456 are in use"));
    for (int i = 0; i < 8; i += 2)
        give_behind(memory, blocks[i], 0);
    block = take(memory, d, 128);
    assert_int_equal(d->physical, 256 * MIB);
    close_pages(memory, d);
    free(d);
}

/* ------------------------------------------------------------------------------------------------------- failing calls */

/* Takes, frees, moves and trims; refusals are borne. */
static void scenario(acs_memory *memory, const device *d)
{
    acs_block blocks[12] = {{0}};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 12; i++)
            if (!blocks[i].ptr && ask(memory, (size_t)(8 + 3 * i) * MIB, true, &blocks[i]) != ACS_OK)
                blocks[i].ptr = NULL;
        for (int i = 0; i < 12; i++) {
            if (blocks[i].ptr)
                check_block(d, &blocks[i]);
            if (blocks[i].ptr && i % 2 == round) {
                give_behind(memory, blocks[i], 0);
                blocks[i].ptr = NULL;
            }
        }
        acs_block large;
        if (ask(memory, 90 * MIB, true, &large) == ACS_OK) {
            check_block(d, &large);
            give_behind(memory, large, 0);
        }
        (void)acs_memory_trim(memory, ACS_MEMORY_DEVICE, (size_t)round * 64 * MIB);
    }
    for (int i = 0; i < 12; i++)
        if (blocks[i].ptr)
            give_behind(memory, blocks[i], 0);
}

static void each_call_that_fails_loses_nothing(void **state)
{
    (void)state;
    static const acs_status faults[] = {ACS_ERR_MEMORY, ACS_ERR_DEVICE};
    device *d = calloc(1, sizeof *d);
    for (size_t f = 0; f < 2; f++) {
        bool failed = true;
        for (uint32_t n = 2; failed; n++) { /* without a first span there are chunks: see above */
            const acs_page_ops ops = ops_of(512);
            memset(d, 0, sizeof *d);
            d->fail_at = n;
            d->fault = faults[f];
            acs_memory *memory = open_pages(d, &ops, 320 * MIB);
            scenario(memory, d);
            failed = d->calls >= n;
            d->fail_at = 0;
            assert_int_equal(counts_of(memory).live, 0);
            assert_int_equal(counts_of(memory).reserved, d->physical);
            close_pages(memory, d);
        }
        assert_true(d->calls > 30);
    }
    free(d);
}

/* Of two places that are to go one stays. */
static void a_place_that_cannot_be_left_keeps_none_of_the_others(void **state)
{
    (void)state;
    static device fresh, *const d = &fresh;
    const acs_page_ops ops = ops_of(512);
    acs_memory *memory = open_pages(d, &ops, 0);
    const acs_block blocks[] = {take(memory, d, 64), take(memory, d, 64), take(memory, d, 64), take(memory, d, 64)};
    for (int i = 0; i < 4; i += 2)
        give_behind(memory, blocks[i], 0);
    d->fault = ACS_ERR_DEVICE;
    d->fail_at = d->calls + 1;
    assert_int_equal(acs_memory_trim(memory, ACS_MEMORY_DEVICE, 0), ACS_ERR_DEVICE);
    assert_in_range(d->physical, 2 * 64 * MIB, 3 * 64 * MIB);
    assert_int_equal(counts_of(memory).reserved, d->physical); /* blocks that are out go back at the end */
    close_pages(memory, d);
}

/* ----------------------------------------------------------------------------------------------------------- at random */

static bool apart(const acs_block *blocks, uint32_t count, const acs_block *block)
{
    for (uint32_t i = 0; i < count; i++)
        if (blocks[i].ptr && (char *)blocks[i].ptr < (char *)block->ptr + block->bytes &&
            (char *)block->ptr < (char *)blocks[i].ptr + blocks[i].bytes)
            return false;
    return true;
}

static void random_step(acs_memory *memory, device *d, acs_random *random, acs_block *blocks, uint32_t count, acs_op *op)
{
    uint32_t place = acs_random_below(random, count);
    d->settled = *op > 3 ? *op - acs_random_below(random, 4) : *op;
    ++*op;
    if (blocks[place].ptr) {
        check_block(d, &blocks[place]);
        give_behind(memory, blocks[place], *op);
        blocks[place].ptr = NULL;
        return;
    }
    acs_block block;
    size_t bytes = MIB + 1 + acs_random_below(random, (1u << (1 + acs_random_below(random, 6))) * (uint32_t)MIB);
    if (ask(memory, bytes, acs_random_below(random, 2), &block) == ACS_OK) {
        check_block(d, &block);
        assert_true(apart(blocks, count, &block));
        blocks[place] = block;
    }
    if (acs_random_below(random, 64) == 0)
        (void)acs_memory_trim(memory, ACS_MEMORY_DEVICE, acs_random_below(random, 64) * MIB);
}

static void random_sequences_have_memory_behind_every_block(void **state)
{
    (void)state;
    device *d = calloc(1, sizeof *d);
    for (uint64_t seed = 1; seed <= 40; seed++) {
        acs_random random = {seed};
        acs_block blocks[24] = {{0}};
        const acs_page_ops ops = ops_of(seed % 2 ? 4096 : 512);
        const uint64_t limit = seed % 4 == 0 ? 400 * MIB : 0;
        acs_op op = 0;
        memset(d, 0, sizeof *d);
        d->physical_most = seed % 4 == 1 ? 300 * MIB : 0;
        acs_memory *memory = open_pages(d, &ops, limit);
        for (int i = 0; i < 2000 && d->pieces < PIECES - 64; i++) {
            random_step(memory, d, &random, blocks, 24, &op);
            acs_memory_counts counts = counts_of(memory);
            assert_int_equal(counts.reserved, d->physical);
            assert_true(!limit || counts.reserved <= limit);
            assert_int_equal(d->wrong, 0);
        }
        d->settled = op;
        for (int i = 0; i < 24; i++)
            if (blocks[i].ptr)
                give_behind(memory, blocks[i], op);
        close_pages(memory, d);
    }
    free(d);
}

/* ------------------------------------------------------------------------------------------------------------- threads */

typedef struct taker {
    acs_memory *memory;
    uint64_t seed;
    uint32_t wrong;
} taker;

/* Each block is marked at both ends; a page that was taken away under it is a fault. */
static void *take_and_give(void *argument)
{
    taker *t = argument;
    acs_random random = {t->seed};
    acs_block held[HELD] = {{0}}, freed;
    for (uint32_t i = 0; i < ROUNDS + HELD; i++) {
        uint32_t place = i < ROUNDS ? acs_random_below(&random, HELD) : i - ROUNDS;
        unsigned char value = (unsigned char)(t->seed * HELD + place), *bytes = held[place].ptr;
        if (bytes) {
            t->wrong += bytes[0] != value || bytes[held[place].bytes - 1] != value;
            t->wrong += acs_memory_free(t->memory, bytes, 0, &freed) != ACS_OK;
            held[place].ptr = NULL;
        } else if (i < ROUNDS && ask(t->memory, MIB + acs_random_below(&random, 6 << 20), true, &held[place]) == ACS_OK) {
            bytes = held[place].ptr;
            bytes[0] = bytes[held[place].bytes - 1] = value;
        }
        if (i % 256 == 0)
            t->wrong += acs_memory_trim(t->memory, ACS_MEMORY_DEVICE, 16 * MIB) != ACS_OK;
    }
    return NULL;
}

static void threads_share_pages_and_no_block(void **state)
{
    (void)state;
    for (int tight = 0; tight < 2; tight++) {
        device d = {.settled = 0};
        acs_memory *memory = open_pages(&d, &acs_host_pages, tight ? 96 * MIB : 0);
        taker takers[THREADS];
        pthread_t threads[THREADS];
        for (uint64_t i = 0; i < THREADS; i++) {
            takers[i] = (taker){.memory = memory, .seed = 1 + i};
            assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &takers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(takers[i].wrong, 0);
        }
        assert_int_equal(counts_of(memory).live, 0);
        acs_memory_destroy(memory, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_came_bit_by_bit_is_one),
        cmocka_unit_test(idle_pieces_move_to_where_they_are_missing),
        cmocka_unit_test(what_is_in_use_does_not_move),
        cmocka_unit_test(trimming_gives_idle_pieces_back),
        cmocka_unit_test(a_block_is_found_by_any_address_in_it),
        cmocka_unit_test(spans_follow_each_other),
        cmocka_unit_test(without_addresses_there_are_chunks),
        cmocka_unit_test(a_block_that_is_too_large_is_refused_and_no_more),
        cmocka_unit_test(a_limit_that_is_no_multiple_of_a_page_is_used),
        cmocka_unit_test(a_device_that_is_full_is_used_to_the_end),
        cmocka_unit_test(each_call_that_fails_loses_nothing),
        cmocka_unit_test(a_place_that_cannot_be_left_keeps_none_of_the_others),
        cmocka_unit_test(random_sequences_have_memory_behind_every_block),
        cmocka_unit_test(threads_share_pages_and_no_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

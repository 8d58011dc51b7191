/*
 * The public API's memory: blocks out of pools and apart, limits that queued frees make room under, and what statistics say.
 * On every backend that needs no GPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* A backend, and how blocks are made. */
typedef struct way {
    int32_t backend;
    int64_t workers;
    int32_t pool;
} way;

static const way g_ways[] = {
    {ACS_BACKEND_SIM, 1, 0}, {ACS_BACKEND_SIM, 1, 1}, {ACS_BACKEND_HOST, 1, 0}, {ACS_BACKEND_HOST, 1, 1},
    {ACS_BACKEND_HOST, 0, 0}, {ACS_BACKEND_HOST, 0, 1},
};

static acs_context *open_by(const way *w, int64_t limit)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = w->backend;
    options.workers = w->workers;
    options.pool = w->pool;
    options.memory_limit = limit;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

static acs_statistics statistics_of(acs_context *context)
{
    acs_statistics s = {.size = sizeof s};
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    return s;
}

static unsigned char *block_of(acs_context *context, size_t bytes)
{
    void *block = NULL;
    assert_int_equal(acs_malloc(context, bytes, ACS_MEMORY_DEVICE, &block), ACS_OK);
    assert_int_equal((uintptr_t)block % 256, 0);
    return block;
}

/* A block that is filled, copied out of and freed, without a wait: what comes back is what was filled in. */
static acs_op use_once(acs_context *context, size_t bytes, unsigned char value, unsigned char *seen)
{
    unsigned char *block = block_of(context, bytes);
    assert_true(acs_memset(context, block, value, bytes) != 0);
    assert_true(acs_memcpy(context, seen, block + bytes - 1, 1) != 0);
    acs_op freed = acs_free(context, block);
    assert_true(freed != 0);
    return freed;
}

static void blocks_that_come_and_go_keep_their_contents(void **state)
{
    (void)state;
    enum { TIMES = 400 };
    for (size_t i = 0; i < sizeof g_ways / sizeof g_ways[0]; i++) {
        acs_context *context = open_by(&g_ways[i], 0);
        unsigned char seen[TIMES];
        for (int k = 0; k < TIMES; k++)
            (void)use_once(context, 1000 + 100 * (size_t)(k % 7), (unsigned char)k, &seen[k]);
        assert_int_equal(acs_sync(context), ACS_OK);
        for (int k = 0; k < TIMES; k++)
            assert_int_equal(seen[k], (unsigned char)k);
        acs_statistics s = statistics_of(context);
        assert_int_equal(s.memory_live, 0);
        assert_true(s.memory_peak >= 1000);
        assert_int_equal(s.memory_obtained, g_ways[i].pool ? 1 : TIMES);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* One block fits at a time: each has to wait for the free of the one before. */
static void where_there_is_no_room_queued_frees_are_waited_for(void **state)
{
    (void)state;
    enum { TIMES = 50 };
    for (size_t i = 0; i < sizeof g_ways / sizeof g_ways[0]; i++) {
        acs_context *context = open_by(&g_ways[i], 2 * MIB);
        unsigned char seen[TIMES];
        for (int k = 0; k < TIMES; k++)
            (void)use_once(context, 1100 * KIB, (unsigned char)(k + 1), &seen[k]);
        assert_int_equal(acs_sync(context), ACS_OK);
        for (int k = 0; k < TIMES; k++)
            assert_int_equal(seen[k], k + 1);
        acs_statistics s = statistics_of(context);
        assert_true(s.memory_reserved <= 2 * MIB);
        assert_true(s.memory_peak <= 2 * MIB);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

typedef struct user {
    acs_context *context;
    uint32_t refused, wrong;
} user;

/* Holds one block at a time. */
static void *use_and_free(void *argument)
{
    user *u = argument;
    for (int k = 0; k < 200; k++) {
        void *block = NULL;
        if (acs_malloc(u->context, 1100 * KIB, ACS_MEMORY_DEVICE, &block) != ACS_OK) {
            u->refused++;
            continue;
        }
        u->wrong += acs_memset(u->context, block, k, 1100 * KIB) == 0;
        u->wrong += acs_free(u->context, block) == 0;
    }
    return NULL;
}

/* Room for what they hold at once, but not for what is being freed beside: whoever finds none waits for that. */
static void threads_wait_for_each_others_frees(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    for (size_t i = 0; i < sizeof g_ways / sizeof g_ways[0]; i++) {
        if (g_ways[i].backend == ACS_BACKEND_SIM) /* one thread plays all */
            continue;
        acs_context *context = open_by(&g_ways[i], (int64_t)(THREADS * 2 * MIB));
        user users[THREADS];
        pthread_t threads[THREADS];
        for (int k = 0; k < THREADS; k++) {
            users[k] = (user){context, 0, 0};
            assert_int_equal(pthread_create(&threads[k], NULL, use_and_free, &users[k]), 0);
        }
        for (int k = 0; k < THREADS; k++) {
            assert_int_equal(pthread_join(threads[k], NULL), 0);
            assert_int_equal(users[k].wrong, 0);
            assert_int_equal(users[k].refused, 0);
        }
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void what_cannot_fit_is_an_error_that_says_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof g_ways / sizeof g_ways[0]; i++) {
        acs_context *context = open_by(&g_ways[i], 4 * MIB);
        acs_error e = {.size = sizeof e};
        void *none = NULL;
        unsigned char seen, *held = block_of(context, 3 * MIB);

        assert_int_equal(acs_malloc(context, 3 * MIB, ACS_MEMORY_DEVICE, &none), ACS_ERR_MEMORY);
        assert_int_equal(acs_last_error(&e), ACS_ERR_MEMORY);
        assert_non_null(strstr(e.text, "no 3145728 bytes of device memory: 3145728 are in use"));
        assert_non_null(strstr(e.text, "the limit is 4194304"));
        assert_null(none);
        assert_int_equal(acs_malloc(context, 3 * MIB, ACS_MEMORY_HOST, &none), ACS_OK); /* the limit is the device's */
        assert_true(acs_free(context, none) != 0);
        assert_true(acs_free(context, held) != 0);
        (void)use_once(context, 3 * MIB, 9, &seen); /* nothing was lost */
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(seen, 9);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* Of a pool's block the driver does not know where it ends; the next block must not be written. */
static void copies_that_leave_a_pools_block_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof g_ways / sizeof g_ways[0]; i++) {
        if (!g_ways[i].pool)
            continue;
        acs_context *context = open_by(&g_ways[i], 0);
        unsigned char *block = block_of(context, 1000), outside[1001] = {0};
        acs_error e = {.size = sizeof e};

        assert_int_equal(acs_memset(context, block + 1, 0, 1000), 0);
        assert_int_equal(acs_last_error(&e), ACS_ERR_ARGUMENT);
        assert_non_null(strstr(e.text, "ends 1 bytes behind its allocation of 1000 bytes"));
        assert_int_equal(acs_memcpy(context, block, outside, 1001), 0);
        assert_int_equal(acs_memcpy(context, outside, block, 1001), 0);
        assert_true(acs_memset(context, block, 7, 1000) != 0);
        assert_true(acs_memcpy(context, outside, block, 1000) != 0);
        assert_int_equal(acs_sync(context), ACS_ERR_ARGUMENT); /* told again */
        assert_int_equal(outside[999], 7);
        assert_int_equal(acs_clear(context), ACS_OK);
        assert_true(acs_free(context, block) != 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void trim_gives_back_what_lies_idle(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof g_ways / sizeof g_ways[0]; i++) {
        acs_context *context = open_by(&g_ways[i], 0);
        unsigned char *held = block_of(context, 1000), *large = block_of(context, 40 * MIB);
        acs_op freed = acs_free(context, large);
        assert_int_equal(acs_wait(context, freed), ACS_OK);

        assert_int_equal(acs_trim(context, 64 * MIB), ACS_OK);
        assert_int_equal(statistics_of(context).memory_reserved, g_ways[i].pool ? 42 * MIB : 1000);
        assert_int_equal(acs_trim(context, 0), ACS_OK);
        assert_int_equal(statistics_of(context).memory_reserved, g_ways[i].pool ? 2 * MIB : 1000);
        assert_true(acs_free(context, held) != 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* Leak checkers would tell. */
static void close_releases_what_was_not_freed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof g_ways / sizeof g_ways[0]; i++) {
        acs_context *context = open_by(&g_ways[i], 0);
        (void)block_of(context, 100);
        (void)block_of(context, 40 * MIB);
        assert_true(acs_free(context, block_of(context, 5000)) != 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* ---------------------------------------------------------------------------------------------------- what is told */

/* The log in /dev and one in no folder cannot be written. */
static acs_context *open_told(int32_t pool, const char *memory_log, int32_t log)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    options.pool = pool;
    options.log = log;
    (void)snprintf(options.memory_log, sizeof options.memory_log, "%s", memory_log);
    acs_status status = acs_open(&options, &context);
    assert_int_equal(status, memory_log[0] == '/' && memory_log[1] != 't' ? ACS_ERR_OPTION : ACS_OK);
    return context;
}

/* What is in the file, which is removed. */
static void read_away(const char *path, char *text, size_t bytes)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t count = fread(text, 1, bytes - 1, file);
    text[count] = 0;
    (void)fclose(file);
    assert_int_equal(remove(path), 0);
}

static void each_call_is_a_line_of_the_log(void **state)
{
    (void)state;
    for (int32_t pool = 0; pool < 2; pool++) {
        char path[] = "/tmp/acs-memory-log-XXXXXX", text[2000], right[2000];
        int file = mkstemp(path);
        assert_true(file >= 0 && close(file) == 0);
        acs_context *context = open_told(pool, path, ACS_LOG_OFF);
        void *first = NULL, *second = NULL;
        int line = __LINE__ + 1;
        assert_int_equal(acs_malloc(context, 1000, ACS_MEMORY_DEVICE, &first), ACS_OK);
        assert_int_equal(acs_malloc(context, 7, ACS_MEMORY_HOST, &second), ACS_OK);
        acs_op op = acs_memset(context, first, 1, 10), last = acs_free(context, first);
        assert_int_equal(acs_close(context), ACS_OK);

        read_away(path, text, sizeof text);
        (void)snprintf(right, sizeof right,
                       "event,block,bytes,memory,op,file,line\nmalloc,1,1000,device,0,%s,%d\nmalloc,2,7,host,0,%s,%d\n"
                       "free,1,1000,device,%d,%s,%d\n",
                       __FILE__, line, __FILE__, line + 1, (int)last, __FILE__, line);
        assert_string_equal(text, right);
        assert_int_equal(last, pool ? op : op + 1);
    }
}

static void a_log_that_cannot_be_written_is_refused(void **state)
{
    (void)state;
    acs_error error = {.size = sizeof error};
    assert_null(open_told(1, "//no/such/folder/log", ACS_LOG_OFF));
    (void)acs_last_error(&error);
    assert_non_null(strstr(error.text, "'//no/such/folder/log' cannot be written"));
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_null(open_told(1, "/dev/full", ACS_LOG_OFF));
    (void)acs_last_error(&error);
    assert_non_null(strstr(error.text, "'/dev/full' cannot be written"));
}

static void what_was_not_freed_is_told_at_close(void **state)
{
    (void)state;
    for (int32_t pool = 0; pool < 2; pool++) {
        char path[] = "/tmp/acs-memory-leaks-XXXXXX", text[4000], right[300];
        acs_context *context = open_told(pool, "", ACS_LOG_WARN);
        void *block[3] = {NULL};
        int line = __LINE__ + 2;
        for (int i = 0; i < 3; i++)
            assert_int_equal(acs_malloc(context, 1000, ACS_MEMORY_DEVICE, &block[i]), ACS_OK);
        assert_true(acs_free(context, block[1]) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        int errors = dup(2), file = mkstemp(path);
        assert_true(errors >= 0 && file >= 0 && dup2(file, 2) == 2);
        acs_status status = acs_close(context);
        assert_true(dup2(errors, 2) == 2 && close(errors) == 0 && close(file) == 0);

        assert_int_equal(status, ACS_OK);
        read_away(path, text, sizeof text);
        assert_non_null(strstr(text, "2 blocks of 2000 bytes were not freed"));
        (void)snprintf(right, sizeof right, "2 of 2000 bytes by acs_malloc at %s:%d\n", __FILE__, line);
        assert_non_null(strstr(text, right));
    }
}

/* A copy that names memory which a pool has back is refused, whoever has it by then. */
static void copies_that_name_freed_memory_are_refused(void **state)
{
    (void)state;
    acs_error error = {.size = sizeof error};
    acs_context *context = open_told(1, "", ACS_LOG_OFF);
    unsigned char *block = block_of(context, 1000);
    assert_true(acs_free(context, block) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_memset(context, block + 10, 1, 4), 0);
    assert_int_equal(acs_last_error(&error), ACS_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "names memory freed by op"));
    assert_non_null(strstr(error.text, __FILE__));
    assert_int_equal(acs_close(context), ACS_ERR_ARGUMENT); /* the first error */
}

/* It goes with that context, whoever uses it. Pools and single allocations, both ways round. */
static void memory_of_another_context_is_found_by_the_check(void **state)
{
    (void)state;
    for (int pools = 0; pools < 4; pools++) {
        acs_error error = {.size = sizeof error};
        acs_context *context = open_by(&(way){ACS_BACKEND_HOST, 0, pools & 1}, 0), *other = NULL;
        acs_options options;
        char says[80];
        assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
        options.backend = ACS_BACKEND_HOST;
        options.workers = 0;
        options.pool = pools >> 1;
        options.check = ACS_CHECK_OVERLAP;
        assert_int_equal(acs_open(&options, &other), ACS_OK);
        unsigned char *block = block_of(context, 1000), *own = block_of(other, 1000), mine[10];
        assert_true(acs_memset(other, own, 1, 1000) && acs_memcpy(other, mine, own, 10));
        assert_int_equal(acs_memset(other, block + 10, 1, 4), 0);
        assert_int_equal(acs_last_error(&error), ACS_ERR_CHECK);
        (void)snprintf(says, sizeof says, "names memory of context %p", (void *)context);
        assert_non_null(strstr(error.text, says));
        assert_non_null(strstr(error.text, __FILE__));
        assert_true(acs_memset(context, block + 10, 1, 4) > 0);
        assert_int_equal(acs_close(context), ACS_OK);
        assert_int_equal(acs_close(other), ACS_ERR_CHECK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_that_come_and_go_keep_their_contents),
        cmocka_unit_test(where_there_is_no_room_queued_frees_are_waited_for),
        cmocka_unit_test(threads_wait_for_each_others_frees),
        cmocka_unit_test(what_cannot_fit_is_an_error_that_says_why),
        cmocka_unit_test(copies_that_leave_a_pools_block_are_refused),
        cmocka_unit_test(trim_gives_back_what_lies_idle),
        cmocka_unit_test(close_releases_what_was_not_freed),
        cmocka_unit_test(each_call_is_a_line_of_the_log),
        cmocka_unit_test(a_log_that_cannot_be_written_is_refused),
        cmocka_unit_test(what_was_not_freed_is_told_at_close),
        cmocka_unit_test(copies_that_name_freed_memory_are_refused),
        cmocka_unit_test(memory_of_another_context_is_found_by_the_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * A ledger of the test program's own. Included behind cmocka.h.
 */
#ifndef TESTS_LEDGER_FIXTURE_H
#define TESTS_LEDGER_FIXTURE_H

#include "devices/ledger.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NEVER_MS = 3600000 }; /* patience that no test waits for */
static char g_name[32], g_path[64]; /* of the ledger, and of its file */

static inline int make_name(void **state)
{
    (void)state;
    snprintf(g_name, sizeof g_name, "/acs-test-%d", (int)getpid());
    snprintf(g_path, sizeof g_path, "%s-ledger-4-%lu", g_name, (unsigned long)geteuid());
    return 0;
}

static inline int remove_file(void **state)
{
    (void)state;
    (void)shm_unlink(g_path);
    return 0;
}

enum { TOTAL = 1000 /* bytes of each device */ };

static inline acs_ledger *join_on(const char *device)
{
    acs_ledger *ledger = NULL;
    const acs_ledger_config config = {.name = g_name, .device = device, .total = TOTAL};
    assert_int_equal(acs_ledger_open(&config, &ledger), ACS_OK);
    return ledger;
}

typedef struct ledger_seen {
    uint32_t lines, waiting;
    uint64_t reserved, obtained;
    uint64_t of_second; /* reserved of GPU-2 */
} ledger_seen;

static inline void add_line(void *user, const acs_ledger_line *line)
{
    ledger_seen *s = user;
    s->lines++;
    s->waiting += line->wanted != 0;
    s->reserved += line->reserved;
    s->obtained += line->obtained;
    s->of_second += strcmp(line->device, "GPU-2") == 0 ? line->reserved : 0;
}

static inline ledger_seen look(void)
{
    ledger_seen s = {0};
    assert_int_equal(acs_ledger_each(g_name, add_line, &s), ACS_OK);
    return s;
}

static inline void assert_refused(acs_status is, acs_status status, const char *why)
{
    assert_int_equal(is, status);
    if (!strstr(acs_error_thread()->text, why))
        fail_msg("'%s' is not in '%s'", why, acs_error_thread()->text);
}

static inline void await_waiting(uint32_t count)
{
    while (look().waiting != count)
        sched_yield();
}

#endif

/*
 * A ledger of the test program's own. Included behind cmocka.h.
 */
#ifndef TESTS_LEDGER_FIXTURE_H
#define TESTS_LEDGER_FIXTURE_H

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static char g_name[32], g_path[64]; /* of the ledger, and of its file */

static inline int make_name(void **state)
{
    (void)state;
    snprintf(g_name, sizeof g_name, "/acs-test-%d", (int)getpid());
    snprintf(g_path, sizeof g_path, "%s-ledger-2-%lu", g_name, (unsigned long)geteuid());
    return 0;
}

static inline int remove_file(void **state)
{
    (void)state;
    (void)shm_unlink(g_path);
    return 0;
}

#endif

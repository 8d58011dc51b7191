/*
 * A job that is a process of its own: what it does when the program that started it tells it to.
 */
#ifndef BENCH_MIX_CHILD_H
#define BENCH_MIX_CHILD_H

#include <string>

#include "runner.h"

namespace bench {

struct child_settings {
    std::string task, ledger; /* ACS_LEDGER: which, and how much memory each device is taken to have */
    double scale;
    unsigned devices;
    machine where;
    bool check;
};

/**
 * Reads a command in each line of standard input, until it ends, and answers it with a line on standard output:
 *
 *   prepare   ready <bytes of all blocks> <bytes in> <bytes out>: it has all that a run needs but device memory
 *   reset     ready: what came out is overwritten
 *   hand D    done <jobs without memory: 0 or 1> <what failed>: alone on device D, in one stream
 *   group     done ... as above: through ACS, whose context joined the ledger
 *   check     right, or wrong <why>
 *
 * @return the exit status.
 */
int run_child(const child_settings &s);

} // namespace bench

#endif

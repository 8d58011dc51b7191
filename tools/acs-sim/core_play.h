/*
 * The library's own core, played on the sim backend in virtual time. In C, as the library's internal headers are.
 */
#ifndef ACS_SIM_CORE_PLAY_H
#define ACS_SIM_CORE_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acs.h"
#include "simulator/machine.h"

typedef struct core_task {
    acs_sim_kernel kernel;
    uint32_t type;
    bool wait; /* nothing to run: the program waits here for its upstream tasks */
    const uint32_t *up;
    uint32_t up_count;
} core_task;

typedef struct core_result {
    uint64_t total_ns, submit_ns;
    acs_sim_counters counters;
    acs_statistics statistics;
    uint32_t early; /* tasks whose end came before that of one they depend on */
    char text[512]; /* what failed, if something did */
} core_result;

/* Plays them on the model of this number, issued by an ACS_ISSUE_*; -1: as the environment says. False: see `text`. */
bool core_play(uint32_t gpu, int issue, const core_task *tasks, uint32_t count, core_result *result);

#endif

/*
 * The interface between the core and the maker of bundles (src/bundles). The core calls it under its lock; it calls no
 * backend and never blocks. A core without a batcher issues each op by itself.
 */
#ifndef ACS_BATCHER_H
#define ACS_BATCHER_H

#include "window/window.h"

typedef struct acs_core acs_core;
typedef struct acs_action acs_action;

typedef struct acs_batcher {
    /* The core's options and backend are known. Sets core->bundler, batch_ahead and batch_least. ACS_ERR_MEMORY. */
    acs_status (*open)(acs_core *core);
    void (*close)(acs_core *core);
    /* Fill the action's batch with a bundle if one is due. `inserted`: an op entered the window in this step. */
    bool (*form)(acs_core *core, acs_action *action, bool inserted);
    /* The results of an action are about to be booked; have been booked. */
    void (*books)(acs_core *core, const acs_action *action);
    void (*booked)(acs_core *core, const acs_action *action);
} acs_batcher;

#endif

/*
 * The threads of a context on the sim backend, played by whoever waits: its stepper (api/hooks.h).
 */
#ifndef ACS_SIM_DRIVER_H
#define ACS_SIM_DRIVER_H

#include "api/context.h"

/* Does nothing on other backends. ACS_ERR_MEMORY. */
acs_status acs_virtual_init(acs_context *context);
void acs_virtual_fini(acs_context *context);

#endif

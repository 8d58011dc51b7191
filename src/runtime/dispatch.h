/*
 * Groups of one context on several devices: which runs where, and who waits (HuntKTm's task dispatcher, section 5.3). Groups
 * that find no room wait in the order in which they came, so that none waits for ever. Private to src/runtime.
 */
#ifndef ACS_DISPATCH_H
#define ACS_DISPATCH_H

#include "devices/capacity.h"
#include "runtime/context.h"

/* With several devices; else there is nothing to do. ACS_ERR_MEMORY, ACS_ERR_DEVICE. */
acs_status acs_dispatch_open(acs_context *context);
void acs_dispatch_close(acs_context *context);
/*
 * The device for a group, which counts as running there; *ticket names it. Waits while no device has room and other groups
 * run; where none runs, the device with the most memory left, whose pools then wait or say why not.
 *
 * With a ledger what other programs have and run counts, they are waited for, too, and the group's memory is taken there
 * already (acs_admission_end). Errors as acs_admission_wait; then there is nothing to be ended.
 */
acs_status acs_dispatch_begin(acs_context *context, const acs_demand *demand, uint64_t *ticket, uint32_t *device);
/* Its memory was taken from the device's pools, which count it from here on. */
void acs_dispatch_reserved(acs_context *context, uint64_t ticket);
/* All of the group's ops are queued, the latest of them `last`; 0: none is. It runs until that one and those before end. */
void acs_dispatch_queued(acs_context *context, uint64_t ticket, acs_op last);
/* What has ended is forgotten, and so do other programs. */
void acs_dispatch_rest(acs_context *context);

#endif

/*
 * Groups of one context: which runs on which device, and who waits (HuntKTm's task dispatcher, section 5.3). With
 * several devices groups that find no room wait in the order in which they came, so that none waits for ever; with one
 * they are only counted, for there to be memory beside those that run. Private to src/groups.
 */
#ifndef ACS_DISPATCH_H
#define ACS_DISPATCH_H

#include "devices/capacity.h"
#include "api/context.h"

/* ACS_ERR_MEMORY, ACS_ERR_DEVICE. */
acs_status acs_group_schedule_open(acs_context *context);
void acs_group_schedule_close(acs_context *context);
/* What a group got. */
typedef struct acs_scheduled_group {
    uint64_t ticket; /* names it; 0: it is not counted */
    uint32_t device;
    bool beside;     /* the device has room for its memory beside that of the groups that run: it is to be nobody else's */
} acs_scheduled_group;

/* The most memory that any device has, for this program and all others, or that the limit leaves it. */
uint64_t acs_group_schedule_most(const acs_context *context);
/*
 * The device for a group, which counts as running there; not one that is `full` (a bit for each; not all are). Waits
 * while no device has room and other groups run; where none runs, the device with the most memory left, whose pools
 * then wait or say why not. A single device is never waited for: without room the group comes behind others in their
 * memory.
 *
 * With a ledger what other programs have and run counts. With several devices they are waited for, too, and the group's
 * memory is taken there already (acs_admission_end); with one, only where others came first that were passed too often.
 * Errors as acs_admission_wait; then there is nothing to be ended.
 */
acs_status acs_group_schedule_begin(acs_context *context, const acs_demand *demand, uint32_t full,
                                    acs_scheduled_group *to);
/* Its memory was taken from the device's pools, which count it from here on. */
void acs_group_schedule_reserved(acs_context *context, uint64_t ticket);
/*
 * All of the group's ops are queued, the latest of them `last`; 0: none is. It runs until that one and those before
 * end.
 */
void acs_group_schedule_queued(acs_context *context, uint64_t ticket, acs_op last);
/* With a ledger: what lay idle in the pools has gone back as far as it can. What has ended is forgotten. */
void acs_group_schedule_gave_back(acs_context *context);
/* With a ledger: a block of no group was taken, perhaps of what others were told could go back. */
void acs_group_schedule_kept(acs_context *context, uint32_t device);

#endif

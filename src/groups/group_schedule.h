/*
 * Groups of one context: which group runs on which device, and which waits (HuntKTm's task dispatcher, section 5.3).
 * With several devices, groups without room wait in the order in which they came, so that none waits for ever. With one
 * device they are only counted, so that a group gets memory beside those that run. Private to src/groups and
 * src/library.
 */
#ifndef ACS_GROUP_SCHEDULE_H
#define ACS_GROUP_SCHEDULE_H

#include "devices/capacity.h"
#include "api/context.h"

/* ACS_ERR_MEMORY, ACS_ERR_DEVICE. */
acs_status acs_group_schedule_open(acs_context *context);
void acs_group_schedule_close(acs_context *context);
/* The place of a group. */
typedef struct acs_scheduled_group {
    uint64_t ticket; /* number of the group; 0: it is not counted */
    uint32_t device;
    /* Whether the device has room for its memory beside that of the groups that run: it is to share none of theirs. */
    bool beside;
} acs_scheduled_group;

/* The most memory of any device, for all programs together, or within the limit. */
uint64_t acs_group_schedule_most(const acs_context *context);
/*
 * Choose the device for a group, which then counts as running there; not one of the devices in `full` (a bit for each;
 * not all are). Waits while no device has room and other groups run. If none runs, takes the device with the most memory
 * left, whose pools then wait or say why not. A single device is never waited for: without room the group comes behind
 * others in their memory.
 *
 * With a ledger other programs' memory and groups count, too. With several devices they are waited for, and the group's
 * memory is taken there already (acs_admission_end). With one device they are waited for only after they were overtaken
 * too often. Errors as acs_admission_wait; then nothing has to be ended.
 */
acs_status acs_group_schedule_begin(acs_context *context, const acs_demand *demand, uint32_t full,
                                    acs_scheduled_group *to);
/* The group's memory was taken from the device's pools, which count it from here on. */
void acs_group_schedule_reserved(acs_context *context, uint64_t ticket);
/* All of the group's ops are queued, up to op `last`, and the group runs until they have ended. 0: none was queued. */
void acs_group_schedule_queued(acs_context *context, uint64_t ticket, acs_op last);
/* With a ledger: idle memory of the pools was given back as far as possible. Groups that have ended are forgotten. */
void acs_group_schedule_gave_back(acs_context *context);
/* With a ledger: a block of no group was taken, perhaps out of memory that other programs expect to be given back. */
void acs_group_schedule_kept(acs_context *context, uint32_t device);

#endif

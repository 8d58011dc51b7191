/*
 * A context as a member of the ledger (ACS_LEDGER), by which programs share the memory of devices. Private to src/groups and
 * src/library.
 */
#ifndef ACS_LEDGER_MEMBER_H
#define ACS_LEDGER_MEMBER_H

#include "api/context.h"

/* Join the ledger, if options say so, before the pools are made. ACS_ERR_OPTION, ACS_ERR_STATE, ACS_ERR_DEVICE. */
acs_status acs_ledger_member_join(acs_context *context);
/* Leave it once the pools are closed: other programs may have their memory. */
void acs_ledger_member_leave(acs_context *context);
/* A block of no group was taken from a device's pools: with a ledger, other programs are told that it is kept. */
void acs_ledger_member_kept(acs_context *context, int kind);
/* Give what lies idle in the pools of all devices to other programs. */
void acs_ledger_member_give_back(acs_context *context);
/* The same if the context has no op to issue or to wait for just now. */
void acs_ledger_member_give_back_if_idle(acs_context *context);

#endif

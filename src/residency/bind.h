/*
 * Binding: the pointers and segments of an op that names relocatable blocks are changed to where their contents are, in
 * the call, before the op is queued. Whatever comes behind knows real addresses only. Where contents go is decided by
 * rename.c, on one device, or by replicas.c, on several, where binding also chooses the device. Private to
 * src/residency.
 */
#ifndef ACS_BIND_H
#define ACS_BIND_H

#include "residency/relocatable.h"

/*
 * The record is filled in, but for what the backend adds: point it to the newest contents, or bring those home that it
 * may reach in another way. Errors of queueing a copy; nothing is bound then. The draft is to be queued or dropped
 * next, on this thread, unless it is about streams or a wait: acs_draft_queue and acs_draft_drop call acs_bound.
 */
acs_status acs_bind(acs_draft *draft);
/* Whether it will be possible to bind it: for ops that are held. Changes nothing. */
acs_status acs_bind_check(const acs_draft *draft);
/* The draft is queued next: what it writes as a whole begins anew. ACS_ERR_MEMORY: drop it. */
acs_status acs_bind_begin(acs_draft *draft);
/* The draft was queued as `op`; 0: it was not. */
void acs_bound(acs_draft *draft, acs_op op);

#endif

/*
 * Groups: a thread's ops that are held until acs_group_submit, in records of the group's own. Private to src/groups.
 */
#ifndef ACS_GROUP_H
#define ACS_GROUP_H

#include "api/context.h"

typedef struct acs_group acs_group;
struct acs_draft;

/* The group that the calling thread holds in the context, or NULL. */
acs_group *acs_group_mine(acs_context *context);
/* The same. Most often no thread holds one, which costs the call a load. */
static inline acs_group *acs_group_on(acs_context *context)
{
    return ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_SECTIONS) ? acs_group_mine(context) : NULL;
}
/* Its number; 0: the thread holds none. */
uint64_t acs_group_number(acs_context *context);

/* draft->record for an op that is held; false with an error: the kind cannot be, or there are as many as there may be. */
bool acs_group_begin_op(struct acs_draft *draft, acs_op_kind kind);
/* Hold the draft's record. */
acs_op acs_group_hold(struct acs_draft *draft);
/* acs_free while the thread holds a group. */
acs_op acs_group_free(acs_context *context, void *ptr, const acs_site *site);
/* acs_sync and its like. */
acs_status acs_group_no_wait(const char *function);
/* A held op cannot be waited for. ACS_OK for other ops. */
acs_status acs_group_check_op(acs_op op, const char *function);
/* Groups that threads still hold are cancelled. */
void acs_groups_fini(acs_context *context);

#endif

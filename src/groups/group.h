/*
 * Groups: ops of a thread that are held, in records of the group's own, until acs_group_submit. Private to src/groups
 * and src/library.
 */
#ifndef ACS_GROUP_H
#define ACS_GROUP_H

#include "api/context.h"

typedef struct acs_group acs_group;
struct acs_draft;

/* The group that the calling thread holds in the context, or NULL. */
acs_group *acs_group_mine(acs_context *context);
/* The same. As long as no thread holds a group this costs a call one load. */
static inline acs_group *acs_group_on(acs_context *context)
{
    return ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_SECTIONS) ? acs_group_mine(context) : NULL;
}
/* The number of that group; 0: the thread holds none. */
uint64_t acs_group_number(acs_context *context);

/*
 * Take draft->record for an op that the group will hold. False with an error: the kind cannot be held, or the group is
 * full.
 */
bool acs_group_begin_op(struct acs_draft *draft, acs_op_kind kind);
/* Hold the draft's record in the group. */
acs_op acs_group_hold(struct acs_draft *draft);
/* acs_free while the thread holds a group: the block is freed with the group. */
acs_op acs_group_free(acs_context *context, void *ptr, const acs_site *site);
/* Refuse a wait while the thread holds a group. Returns ACS_ERR_STATE. */
acs_status acs_group_no_wait(const char *function);
/* Refuse a wait for a held op. ACS_OK for other ops. */
acs_status acs_group_check_op(acs_op op, const char *function);
/* Cancel all groups of the context that threads still hold. */
void acs_groups_fini(acs_context *context);

#endif

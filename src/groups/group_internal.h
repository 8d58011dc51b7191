/* Shared by group.c, which holds ops, group_submit.c, which plans and queues them, and footprints.c, which orders them. */
#ifndef ACS_GROUP_INTERNAL_H
#define ACS_GROUP_INTERNAL_H

#include "groups/group.h"
#include "groups/liveness.h"

/* A block of another kind, to be freed behind the group's ops. */
typedef struct acs_held_free {
    void *ptr;
    const acs_site *site;
} acs_held_free;

/* Used by its thread alone, except for the fields of the list. */
struct acs_group {
    acs_group *next;       /* next in the list of all groups; guarded by the list's mutex */
    acs_context *context;
    /*
     * number of the thread that holds it, guarded by the list's mutex; 0 while it is submitted: the thread's ops are not
     * held
     */
    uint64_t thread;
    uint64_t number;       /* from 1; never used again */
    acs_record_pool *records;
    acs_record **ops;      /* in program order */
    uint32_t count, most;
    acs_held_free *frees;
    uint32_t free_count, free_room;
};

/* Take the group out of the list, and free it. Its ops are dropped; the frees that it holds are not made. */
void acs_group_destroy(acs_group *group);
/* From here on the ops of `thread` are held in the group; 0: no thread's are. */
void acs_group_set_thread(acs_group *group, uint64_t thread);
/*
 * Free the blocks that were made and freed in the group; others that were made in it are ordinary blocks from here on.
 */
void acs_group_free_blocks(acs_group *group);

/*
 * Add to each of the `count` empty sets in `behind` all earlier ops that its op conflicts with, directly or through
 * others. Ops are in program order, and their segments have been checked. ACS_ERR_MEMORY.
 */
acs_status acs_footprints_order(acs_record *const *ops, uint32_t count, acs_op_sets *behind);

#endif

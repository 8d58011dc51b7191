/* What group.c (holding) and group_submit.c (planning, queueing) share. */
#ifndef ACS_GROUP_INTERNAL_H
#define ACS_GROUP_INTERNAL_H

#include "groups/group.h"

/* A block of another kind, to be freed behind the group's ops. */
typedef struct acs_held_free {
    void *ptr;
    const acs_site *site;
} acs_held_free;

/* Its thread's alone, but for the list. */
struct acs_group {
    acs_group *next;       /* list of all; guarded by its mutex */
    acs_context *context;
    uint64_t thread;       /* the same: 0 while it is being submitted, so that the thread's own ops are not held */
    uint64_t number;       /* from 1; never used again */
    acs_record_pool *records;
    acs_record **ops;      /* in program order */
    uint32_t count, most;
    acs_held_free *frees;
    uint32_t free_count, free_room;
};

/* Out of the list, and given back. What it held is dropped; the frees that it holds are not made. */
void acs_group_destroy(acs_group *group);
/* The thread's ops are held, or go on as always, from here on. */
void acs_group_set_thread(acs_group *group, uint64_t thread);
/* Blocks that were freed in it go, and others that were made in it are like any. */
void acs_group_free_blocks(acs_group *group);

#endif

/*
 * Relocatable blocks: those whose contents need not lie at the address that acs_malloc returned. Which there are, where
 * their contents lie now, how these come home (relocatable.c); memory for those that have none by themselves
 * (lazy.c). Binding ops to them is rename.c's. Private to src/residency.
 *
 * N1  a relocatable block's newest contents are at `at`: its own address, a version, or a lazy block's memory,
 * which then no
 *     other block has; or, while that is 0, in its host copy, or nowhere, since nobody has written them.
 * N2  binding and queueing are one section under a lock, so program order is the order of versions.
 * N3  a host copy that counts (`host_valid`) holds the newest contents.
 */
#ifndef ACS_RELOCATABLE_H
#define ACS_RELOCATABLE_H

#include "api/context.h"

enum { ACS_CUTS = 15 };

struct acs_replicas;

/* Rows of bytes, as far apart from start to start. */
typedef struct acs_rows {
    uint64_t bytes;
    uint32_t count;
    uint64_t pitch;
} acs_rows;

/* Rows of a block: its own offsets. They may reach behind its end, where nothing is theirs. */
typedef struct acs_part {
    uint64_t first;
    acs_rows rows;
} acs_part;

/* How often an op names a block, and how. */
typedef struct acs_naming {
    uint64_t turn;
    uint32_t segments, pointers;
    bool whole;  /* a segment writes all of it */
    bool inside; /* all of these segments are in it */
} acs_naming;

typedef struct acs_relocatable {
    uint64_t canonical, bytes; /* as acs_malloc returned it */
    uint64_t number;      /* no other block has had it */
    uint64_t at;          /* N1 */
    uint64_t to;          /* where the op that is being bound finds or writes them */
    acs_op last;          /* latest op that touches the contents there */
    acs_op canonical_last;     /* while they are elsewhere: the same for the block's own memory */
    uint64_t cuts[ACS_CUTS]; /* where parts that ops named begin and end, rising: failures of one are not those of others */
    uint32_t cut_count;
    bool pinned;
    const acs_site *site;
    struct acs_relocatable *next, *previous;
    struct acs_relocatable *next_touched;
    acs_naming naming;    /* of acs_naming_collect, as long as it is of the latest turn */
    bool touched;         /* by the op that is being bound */
    bool overwritten;            /* and all of it is written */
    bool written;         /* or some */
    /* of a lazy block, whose home is an address without memory */
    bool lazy;
    bool fresh;           /* its memory was taken for the op that is being bound, which reads none of it */
    bool borrowed;            /* its memory is a group's */
    bool host_valid;      /* N3 */
    uint64_t host;        /* pinned memory for its copy; 0: none was needed yet */
    acs_op host_last;     /* latest op that touches it */
    bool filled;          /* an op has written some of it */
    uint64_t named;       /* turn of the latest op */
    uint64_t tried;       /* number of the search for room that has tried to move it out */
    uint64_t group;       /* number of the group in which it was made, as long as that is held; 0: none */
    bool dying;           /* and freed */
    int32_t planned;      /* of those, its place in the group's plan; -1: it has none */
    struct acs_replicas *replicas; /* on several devices, where its contents are then (N4); else NULL */
} acs_relocatable;

/* What bind.c found, as long as the lock is held: an op's addresses are asked for again and again. */
typedef struct acs_found {
    uint64_t address;
    uint64_t hold; /* of the lock: its number */
    acs_relocatable *at;
} acs_found;

enum { ACS_FOUND = 16 };

struct acs_relocatables {
    pthread_mutex_t lock;     /* guards everything below, and program order among ops that name relocatable blocks */
    acs_relocatable first;    /* head of a ring */
    acs_relocatable *touched; /* by the op that is being bound */
    uint64_t hold;            /* how often the lock was taken, or blocks came and went */
    acs_found found[ACS_FOUND]; /* by a hash of the address */
    _Atomic(uint32_t) count;  /* blocks, and one once there was a lazy one; written under the lock */
    uint64_t most;            /* bytes for versions; UINT64_MAX: as many as blocks have; 0: none */
    uint64_t block_bytes;     /* of all relocatable blocks that have memory of their own */
    uint64_t version_bytes;   /* of them, those that are not at home */
    uint64_t host_most;       /* bytes for host copies */
    uint64_t host_bytes;      /* that they have */
    uint64_t made;            /* counts blocks */
    uint64_t namings;         /* counts turns of acs_naming_collect */
    uint64_t turn;            /* counts ops that name lazy blocks */
    uint64_t tries;           /* and searches for room */
    bool no_wait;             /* the op that is being bound may not wait for room, */
    bool short_of_wait;       /* and so contents could not be moved out */
    acs_op again;             /* where there was no memory: from this op on more is asked for */
    _Atomic(uint64_t) versions, homed;   /* counters */
    _Atomic(uint64_t) spilled, returned; /* bytes */
};

/* As options say, and the pools. ACS_ERR_OPTION: ACS_RENAME needs pools, and they were switched off. */
acs_status acs_relocatables_open(acs_context *context);
/* No op is under way. What could not come home goes back. */
void acs_relocatables_close(acs_context *context);
/* On the sim backend producers are fibers of one thread: who waits for the lock lets others go on. */
void acs_relocatables_enter(acs_context *context);
void acs_relocatables_leave(acs_context *context);
/* The same without waiting. */
bool acs_relocatables_try(acs_context *context);
/* There are none, and never were lazy ones. */
bool acs_relocatables_none(const acs_context *context);
void acs_relocatables_count(const acs_context *context, acs_statistics *statistics);

/* The block is relocatable block from here on, if any may be renamed, or there are several devices. ACS_ERR_MEMORY. */
acs_status acs_relocatable_add(acs_context *context, const acs_block *block);
/* The block is about to be freed, behind op `last`; returns the op behind which its memory is nobody's. */
acs_op acs_relocatable_remove(acs_context *context, const void *ptr, acs_op last);
/* All contents come home that have one: what the program does next may reach them in any way. Queues, does not wait. */
acs_status acs_relocatables_make_canonical(acs_context *context);
/*
 * On several devices: the copies home have ended, so what came is the program's. True: copies had failed; their bytes
 * are where they were.
 */
bool acs_relocatables_hand_over(acs_context *context);
/* The same of a part of a block, whose wait ended with `status`: well only where all of it came. */
void acs_relocatables_hand_over_part(acs_context *context, const void *ptr, size_t bytes, acs_status status);

/* The rest is for who holds the lock. */

/* The relocatable block that holds the address, or NULL. */
acs_relocatable *acs_relocatable_at(acs_context *context, uint64_t address);
/* A new one; the first link of the chain is made. NULL through ACS_FAIL. */
acs_relocatable *acs_relocatable_make(acs_context *context, const acs_block *block);
/* ACS_ERR_UNSUPPORTED: there is nothing at its address. */
acs_status acs_relocatable_refuse_lazy(const acs_relocatable *m);
/* Out of the ring, and given back to the C library. */
void acs_relocatable_unlink(acs_context *context, acs_relocatable *m);
/*
 * Queue copies of its contents, part by part, so that what failed in one keeps no other from coming; the failures of a
 * part go with it. The latest of them, or 0 with an error.
 */
acs_op acs_relocatable_copy(acs_context *context, const acs_relocatable *m, uint64_t to, uint64_t from);
/* Where a copy of the runtime's goes: addresses of the block's first byte; and, of several devices, to which place. */
typedef struct acs_way {
    uint64_t to, from;
    uint32_t place;
    uint32_t device; /* where it runs */
} acs_way;
/* One copy of the runtime's, of a part that lies in the block, as the program would queue it. 0 with an error. */
acs_op acs_relocatable_copy_part(acs_context *context, const acs_relocatable *m, const acs_way *way,
                                 const acs_part *part);
/* What comes to this memory is behind whoever used it (up to `last`), and failures among those are no concern of it. */
acs_status acs_relocatable_begin_life(acs_context *context, const acs_relocatable *m, uint64_t base, acs_op last);
/* The memory at m->at is nobody's: it goes back, behind all that was queued so far. */
void acs_relocatable_drop(acs_context *context, acs_relocatable *m, acs_op last);
/* The host copy of a lazy block goes back, behind op `last`. */
void acs_relocatable_drop_host(acs_context *context, acs_relocatable *m, acs_op last);

/* relocatable.c */

/* As acs_relocatables_make_canonical; of several devices, the contents are there alone at once. */
acs_status acs_relocatables_make_canonical_locked(acs_context *context);
/* Its contents come to its address. ACS_ERR_UNSUPPORTED: a lazy block has no memory there. */
acs_status acs_relocatable_make_canonical(acs_context *context, acs_relocatable *m);

/* lazy.c */

/* A lazy block: an address of its own. Takes the lock itself. */
acs_status acs_lazy_malloc(acs_context *context, size_t bytes, const acs_site *site, acs_block *block);
/* Where `ptr` is one, free it. ACS_NOT_READY: it is none. The first takes the lock itself. */
acs_status acs_lazy_free(acs_context *context, const void *ptr, acs_block *block);
acs_status acs_lazy_free_locked(acs_context *context, const void *ptr, acs_block *block);
/* Memory of somebody else's, on this device, for it, with nothing in it: until acs_lazy_free, or it is dropped. */
void acs_lazy_borrow(acs_relocatable *m, uint32_t device, uint64_t at);
/* Before the op that is being bound names them: all lazy blocks that it touches get memory, and their contents back. */
acs_status acs_lazy_fetch(acs_draft *draft);
/* The memory that it got for the op is not wanted: it was not queued. */
void acs_lazy_undo(acs_context *context, acs_relocatable *m);
/* Nothing runs any more: its memory goes back. */
void acs_lazy_close(acs_context *context, acs_relocatable *m);
/* ACS_ERR_ARGUMENT: the segment begins in a lazy block and leaves it, or in one that was freed. */
acs_status acs_lazy_check(const acs_draft *draft, const acs_segment *segment, uint32_t index);

#endif

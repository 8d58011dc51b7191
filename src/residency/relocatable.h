/*
 * Relocatable blocks: blocks whose contents need not lie at the address that acs_malloc returned, their canonical place.
 * Which blocks there are, and how their contents come to their canonical place (relocatable.c); a single block, its
 * memory, its copies (contents.c); blocks that have no memory at their address (lazy.c). Private to src/residency and
 * src/groups.
 *
 * N1  a relocatable block's newest contents are at `at`: its own address, a version, or a lazy block's memory, which
 * then no other block has. While `at` is 0 they are in its host copy, or nowhere, since no op has written them.
 * N2  binding and queueing are one section under a lock, so program order is the order of versions.
 * N3  a host copy that counts (`host_valid`) holds the newest contents.
 */
#ifndef ACS_RELOCATABLE_H
#define ACS_RELOCATABLE_H

#include "api/draft.h"

enum { ACS_CUTS = 15 };

struct acs_replicas;

/* Rows of bytes; `pitch` is the distance between their starts. */
typedef struct acs_rows {
    uint64_t bytes;
    uint32_t count;
    uint64_t pitch;
} acs_rows;

/* Rows of a block, by offsets in it. They may reach behind its end, where they hold nothing. */
typedef struct acs_part {
    uint64_t first;
    acs_rows rows;
} acs_part;

/* How often an op names a block, and how; of the op of that turn of acs_naming_collect. */
typedef struct acs_naming {
    uint64_t turn;
    uint32_t segments, pointers;
    bool whole;  /* whether a segment writes the whole block */
    bool inside; /* whether all of these segments lie in the block */
} acs_naming;

typedef struct acs_relocatable {
    uint64_t canonical, bytes; /* address and bytes of acs_malloc; of a lazy block, without memory there */
    uint64_t number;      /* number that no other block has had */
    uint64_t at;          /* address of the newest contents (N1) */
    uint64_t to;          /* address at which the op that is being bound uses them */
    acs_op last;          /* latest op that touches the contents at `at` */
    acs_op canonical_last; /* while they are elsewhere: latest op that touches the canonical place */
    /* Rising offsets between parts that ops named: a failure in one part leaves the others valid. */
    uint64_t cuts[ACS_CUTS];
    uint32_t cut_count;
    bool pinned;
    const acs_site *site;
    struct acs_relocatable *next, *previous;
    struct acs_relocatable *next_touched;
    acs_naming naming;    /* of acs_naming_collect; valid in its latest turn */
    bool touched;         /* whether the op that is being bound names it */
    bool overwritten;     /* whether that op writes the whole block */
    bool written;         /* whether that op writes some of it */
    /* The following of a lazy block, whose canonical place is an address without memory. */
    bool lazy;
    bool fresh;           /* whether its memory was taken for the op that is being bound, which reads none of it */
    bool borrowed;        /* whether its memory is a group's */
    bool host_valid;      /* whether the host copy holds the newest contents (N3) */
    uint64_t host;        /* address of its host copy in pinned memory; 0: none was needed yet */
    acs_op host_last;     /* latest op that touches the host copy */
    bool filled;          /* whether an op has written some of it */
    uint64_t named;       /* turn of the latest op that named it */
    uint64_t tried;       /* number of the latest search for room that tried to move it out */
    uint64_t group;       /* number of the group in which it was made, until that is submitted; 0: none */
    bool dying;           /* whether it was freed in that group */
    int32_t planned;      /* its index in the group's plan; -1: none */
    struct acs_replicas *replicas; /* on several devices, where its contents are (N4); else NULL */
} acs_relocatable;

/* A look-up by acs_naming_at, kept as long as the lock is held, since an op's addresses are looked up repeatedly. */
typedef struct acs_found {
    uint64_t address;
    uint64_t hold; /* acs_relocatables.hold at the look-up */
    acs_relocatable *at;
} acs_found;

enum { ACS_FOUND = 16 };

struct acs_relocatables {
    acs_lock lock;            /* guards all fields below, and program order among ops that name relocatable blocks */
    acs_relocatable first;    /* head of the ring of all blocks */
    acs_relocatable *touched; /* list of blocks that the op that is being bound names */
    uint64_t hold;            /* number of times that the lock was taken, or a block came or went */
    acs_found found[ACS_FOUND]; /* by a hash of the address */
    _Atomic(uint32_t) count; /* number of blocks, plus one for good once there was a lazy one; written under the lock */
    uint64_t most;            /* most bytes for versions; UINT64_MAX: as many as blocks have; 0: none */
    uint64_t block_bytes;     /* bytes of all relocatable blocks that have memory of their own */
    uint64_t version_bytes;   /* bytes of blocks whose contents are in a version, not at their canonical place */
    uint64_t host_most;       /* most bytes for host copies */
    uint64_t host_bytes;      /* bytes of host copies */
    uint64_t made;            /* number of blocks ever made */
    uint64_t namings;         /* number of turns of acs_naming_collect */
    uint64_t turn;            /* number of ops that were bound */
    uint64_t tries;           /* number of searches for room */
    bool no_wait;             /* whether the op that is being bound must not wait for room */
    bool short_of_wait;       /* whether contents could not be moved out for that reason */
    acs_op again;             /* op from which on memory for versions is asked for again; 0: at once */
    _Atomic(uint64_t) versions, homed; /* counters for acs_stats: versions made; copies to canonical places */
    _Atomic(uint64_t) spilled, returned; /* counters for acs_stats: bytes copied to host copies, and back */
};

/* Open the table, if there are pools. ACS_ERR_OPTION: ACS_RENAME needs pools, and they were switched off. */
acs_status acs_relocatables_open(acs_context *context);
/* Close the table; no op is under way. Contents that could not come to their canonical place are dropped. */
void acs_relocatables_close(acs_context *context);
/*
 * Take the lock. On the sim backend producers are fibers of one thread: one that waits for the lock lets others go on.
 */
void acs_relocatables_enter(acs_context *context);
void acs_relocatables_leave(acs_context *context);
/* Hold the lock from here to the end of the block, in whichever way that is left. */
#define ACS_HOLD_BLOCKS(context)                                                                                       \
    __attribute__((cleanup(acs_relocatables_held_end), unused)) acs_context *acs_held_blocks =                         \
        acs_relocatables_held_begin(context)
static inline acs_context *acs_relocatables_held_begin(acs_context *context)
{
    acs_relocatables_enter(context);
    return context;
}
static inline void acs_relocatables_held_end(acs_context *const *context)
{
    acs_relocatables_leave(*context);
}
/* Take the lock if that needs no wait. False: another thread has it, or that of program order. */
bool acs_relocatables_try(acs_context *context);
/* Whether there are no relocatable blocks, and never were lazy ones. */
static inline bool acs_relocatables_none(const acs_context *context)
{
    /* Relaxed: the way by which a thread was told of a block orders the load. */
    return !context->relocatables || atomic_load_explicit(&context->relocatables->count, memory_order_relaxed) == 0;
}
/* Call `visit` for each lazy block, under the lock. It must not call back. */
void acs_relocatables_each_lazy(acs_context *context, void (*visit)(void *user, const acs_relocatable *block), void *user);
void acs_relocatables_count(const acs_context *context, acs_statistics *statistics);

/* Make the block relocatable, if blocks may be renamed or there are several devices. ACS_ERR_MEMORY. */
acs_status acs_relocatable_add(acs_context *context, const acs_block *block);
/* The block is about to be freed behind op `last`. Returns the op behind which its memory is unused. */
acs_op acs_relocatable_remove(acs_context *context, const void *ptr, acs_op last);
/*
 * Bring all contents to their canonical place, except those of lazy blocks: the program's next action may reach them in
 * any way. Queues copies, does not wait.
 */
acs_status acs_relocatables_make_canonical(acs_context *context);
/*
 * On several devices: the copies to canonical places have ended, so the program may change the contents there. True:
 * copies had failed; their bytes are valid where they were before.
 */
bool acs_relocatables_hand_over(acs_context *context);
/* The same of a part of a block, once a wait for it ended with `status`; ACS_OK: all copies into it succeeded. */
void acs_relocatables_hand_over_part(acs_context *context, const void *ptr, size_t bytes, acs_status status);

/*
 * Keep the block in which the address lies at its canonical place from here on: acs_pin. ACS_ERR_FULL: `no_wait`, and it
 * would have to wait for the lock or for room.
 */
acs_status acs_relocatable_pin(acs_context *context, uint64_t address, bool no_wait);

/* contents.c; callers of all that follows hold the lock */

/* The relocatable block that holds the address, or NULL. */
acs_relocatable *acs_relocatable_at(acs_context *context, uint64_t address);
/* Make a relocatable block of the block, in the ring. NULL through ACS_FAIL. */
acs_relocatable *acs_relocatable_make(acs_context *context, const acs_block *block);
/* Refuse an op that reaches a lazy block in a way that cannot be bound. Returns ACS_ERR_UNSUPPORTED. */
acs_status acs_relocatable_refuse_lazy(const acs_relocatable *m);
/* Take the block out of the ring, and free its record. */
void acs_relocatable_unlink(acs_context *context, acs_relocatable *m);
/* The same, with all memory that its contents have, behind op `last`; UINT64_MAX: no op runs any more. */
void acs_relocatable_free(acs_context *context, acs_relocatable *m, acs_op last);
/*
 * Queue copies of the block's contents, part by part: a failure in one part keeps no other from coming. The failures of
 * a part go with its copy. Returns the latest copy, or 0 with an error.
 */
acs_op acs_relocatable_copy(acs_context *context, const acs_relocatable *m, uint64_t to, uint64_t from);
/*
 * The way of a copy that the library queues: addresses of the block's first byte, and on several devices the place that
 * it goes to.
 */
typedef struct acs_way {
    uint64_t to, from;
    uint32_t place;
    uint32_t device; /* device on which the copy runs */
} acs_way;
/* Queue one copy of a part that lies in the block. 0 with an error. */
acs_op acs_relocatable_copy_part(acs_context *context, const acs_relocatable *m, const acs_way *way,
                                 const acs_part *part);
/*
 * The memory at `base` begins a new life: later ops come behind its former users, up to op `last`, and do not inherit
 * their failures.
 */
acs_status acs_relocatable_begin_life(acs_context *context, const acs_relocatable *m, uint64_t base, acs_op last);
/*
 * Give the memory at m->at back behind op `last`, unless that is the canonical place. The contents are then at the
 * canonical place.
 */
void acs_relocatable_drop(acs_context *context, acs_relocatable *m, acs_op last);
/* Give the host copy of a lazy block back, behind op `last`. */
void acs_relocatable_drop_host(acs_context *context, acs_relocatable *m, acs_op last);

/* relocatable.c */

/* As acs_relocatables_make_canonical; on several devices the contents are then valid there alone. */
acs_status acs_relocatables_make_canonical_locked(acs_context *context);
/* Bring the block's contents to its canonical place. ACS_ERR_UNSUPPORTED: a lazy block has no memory there. */
acs_status acs_relocatable_make_canonical(acs_context *context, acs_relocatable *m);

/* lazy.c */

/* Make a lazy block: an address without memory. Takes the lock itself. */
acs_status acs_lazy_malloc(acs_context *context, size_t bytes, const acs_site *site, acs_block *block);
/* Free the lazy block at `ptr`. ACS_NOT_READY: there is none. acs_lazy_free takes the lock itself. */
acs_status acs_lazy_free(acs_context *context, const void *ptr, acs_block *block);
acs_status acs_lazy_free_locked(acs_context *context, const void *ptr, acs_block *block);
/*
 * Give a lazy block memory on the device that belongs to a group, and holds nothing yet: until acs_lazy_free, or until
 * it is dropped.
 */
void acs_lazy_borrow(acs_relocatable *m, uint32_t device, uint64_t at);
/* Give memory to all lazy blocks that the op that is being bound touches, and bring their contents back. */
acs_status acs_lazy_fetch(acs_draft *draft);
/* The op was not queued: give back the memory that the block got for it. */
void acs_lazy_undo(acs_context *context, acs_relocatable *m);
/*
 * Check that a segment does not leave the lazy block in which it begins, and that the block was not freed.
 * ACS_ERR_ARGUMENT.
 */
acs_status acs_lazy_check(const acs_draft *draft, const acs_segment *segment, uint32_t index);

#endif

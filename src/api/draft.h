/*
 * Drafts: the op that a public call fills in and queues. A call begins a draft, which takes a record; fills the record;
 * binds it; and then queues or drops it. Used by all calls that queue an op, here and in capture, residency, groups and
 * checks. A draft lives on the stack of its call and belongs to that thread. Defined in launch.c.
 */
#ifndef ACS_DRAFT_H
#define ACS_DRAFT_H

#include "api/context.h"

/* Of ops whose calls name no site. */
extern const acs_site acs_unknown_site;

typedef struct acs_draft {
    acs_context *context;
    acs_record *record;       /* owned by the draft until it is queued or dropped; NULL: none */
    acs_record_pool *records; /* pool that the record comes from */
    const acs_site *site;
    const char *name; /* a kernel's own name; NULL: that of the call site */
    struct acs_group *group; /* group that holds the op, set by acs_draft_begin; NULL: none */
    uint64_t modes;   /* acs_context.modes when the draft began */
    const acs_cell *cell; /* of the decision that the op obeys, if `decision` says so */
    acs_op queued; /* number of the op; set by acs_draft_queue */
    struct acs_launch_check *check; /* of a host function or call that is looked at (ACS_MODE_CHECK); NULL: none */
    acs_record **part; /* records queued together, with no other op between them; part[0] is `record`. Borrowed */
    uint32_t parts;    /* number of `part`; 0: the op is `record` alone */
    uint32_t reuses;  /* number of lives of blocks that begin with the op */
    bool no_wait;  /* a full FIFO gives ACS_ERR_FULL */
    bool own;      /* an op of the runtime's own, which no group holds */
    bool gives;    /* acs_stream_after: the program's stream may then write the op's segments, unseen */
    uint8_t on;    /* number + 1 of the one device on which the op is to run; 0: any */
    bool captured; /* the op becomes a node of a graph that the program captures; set by acs_draft_begin */
    bool alone;    /* this thread holds the lock of program order (program_order.h) for the draft */
    uint8_t places;   /* most segments that each named segment becomes when it is bound */
    bool bound;    /* the lock of renames (bind.h) is held until the draft is queued or dropped */
    bool begun;    /* acs_draft_begin_contents was called */
    bool expands;  /* a launch was taken back without an error, since its segments are not plain (expand.h) */
    bool kernel;   /* the program launched the op as a kernel; set by acs_draft_begin */
    uint8_t decision; /* ACS_RECORD_ flags of decisions and decided ops; the record gets them */
} acs_draft;

/*
 * Take a record of this kind. The caller has set context, site, name and no_wait. Waits while the FIFO is full.
 * @return the record; NULL with an error: nothing is left to drop.
 */
acs_record *acs_draft_begin(acs_draft *draft, acs_op_kind kind);
/*
 * Copy a footprint, which no function computes (expand.h), into the record. Makes room for `args` arguments of `arg_bytes`
 * bytes, too. On failure the caller drops the draft. ACS_NOT_READY, no error: a launch's segments have to be expanded.
 */
acs_status acs_draft_uses(acs_draft *draft, const acs_uses *uses, uint32_t args, uint32_t arg_bytes);
/*
 * Make these the segments of an op that obeys the cell: it reads the cell, and what it names as out may keep its old
 * bytes. There is room for one more. @return their number then.
 */
uint32_t acs_decided_segments(acs_segment *segments, uint32_t count, const acs_cell *cell);
/*
 * Check the record's segments: their shape, and the memory that they name. ACS_NOT_READY as acs_draft_uses. Defined in
 * check_segments.c.
 */
acs_status acs_draft_check_segments(const acs_draft *draft);
/*
 * Refuse segment i, which names freed memory. `block`: what was there; with 0 bytes it is not remembered. Defined in
 * check_segments.c.
 */
acs_status acs_draft_refuse_freed(const acs_draft *draft, const acs_segment *segment, uint32_t i, const acs_block *block);

/* The op's label in errors: call site and name. */
static inline acs_label acs_draft_label(const acs_draft *draft)
{
    return (acs_label){draft->site, draft->name || !draft->site ? draft->name : draft->site->name};
}
static inline const char *acs_draft_name(const acs_draft *draft)
{
    return acs_label_name(acs_draft_label(draft));
}
/* Write the draft's label into this thread's error. */
void acs_draft_blame(const acs_draft *draft);

/*
 * Bind the record, which is filled in except for the backend's part: point it at the present contents of the blocks
 * whose contents move. Does nothing in a context that never had such blocks. On failure the caller drops the draft.
 */
acs_status acs_draft_bind(acs_draft *draft);
/*
 * Give each block that a bound op writes as a whole its new contents now. acs_draft_queue does so for drafts for which
 * this was not called. Ops queued between the two calls find the new contents. ACS_ERR_MEMORY: drop the draft.
 * Defined in residency/bind.c.
 */
acs_status acs_draft_begin_contents(acs_draft *draft);
/* Part of acs_draft_queue: push the record, or all parts, into the FIFO. Returns the last number; 0: it is full. */
acs_op acs_draft_push(const acs_draft *draft);
/* Queue the record, waiting while the FIFO is full. 0 with an error: the draft was dropped. */
acs_op acs_draft_queue(acs_draft *draft);
/* Give the record back; keep this thread's error in the context, too. @return 0. */
acs_op acs_draft_drop(acs_draft *draft);
/* Give the record back, without an error. */
void acs_draft_take_back(acs_draft *draft);

/*
 * Check what a launch says of its grid, its blocks and its arguments. *arg_bytes: bytes of all arguments, each aligned as
 * CUDA aligns it. On failure the caller drops the draft.
 */
acs_status acs_launch_measure(const acs_draft *draft, const acs_launch_params *params, uint32_t *arg_bytes);
/*
 * Give a filled kernel record the share that the launch asks for, which is not 0. The record gets none, and that is
 * counted, where a device cannot be partitioned, in captures and in decided ops. ACS_ERR_ARGUMENT, through ACS_FAIL: no
 * such share. Defined in shares.c.
 */
acs_status acs_share_set(const acs_draft *draft, uint32_t percent);
/* Result of acs_launch_unchecked: draft->expands. Nothing was queued, and there is no error. */
#define ACS_OP_EXPANDS UINT64_MAX
/* acs_launch for an entered context, without looking at what it does (ACS_MODE_CHECK). */
acs_op acs_launch_unchecked(acs_context *context, const acs_launch_params *params);
/*
 * First half of a launch: begin the draft and copy the call into its record. False: refused, and dropped; or
 * draft->expands, which is never so for plain segments.
 */
bool acs_launch_fill(acs_draft *draft, const acs_launch_params *params);
/*
 * Second half, before acs_draft_queue: bind the record, and have the backend check it. False: refused, and dropped;
 * only copies that bring lazy blocks back may have been queued.
 */
bool acs_launch_bind(acs_draft *draft);

#endif

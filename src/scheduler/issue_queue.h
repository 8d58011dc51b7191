/*
 * Queues from the threads that place ops to those that issue them, one for each slot. The core books an op as issued once it
 * was given. Whether it could be launched shows later: see late.c.
 *
 * Threads. One thread at a time gives to a slot: the one that the core gave the slot to. Any number of threads take: each
 * claims a slot that has commands, carries one op out, and goes on to the next slot. None waits for another, and none takes
 * a lock. A slot whose next command must wait for a mark that is not recorded yet is passed over.
 *
 * Order. Commands of a slot are carried out as they were given. Batches are given in the order in which they were formed, so
 * the waits for marks of other slots never form a circle.
 *
 * Failures. An op that is refused *halts* the queues before its mark counts as recorded: from then on no command begins.
 * So no op that depends on it has begun. Once no slot is claimed the core decides which ops are to be skipped, and lets
 * the queues go on (late.c). Meanwhile an op that would be issued at once, by the thread that placed it, bounces.
 *
 * ISSUE-1  while the queues stand, no command changes but by the core.
 * ISSUE-2  a record is not touched behind the carrying out of its command: a later mark of the slot may free it.
 */
#ifndef ACS_ISSUE_QUEUE_H
#define ACS_ISSUE_QUEUE_H

#include "base/lock.h"
#include "window/batch.h"

#include <stdatomic.h>

typedef enum acs_command_type { ACS_COMMAND_MARK, ACS_COMMAND_WAIT, ACS_COMMAND_OP } acs_command_type;

/* What an issuing thread does next in one slot. */
typedef struct acs_command {
    acs_record *op;
    acs_mark mark;     /* to record, to wait for; of an op with `marks`: to record behind it, even if it fails */
    uint64_t value;    /* of an op */
    uint16_t slot;
    uint8_t type;      /* acs_command_type */
    uint8_t share;     /* as in acs_item */
    bool marks;
    bool skip;         /* set by the core: an op that this one depends on has failed */
    bool told;         /* set by the core: it knows that the op failed */
    acs_status status; /* of an op that could not be launched; its native code, and a text in static storage or NULL */
    int native;
    const char *text;
} acs_command;

/* What happened in acs_issue_queue_step. */
typedef enum acs_issue_step {
    ACS_ISSUE_EMPTY,   /* no slot has commands */
    ACS_ISSUE_DONE,    /* commands were carried out */
    ACS_ISSUE_BLOCKED, /* those that there are wait for marks, or other threads are at their slots */
    ACS_ISSUE_FAILED,  /* an op failed just now: somebody must step the core */
    ACS_ISSUE_HALTED   /* the queues are halted */
} acs_issue_step;

/* How commands are carried out, by the thread that calls _step or _send, with its `user`. */
typedef struct acs_issue_ops {
    bool (*lost)(void *user); /* commands are dropped, since the device is lost */
    void (*mark)(void *user, const acs_mark *mark);
    /* Let a slot, from now on with this share, wait for a mark that is recorded. */
    void (*wait)(void *user, uint32_t slot, uint8_t share, const acs_mark *mark);
    void (*op)(void *user, acs_command *command); /* in _step; sets command->status, native and text */
    void (*pause)(void *user); /* in _send, which waits for other threads */
    void (*full)(void *user);  /* in _send, of halted queues without room: lose the device */
} acs_issue_ops;

/* What became of an item in acs_issue_queue_send. */
typedef enum acs_issue_way {
    ACS_ISSUE_GIVEN, /* its op is in the queue of its slot */
    ACS_ISSUE_NOW,   /* the caller carries the op out now, and then its mark behind it: acs_issue_queue_record */
    ACS_ISSUE_LATER  /* the queues are halted: its op bounces; its marks and waits do not */
} acs_issue_way;

typedef struct acs_issue_queue acs_issue_queue;

/* Queues of `slots` slots with room for so many commands each. ACS_ERR_MEMORY. */
acs_status acs_issue_queue_create(uint32_t slots, uint32_t commands, acs_issue_queue **queue);
/* No thread uses the queues any more. NULL: nothing to do. */
void acs_issue_queue_destroy(acs_issue_queue *queue);

/* Commands that are not carried out. Any thread; others may change it at any time. */
uint64_t acs_issue_queue_load(const acs_issue_queue *queue);
/* Whether a slot may have commands. Any thread. */
bool acs_issue_queue_busy(const acs_issue_queue *queue);
/* Whether all that was given to the slot is carried out. By the thread that the core gave the slot to (acquires). */
bool acs_issue_queue_idle(const acs_issue_queue *queue, uint32_t slot);
/* The newest mark of a slot that is recorded, by whichever thread (acquires). */
uint64_t acs_issue_queue_recorded(const acs_issue_queue *queue, uint32_t slot);
/* A mark is recorded, by the thread that has the slot (releases). */
void acs_issue_queue_record(acs_issue_queue *queue, const acs_mark *mark);

/*
 * Send the marks and waits of an item, and its op where `gives`. `takers`: threads take commands now; otherwise this thread
 * sends them. May wait for other threads; the caller holds no lock that they need.
 */
acs_issue_way acs_issue_queue_send(acs_issue_queue *queue, const acs_batch *batch, const acs_item *item, bool takers,
                                   bool gives, const acs_issue_ops *ops, void *user);
/* Send the mark behind an op that bounced, or is skipped. */
void acs_issue_queue_send_mark(acs_issue_queue *queue, const acs_mark *mark, bool takers, const acs_issue_ops *ops,
                               void *user);
/*
 * A thread that takes commands. It looks at its own slots first, in turn, since launches into one stream by several threads
 * take longer.
 */
typedef struct acs_issue_taker {
    uint64_t own;  /* one bit per slot */
    uint32_t next; /* slot at which it looks first */
} acs_issue_taker;
/* Carry out the next op of a slot, or a mark. */
acs_issue_step acs_issue_queue_step(acs_issue_queue *queue, acs_issue_taker *taker, const acs_issue_ops *ops, void *user);

/* Whether an op has failed, and the core has not yet decided what follows (acquires). */
bool acs_issue_queue_halted(const acs_issue_queue *queue);
/*
 * Whether halted queues stand: no command is carried out, nor will be. No batch is under way meanwhile, so nothing is given.
 * acs_issue_queue_resume lets them go on.
 */
bool acs_issue_queue_stands(const acs_issue_queue *queue);
void acs_issue_queue_resume(acs_issue_queue *queue);
/* Of queues that stand: a slot's commands that are not carried out, oldest first. NULL: there are no more. */
acs_command *acs_issue_queue_at(acs_issue_queue *queue, uint32_t slot, uint32_t index);

#endif

/*
 * What optional parts of the library (captures, groups, blocks that move, checks, the simulator) do beside a plain
 * launch and a plain wait. One table serves all of them, in a context from acs_open to acs_close; NULL: the library has
 * no such parts. A launch reads one word, acs_context.modes. Where no bit of ACS_MODES_LAUNCH is set, it calls nothing here.
 */
#ifndef ACS_HOOKS_H
#define ACS_HOOKS_H

#include "scheduler/core.h"

struct acs_draft;

/* acs_context.modes: bits, and two counts. */
#define ACS_MODE_LOST ((uint64_t)1)             /* the device is lost; never cleared */
#define ACS_MODE_REPEAT ((uint64_t)1 << 1)      /* the next op begins a repeat (acs_mark_repeat) */
#define ACS_MODE_ISSUE_NOW ((uint64_t)1 << 2)   /* ACS_DISABLE; constant */
#define ACS_MODE_CHECK ((uint64_t)1 << 4)       /* ACS_CHECK=written; constant */
#define ACS_MODE_DEVICES ((uint64_t)1 << 5)     /* several devices; constant */
#define ACS_MODE_BLOCKS ((uint64_t)1 << 6)      /* there were blocks whose contents move; never cleared */
#define ACS_MODE_LEDGER ((uint64_t)1 << 7)      /* devices are shared with other programs; constant */
#define ACS_MODE_SECTION ((uint64_t)1 << 8)     /* one of a count of 24 bits: threads whose ops are captured or held */
#define ACS_MODE_SECTIONS (((uint64_t)1 << 32) - ACS_MODE_SECTION)
#define ACS_MODE_REUSE ((uint64_t)1 << 32)      /* one of a count of 32 bits: lives of blocks that begin with the next op */
#define ACS_MODE_REUSES (~(uint64_t)0 << 32)

/* What changes a launch. */
#define ACS_MODES_LAUNCH (~ACS_MODE_LEDGER)

typedef struct acs_op_hooks {
    /* acs_launch as a whole, with ACS_MODE_CHECK. */
    acs_op (*launch)(acs_context *context, const acs_launch_params *params);
    /* Begin an op. May set draft->record, which is then not taken from the context's. False: refused, with an error. */
    bool (*begin)(struct acs_draft *draft, acs_op_kind kind);
    /* The record is filled in: point it at where the contents of its blocks are. */
    acs_status (*bind)(struct acs_draft *draft);
    /* Before the record enters the FIFO. True: it went elsewhere, and *op is the result of the call, 0 with an error. */
    bool (*submit)(struct acs_draft *draft, acs_op *op);
    /* The record is in the FIFO, as `op`. */
    void (*queued)(struct acs_draft *draft, acs_op op);
    /* The op is given up. The record is still there, if one was taken. */
    void (*drop)(struct acs_draft *draft);
    /* An op ended. Under the core's lock. */
    void (*ended)(acs_context *context, const acs_end *end);
    /* A call waits for all ops: an error where the thread may not wait. */
    acs_status (*may_wait)(acs_context *context, const char *function);
    /* Before and after a wait for all ops. The second: true if ops failed that only the runtime knows of. */
    void (*before_drain)(acs_context *context);
    bool (*drained)(acs_context *context);
    /* The program waited for all writers of these bytes, and may write them itself. `status`: how the wait ended. */
    void (*came_home)(acs_context *context, const void *ptr, size_t bytes, acs_status status);
    /* A wait for `op` is over; 0: for all ops. */
    void (*waited)(acs_context *context, acs_op op);
    /* What the number stands for that is no op of the FIFO: an error, or ACS_OK if nothing is known of it. */
    acs_status (*check_op)(acs_op op, const char *function);
    /* The group that the calling thread holds takes the free: true, and *op is its result. */
    bool (*free)(acs_context *context, void *ptr, const acs_site *site, acs_op *op);
    /* The number of the group that the calling thread holds; 0: none. */
    uint64_t (*group_number)(acs_context *context);
    /* With ACS_MODE_LEDGER: a block of no group was taken from the pools of this kind. */
    void (*kept)(acs_context *context, int kind);
    /* Statistics: add what the parts count; lines of the report. */
    void (*count)(acs_context *context, acs_statistics *statistics);
    void (*report)(acs_context *context, const acs_statistics *statistics);
    /* acs_clear, and a thread of the context's that finds nothing to do. */
    void (*clear)(acs_context *context);
    void (*idle)(acs_context *context);
} acs_op_hooks;

/* How a context whose time is simulated goes on: in place of threads (the sim backend). */
typedef struct acs_stepper {
    /* What the time is. */
    uint64_t (*now_ns)(acs_context *context);
    /* One step. False: nothing to do now. */
    bool (*step)(acs_context *context);
    /* A call queued an op: the steps that workers take meanwhile. */
    void (*queued)(acs_context *context);
    /* A caller waits for ops: step, or let others go on. False: what it waits for will never come. */
    bool (*wait)(acs_context *context);
    /* A caller waits for another thread, which is inside a call. */
    void (*wait_for_thread)(acs_context *context);
    /* True: waits end without success, since nothing can make progress any more. */
    bool (*is_stuck)(const acs_context *context);
} acs_stepper;

#endif

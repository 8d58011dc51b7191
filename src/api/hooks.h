/*
 * Hooks: functions of the library's optional parts (captures, groups, blocks that move, checks, the simulator) that
 * public calls run beside the plain path. A context has one table for all parts, from acs_open to acs_close; NULL: the
 * library has no such parts. A launch reads one word, acs_context.modes, and calls no hook where no bit of
 * ACS_MODES_LAUNCH is set.
 */
#ifndef ACS_HOOKS_H
#define ACS_HOOKS_H

#include "scheduler/core.h"

struct acs_draft;

/* acs_context.modes: bits, and two counts. */
#define ACS_MODE_LOST ((uint64_t)1)             /* the device is lost; never cleared */
#define ACS_MODE_DECISIONS ((uint64_t)1 << 1)   /* the context has had decided ops; never cleared */
#define ACS_MODE_ISSUE_NOW ((uint64_t)1 << 2)   /* ACS_DISABLE; constant */
#define ACS_MODE_REPEATS ((uint64_t)1 << 3)     /* a pass of a repeat is under way */
#define ACS_MODE_CHECK ((uint64_t)1 << 4)       /* ACS_CHECK=writes, reads or all; constant */
#define ACS_MODE_DEVICES ((uint64_t)1 << 5)     /* several devices; constant */
#define ACS_MODE_BLOCKS ((uint64_t)1 << 6)      /* a block whose contents move was made; never cleared */
#define ACS_MODE_LEDGER ((uint64_t)1 << 7)      /* devices are shared with other programs; constant */
#define ACS_MODE_BARRIERS ((uint64_t)1 << 8)    /* ACS_BARRIERS; constant */
#define ACS_MODE_VARIANTS ((uint64_t)1 << 9)    /* a kernel has versions; never cleared */
#define ACS_MODE_SECTION ((uint64_t)1 << 10)    /* unit of a 22-bit count of threads whose ops are captured or held */
#define ACS_MODE_SECTIONS (((uint64_t)1 << 32) - ACS_MODE_SECTION)
#define ACS_MODE_REUSE ((uint64_t)1 << 32)      /* unit of a 32-bit count of lives of blocks that the next op begins */
#define ACS_MODE_REUSES (~(uint64_t)0 << 32)

/* Modes in which a launch does not take the plain path. */
#define ACS_MODES_LAUNCH (~(ACS_MODE_LEDGER | ACS_MODE_DECISIONS | ACS_MODE_VARIANTS))

typedef struct acs_op_hooks {
    /* Take over acs_launch as a whole. Called with ACS_MODE_CHECK or ACS_MODE_REPEATS. */
    acs_op (*launch)(acs_context *context, const acs_launch_params *params);
    /* The same with ACS_MODE_VARIANTS: chooses a version of the kernel, if it has some, and goes on as `launch`. */
    acs_op (*launch_version)(acs_context *context, const acs_launch_params *params);
    /*
     * Take a launch that recurs into a replay. 0: it goes the usual way. Called where ACS_MODE_REPEATS is the only one of
     * ACS_MODES_LAUNCH.
     */
    acs_op (*recur)(acs_context *context, const acs_launch_params *params);
    /*
     * An op begins. May set draft->record; then none is taken from the context's pool. False: refused, with an error.
     */
    bool (*begin)(struct acs_draft *draft, acs_op_kind kind);
    /* The record is filled in: point it at the present contents of its blocks. */
    acs_status (*bind)(struct acs_draft *draft);
    /*
     * An op keeps the address: the block in which it lies stays where it is from now on, as by acs_pin. ACS_ERR_FULL:
     * `no_wait`, and another thread holds the lock, or the FIFO is full.
     */
    acs_status (*pin)(acs_context *context, uint64_t address, bool no_wait);
    /* Memory of acs_check_register in which the address lies. False: there is none. */
    bool (*registered)(acs_context *context, uint64_t address, uint64_t *first, uint64_t *bytes);
    /*
     * Before the record enters the FIFO. True: it went elsewhere, and *op is the result of the call, 0 with an error.
     */
    bool (*submit)(struct acs_draft *draft, acs_op *op);
    /* acs_draft_push for a draft. 0: the FIFO is full. Called with ACS_MODE_REPEATS. */
    acs_op (*push)(struct acs_draft *draft);
    /* The record is in the FIFO, as `op`. */
    void (*queued)(struct acs_draft *draft, acs_op op);
    /* The draft is dropped. Its record is not yet given back. */
    void (*drop)(struct acs_draft *draft);
    /* An op ended. Under the core's lock. Called with ACS_MODE_DEVICES. */
    void (*ended)(acs_context *context, const acs_end *end);
    /*
     * The thread needs this op to go on, which may be held back; UINT64_MAX: all ops; 0: room for an op. `waits`: the
     * program begins to wait for it. Called with ACS_MODE_REPEATS.
     */
    void (*flush)(acs_context *context, acs_op op, bool waits);
    /* A call wants to wait for all ops. An error if the thread may not wait, since its ops are captured or held. */
    acs_status (*may_wait)(acs_context *context, const char *function);
    /* Before a wait for all ops. */
    void (*before_drain)(acs_context *context);
    /* After it. True: ops failed that only the runtime knows of. */
    bool (*drained)(acs_context *context);
    /* The program waited for all writers of these bytes, and may write them itself. `status`: how the wait ended. */
    void (*came_home)(acs_context *context, const void *ptr, size_t bytes, acs_status status);
    /* A wait for `op` is over; 0: for all ops. */
    void (*waited)(acs_context *context, acs_op op);
    /* Explain a number that no op of the FIFO has: an error, or ACS_OK if the parts know nothing of it. */
    acs_status (*check_op)(acs_op op, const char *function);
    /* acs_free. True: the group that the calling thread holds took it, and *op is the result of the call. */
    bool (*free)(acs_context *context, void *ptr, const acs_site *site, acs_op *op);
    /* The capture in which the calling thread's ops become nodes; NULL: none. */
    const void *(*capture)(acs_context *context);
    /* Device memory that lives as long as the graph of that capture. */
    acs_status (*capture_memory)(acs_context *context, size_t bytes, void **memory);
    /* The number of the group that the calling thread holds; 0: none. */
    uint64_t (*group_number)(acs_context *context);
    /* A block outside all groups was taken from the pools of this kind. Called with ACS_MODE_LEDGER. */
    void (*kept)(acs_context *context, int kind);
    /* Add the counters of the parts to the statistics. */
    void (*count)(acs_context *context, acs_statistics *statistics);
    /* Write the parts' lines of the report of ACS_STATS=1. */
    void (*report)(acs_context *context, const acs_statistics *statistics);
    /* acs_clear was called. */
    void (*clear)(acs_context *context);
    /* The context is open and registered. */
    void (*opened)(acs_context *context);
    /* A thread of the context found nothing to do. True: ops are held back, so another look is needed soon. */
    bool (*idle)(acs_context *context);
} acs_op_hooks;

/* The stepper of a context in the sim backend, whose time is simulated: it takes the place of threads. */
typedef struct acs_stepper {
    /* The simulated time in ns. */
    uint64_t (*now_ns)(acs_context *context);
    /* One step. False: nothing to do now. */
    bool (*step)(acs_context *context);
    /* A call queued an op: take the steps that workers would take meanwhile. */
    void (*queued)(acs_context *context);
    /* A caller waits for ops: step, or let other threads step. False: its condition will never be true. */
    bool (*wait)(acs_context *context);
    /* A caller waits for another thread, which is inside a call. */
    void (*wait_for_thread)(acs_context *context);
    /* True: nothing can make progress any more, so waits end without success. */
    bool (*is_stuck)(const acs_context *context);
} acs_stepper;

#endif

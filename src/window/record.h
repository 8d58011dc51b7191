/*
 * Op records: written by the thread that calls, read by everything below. A producer acquires a record, which travels
 * by pointer from the FIFO to the window, a slot and retirement. The thread that retires the op releases it.
 *
 * Arguments and segments of common sizes lie inside the record. Larger ones lie in one block of a pooled size class.
 * The pool calls malloc for classes only while it warms up. Before the context closes it frees only blocks that change
 * class, and those beyond the largest class.
 *
 * REC-1  there are as many block numbers as records. So the cached and used blocks of all classes are never more than
 *        the records, however sizes shift.
 * REC-2  a record belongs to one pool, and has one owner at any time.
 */
#ifndef ACS_RECORD_H
#define ACS_RECORD_H

#include "base/base.h"
#include "window/decision.h"

typedef enum acs_op_kind {
    ACS_KIND_KERNEL,
    ACS_KIND_MEMCPY,
    ACS_KIND_MEMSET,
    ACS_KIND_HOST,          /* host function */
    ACS_KIND_CALL,          /* library call */
    ACS_KIND_FREE,          /* acs_free that calls the driver; never skipped */
    ACS_KIND_CALLBACK,      /* acs_on_retire; never skipped */
    ACS_KIND_OBSERVE,       /* acs_wait_range: collects dependencies, registers none, runs nothing */
    ACS_KIND_STREAM_WAIT,   /* acs_after_stream: its slot waits for a foreign stream */
    ACS_KIND_STREAM_SIGNAL, /* acs_stream_after: a foreign stream waits for the upstream ops */
    ACS_KIND_REPLAY,        /* several kernels that go through the window as one op: replay.h */
    ACS_KIND_JOIN,          /* made by the window: stands for many upstream ops; never issued */
    ACS_KIND_COUNT
} acs_op_kind;

/* One row of the argument table: the place of an argument in the argument bytes, and its pointers. */
typedef struct acs_arg_slot {
    uint16_t offset; /* bytes, into record->arg_bytes */
    uint16_t size;
    uint32_t type : 2;        /* acs_arg_type */
    uint32_t words : 30;      /* for ACS_ARG_POINTERS: one bit per 8-byte word, set if the word is a pointer */
} acs_arg_slot;
_Static_assert(ACS_ARG_BYTES_MAX <= UINT16_MAX, "a row has 16 bits for where an argument lies");

enum { ACS_CALL_PARTS = 4 }; /* most ops that a library call may become */

enum { ACS_INLINE_ARGS = 8, ACS_INLINE_ARG_BYTES = 256, ACS_INLINE_SEGMENTS = 6 };

enum {
    ACS_RECORD_REUSES = 1, /* blocks were handed out again just before this op: `reuses` */
    ACS_RECORD_PLACED = 2, /* the op was counted on one of several devices, until it ends */
    /* a copy made by the runtime: it also runs on data of failed ops, and then its downstream ops skip */
    ACS_RECORD_PROPAGATES = 4,
    ACS_RECORD_DECIDES = 8,  /* a decision: its argument is an acs_decision */
    ACS_RECORD_DECIDED = 16, /* the op runs only if `cell` says so */
    ACS_RECORD_GRID_DECIDED = 32, /* and takes its grid from it; `grid` is the largest */
    ACS_RECORD_TIMED = 64, /* a kernel whose time on the device is wanted: u.launch.timing */
    ACS_RECORD_SHARE = 128, /* a kernel that goes to a part of the device: u.launch.attributes.share, 1 to 99 percent */
    ACS_RECORD_DECISION = ACS_RECORD_DECIDES | ACS_RECORD_DECIDED | ACS_RECORD_GRID_DECIDED
};

/*
 * A new life of memory that earlier ops may still use: later ops that touch it run behind those, without their
 * failures.
 */
typedef struct acs_reuse {
    struct acs_reuse *next;
    uint64_t base, bytes;
} acs_reuse;
enum { ACS_REUSES_MOST = 8 }; /* of one op; concurrent callers may exceed it by a few */

/*
 * Ordered by cache line: another CPU has just written them, and each costs its reader 0.1 us. For an op of a bundle,
 * insertion reads the head and the segments; issue reads the head, the grid and the argument bytes; retirement the
 * head.
 */
typedef struct acs_record {
    /* written by the producer */
    acs_op seq;             /* program order; set by the push into the FIFO */
    const acs_site *site;   /* never NULL */
    uint8_t kind;           /* acs_op_kind */
    uint8_t any;            /* the op may touch any memory */
    uint8_t asked;          /* acs_op_kind that the program called; `kind` differs if a copy or call became a kernel */
    uint8_t flags;          /* ACS_RECORD_* */
    /* of a kernel, set by the backend's check(): number of (kernel, block, shared memory); 0: plain launches only */
    uint32_t type;
    uint32_t segment_count;
    uint32_t index;         /* place in the pool */
    acs_segment *segments;  /* inline_segments or in `block` */
    unsigned char *arg_bytes; /* aligned to 16 bytes; of kinds HOST and CALL: the copied closure */
    void *block;            /* pooled block, or NULL */
    uint64_t content;       /* of a kernel with a type, set by check(): hash of its grid and arguments */
    acs_segment inline_segments[ACS_INLINE_SEGMENTS];
    acs_dim3 grid;          /* of a kernel, in blocks */
    uint16_t device;        /* the op's device; 0 where a context has one */
    uint16_t block_class;
    acs_arg_slot *args;     /* inline_args or in `block` */
    acs_reuse *reuses;      /* owned, if flags has ACS_RECORD_REUSES */
    const acs_cell *cell;   /* of the decision that it obeys, if flags has ACS_RECORD_DECIDED */
    uint32_t arg_count;
    uint32_t arg_bytes_used;
    /* of a recorded context, as recorder.h has times and threads: when its call queued it, and in which thread; when it ran,
     * set by backends that know; 0: not known */
    uint64_t entered, began, ended;
    uint32_t thread;
    union {
        struct {
            acs_kernel kernel;
            acs_dim3 block;
            uint64_t shared_bytes;
            acs_attributes attributes;
            void *resolved; /* owned by the backend, set by its check() */
            struct acs_timing *timing;     /* who wants the time, with ACS_RECORD_TIMED */
            uint64_t timer;                /* of a timed op: the backend's, from submit to elapsed() */
        } launch;
        struct {
            void *dst;
            const void *src;
            uint64_t bytes; /* bytes of one row */
            int value;      /* MEMSET */
            uint32_t rows;  /* on both sides; above 1 only in copies made by the runtime */
            uint64_t pitch; /* bytes from one row to the next */
        } copy;
        struct {
            acs_host_fn function;
            void *closure; /* arg_bytes, or the caller's pointer if no bytes were copied */
        } host;
        struct {
            acs_call_fn function;
            void *closure;
            uint64_t scratch_bytes;
            const void *place_key;
            void (*place_destroy)(void *);
            void *known; /* owned by the backend, set by its call_find(); NULL: such calls are unknown */
        } call;
        struct {
            void *ptr;
            uint64_t bytes;
            int memory; /* ACS_MEMORY_* */
        } free;
        struct {
            acs_retire_fn function;
            void *user;
            acs_op target;
        } callback;
        struct {
            struct acs_replay *replay; /* owned by its repeat; NULL: not sealed yet. Guarded by the core's lock */
            uint32_t depth;            /* longest chain of its ops, where such are counted, else 1; as `replay` */
            uint32_t span;             /* numbers that it takes, from `seq` on; ops that are left out have some of them */
        } replay;
        struct {
            void *stream; /* foreign stream */
            void *event;  /* STREAM_WAIT: the backend's record of the foreign stream's work; submit releases it */
        } stream;
    } u;
    acs_arg_slot inline_args[ACS_INLINE_ARGS];
    struct {
        uint64_t block, first; /* number of the relocatable block, and the first byte that is copied */
        uint32_t place;        /* the target, where there are several devices */
    } carried; /* with ACS_RECORD_PROPAGATES; outside the union, since the copy may have become a kernel */
    _Alignas(ACS_CACHE_LINE) unsigned char inline_bytes[ACS_INLINE_ARG_BYTES];
} acs_record;
_Static_assert(offsetof(acs_record, inline_segments) == ACS_CACHE_LINE, "the head is one cache line");

/* Whether the segment names any bytes, and the address behind its last byte. Checked segments do not wrap. */
static inline bool acs_segment_has_bytes(const acs_segment *s)
{
    return s->extent == ACS_EXTENT_BYTES && s->rows && s->row_bytes;
}
static inline uint64_t acs_segment_end(const acs_segment *s)
{
    return s->base + (s->rows - 1) * s->pitch_bytes + s->row_bytes;
}

/* What errors, statistics and graphs call an op: its call site, and a name that may be the kernel's own. */
typedef struct acs_label {
    const acs_site *site;
    const char *name; /* NULL: unknown */
} acs_label;

/* The kernel's own name if it has one, else the name at the call site. */
static inline acs_label acs_record_label(const acs_record *record)
{
    const bool launched = record->kind == ACS_KIND_KERNEL && record->asked == ACS_KIND_KERNEL;
    const char *own = launched ? record->u.launch.kernel.name : NULL;
    return (acs_label){record->site, own || !record->site ? own : record->site->name};
}
/* The name for people: "k" where a program wrote &k, "?" where none is known. */
const char *acs_label_name(acs_label label);
/* The label in the form of a call site, for errors; its name is NULL if unknown. */
acs_site acs_label_site(acs_label label);
static inline const char *acs_record_name(const acs_record *record)
{
    return acs_label_name(acs_record_label(record));
}

/* The decision that the record is. */
static inline const acs_decision *acs_record_decision(const acs_record *record)
{
    return (const acs_decision *)(const void *)record->arg_bytes;
}

/* How many numbers the record takes, from `seq` on. */
static inline uint32_t acs_record_span(const acs_record *record)
{
    return ACS_UNLIKELY(record->kind == ACS_KIND_REPLAY) ? record->u.replay.span : 1;
}

/* Bytes of a MEMCPY or MEMSET, all rows together. */
static inline uint64_t acs_record_copied(const acs_record *record)
{
    return record->u.copy.bytes * record->u.copy.rows;
}

/* Who wants to know how long an op takes on the device. Outlives the op. */
typedef struct acs_timing {
    /* The op has ended; ns 0: its time is not known. Called once, under the core's lock: must not call the core. */
    void (*ended)(struct acs_timing *timing, acs_status status, uint64_t ns);
} acs_timing;

typedef struct acs_record_pool acs_record_pool;

/* Allocate a pool of `records` records. ACS_ERR_ARGUMENT, ACS_ERR_MEMORY: *pool is untouched. */
acs_status acs_record_pool_create(uint32_t records, acs_record_pool **pool);
void acs_record_pool_destroy(acs_record_pool *pool);
/*
 * Take a record whose counts are 0 and whose pointers lead to its inline places; NULL: none is free. Any thread,
 * lock-free.
 */
acs_record *acs_record_acquire(acs_record_pool *pool);
/*
 * Make room for arguments (table rows and bytes) and segments; once per record, before they are written.
 * ACS_ERR_MEMORY: the pool could not grow; the record is as before.
 */
acs_status acs_record_reserve(acs_record_pool *pool, acs_record *record, uint32_t args, uint32_t arg_bytes,
                              uint32_t segments);
/* Make `to`, just acquired, the same op as `from`, not queued. ACS_ERR_MEMORY: `to` is as before. */
acs_status acs_record_copy(acs_record_pool *pool, acs_record *to, const acs_record *from);
/* Free the list of reuses, if the record has one. */
void acs_record_drop_reuses(acs_record *record);
/* Give a record back, with the block that it owns. Any thread. */
void acs_record_release(acs_record_pool *pool, acs_record *record);
/*
 * Release many records with one write: gather each, then release all. A release writes the cache line from which
 * producers take records, so single releases would slow down calls. All zero: an empty chain.
 */
typedef struct acs_record_chain {
    uint32_t first, last;                /* record indices + 1; 0: none */
    uint32_t blocks_first, blocks_last;  /* block numbers + 1; 0: none */
    uint32_t blocks_class;               /* the class of all these blocks */
} acs_record_chain;
void acs_record_gather(acs_record_pool *pool, acs_record_chain *chain, acs_record *record);
void acs_record_release_all(acs_record_pool *pool, acs_record_chain *chain);
/* Bytes held by the pool; the soak test watches them. */
uint64_t acs_record_pool_bytes(const acs_record_pool *pool);

#endif

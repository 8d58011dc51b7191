/*
 * Op records: what the caller's path writes and everything below reads. A record is acquired by a producer, travels by
 * pointer FIFO -> window -> slot -> retirement, and is released by whoever retires the op. One owner at any time.
 *
 * Common sizes of arguments and segments lie inside the record. Larger ones lie in one block of a pooled size class;
 * the pool grows by malloc only while it is warming up, and never shrinks before the context closes.
 *
 * REC-1  there are as many numbers of blocks as records: however sizes shift, cached and used blocks of a class are
 * together
 *        no more than records.
 * REC-2  a record is its pool's, and has one owner at any time.
 */
#ifndef ACS_RECORD_H
#define ACS_RECORD_H

#include "base/base.h"

typedef enum acs_op_kind {
    ACS_KIND_KERNEL,
    ACS_KIND_MEMCPY,
    ACS_KIND_MEMSET,
    ACS_KIND_HOST,          /* host function */
    ACS_KIND_CALL,          /* library call */
    ACS_KIND_FREE,          /* acs_free that calls the driver; never skipped */
    ACS_KIND_CALLBACK,      /* acs_on_retire; never skipped */
    ACS_KIND_OBSERVE,       /* acs_wait_range: collects dependencies, registers none, does nothing */
    ACS_KIND_STREAM_WAIT,   /* acs_after_stream: its slot waits for a foreign stream */
    ACS_KIND_STREAM_SIGNAL, /* acs_stream_after: a foreign stream waits for the upstream ops */
    ACS_KIND_JOIN,          /* made by the window: stands for many upstream ops; never issued */
    ACS_KIND_COUNT
} acs_op_kind;

/* One row of the argument table: where an argument lies, and which of it are pointers. */
typedef struct acs_arg_slot {
    uint16_t offset; /* into record->arg_bytes */
    uint16_t size;
    uint32_t type : 2;        /* acs_arg_type */
    uint32_t words : 30;      /* of ACS_ARG_POINTERS: which of its words of 8 bytes are pointers, a bit for each */
} acs_arg_slot;
_Static_assert(ACS_ARG_BYTES_MAX <= UINT16_MAX, "a row has 16 bits for where an argument lies");

enum { ACS_CALL_PARTS = 4 }; /* ops that a library call may become, at most */

enum { ACS_INLINE_ARGS = 8, ACS_INLINE_ARG_BYTES = 256, ACS_INLINE_SEGMENTS = 6 };

enum {
    ACS_RECORD_REPEATS = 1, /* acs_mark_repeat: a repeat begins with it */
    ACS_RECORD_REUSES = 2,  /* blocks were handed out again just before it */
    ACS_RECORD_PLACED = 8,  /* of several devices it was given one: counted there until it ends */
    ACS_RECORD_CARRIES = 4  /* a copy of the runtime's: also of what failed ops left, of which its end tells */
};

/*
 * Memory that earlier ops may use begins a new life: whoever touches it later comes behind them, without their
 * failures.
 */
typedef struct acs_reuse {
    struct acs_reuse *next;
    uint64_t base, bytes;
} acs_reuse;
enum { ACS_REUSES_MOST = 8 }; /* of one op; a few more where threads add some at once */

/*
 * By cache line, since another CPU has just written them and each costs who reads it 0.1 us: of an op that goes in a
 * bundle the head and the segments are read when it enters the window, the head, the grid and the argument bytes when
 * it is issued, and the head again when it retires.
 */
typedef struct acs_record {
    /* written by the producer */
    acs_op seq;             /* program order; set when queued */
    const acs_site *site;   /* never NULL */
    uint8_t kind;           /* acs_op_kind */
    uint8_t any;            /* may touch anything */
    uint8_t asked;          /* acs_op_kind: what the program called; a small copy may have become a kernel since */
    uint8_t flags;          /* ACS_RECORD_* */
    uint32_t type;          /* of a kernel, set by the backend's check(): number of (kernel, block, shared memory) for
                               issue methods; 0: plain launches only */
    uint32_t segment_count;
    uint32_t index;         /* this record's place in its pool */
    acs_segment *segments;  /* inline_segments or in `block` */
    unsigned char *arg_bytes; /* 16-byte aligned; for kinds HOST and CALL the copied closure */
    void *block;            /* pooled block, or NULL */
    uint64_t content;       /* of a kernel with a type, set by check(): hash of its grid and its arguments */
    acs_segment inline_segments[ACS_INLINE_SEGMENTS];
    acs_dim3 grid;          /* of a kernel */
    uint16_t device;        /* on which it runs; of a context with one device 0 */
    uint16_t block_class;
    acs_arg_slot *args;     /* inline_args or in `block` */
    acs_reuse *reuses;      /* ACS_RECORD_REUSES */
    uint32_t arg_count;
    uint32_t arg_bytes_used;
    union {
        struct {
            acs_kernel kernel;
            acs_dim3 block;
            uint64_t shared_bytes;
            acs_attributes attributes;
            void *resolved; /* the backend's own, set by its check() */
        } launch;
        struct {
            void *dst;
            const void *src;
            uint64_t bytes; /* of a row */
            int value;      /* MEMSET */
            uint32_t rows;  /* 1, but of copies of the runtime's own; on both sides */
            uint64_t pitch; /* from one row to the next */
        } copy;
        struct {
            acs_host_fn function;
            void *closure; /* arg_bytes, or the caller's pointer if 0 bytes were copied */
        } host;
        struct {
            acs_call_fn function;
            void *closure;
            uint64_t scratch_bytes;
            const void *place_key;
            void (*place_destroy)(void *);
            void *known; /* the backend's own, set by its call_find(); NULL: nothing is known of calls like it */
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
            void *stream; /* foreign stream */
            void *event;  /* STREAM_WAIT: the backend's record of the foreign stream's work; released by submit */
        } stream;
    } u;
    acs_arg_slot inline_args[ACS_INLINE_ARGS];
    struct {
        uint64_t block, first; /* its number, and its first byte that is copied */
        uint32_t place;        /* of several devices: where to */
    } carried;                 /* ACS_RECORD_CARRIES; beside the copy, which may have become a kernel */
    _Alignas(ACS_CACHE_LINE) unsigned char inline_bytes[ACS_INLINE_ARG_BYTES];
} acs_record;
_Static_assert(offsetof(acs_record, inline_segments) == ACS_CACHE_LINE, "the head is one cache line");

/* It names bytes; one behind the last of them, which cannot wrap: segments are checked before. */
static inline bool acs_segment_has_bytes(const acs_segment *s)
{
    return s->extent == ACS_EXTENT_BYTES && s->rows && s->row_bytes;
}
static inline uint64_t acs_segment_end(const acs_segment *s)
{
    return s->base + (s->rows - 1) * s->pitch_bytes + s->row_bytes;
}

/* How errors, statistics and graphs name an op: its call site, and its name, which may be the kernel's own. */
typedef struct acs_label {
    const acs_site *site;
    const char *name; /* NULL: not known */
} acs_label;

/* The kernel's own name where it has one, else the name at the call site. */
static inline acs_label acs_record_label(const acs_record *record)
{
    const bool launched = record->kind == ACS_KIND_KERNEL && record->asked == ACS_KIND_KERNEL;
    const char *own = launched ? record->u.launch.kernel.name : NULL;
    return (acs_label){record->site, own || !record->site ? own : record->site->name};
}
/* The name for people: "k" where a program wrote &k, "?" where none is known. */
const char *acs_label_name(acs_label label);
/* The same as the call site of an error; its name is NULL where none is known. */
acs_site acs_label_site(acs_label label);
static inline const char *acs_record_name(const acs_record *record)
{
    return acs_label_name(acs_record_label(record));
}

/* All bytes of a MEMCPY or MEMSET. */
static inline uint64_t acs_record_copied(const acs_record *record)
{
    return record->u.copy.bytes * record->u.copy.rows;
}

typedef struct acs_record_pool acs_record_pool;

/* `records` records, allocated at once. */
acs_status acs_record_pool_create(uint32_t records, acs_record_pool **pool);
void acs_record_pool_destroy(acs_record_pool *pool);
/* A record with counts 0 and pointers at its inline places; NULL if none is free. Any thread, lock-free. */
acs_record *acs_record_acquire(acs_record_pool *pool);
/*
 * Make room for arguments (table rows and bytes) and segments; call once per record, before writing them.
 * ACS_ERR_MEMORY: the pool could not grow; the record is as before.
 */
acs_status acs_record_reserve(acs_record_pool *pool, acs_record *record, uint32_t args, uint32_t arg_bytes,
                              uint32_t segments);
/* `to`, as it was acquired, becomes the same op, not queued yet. ACS_ERR_MEMORY: it is as before. */
acs_status acs_record_copy(acs_record_pool *pool, acs_record *to, const acs_record *from);
/* Its reuses are of no use any more. */
void acs_record_drop_reuses(acs_record *record);
/* Any thread. Frees what the record owns. */
void acs_record_release(acs_record_pool *pool, acs_record *record);
/*
 * Many at once: gather each, then release all. Producers take from the same cache line that a release writes, so one
 * write for many is what makes retirement and calls cheap beside each other. All zero: an empty chain.
 */
typedef struct acs_record_chain {
    uint32_t first, last;                /* indices + 1; 0: none */
    uint32_t blocks_first, blocks_last;  /* numbers + 1, of blocks */
    uint32_t blocks_class;               /* of one class */
} acs_record_chain;
void acs_record_gather(acs_record_pool *pool, acs_record_chain *chain, acs_record *record);
void acs_record_release_all(acs_record_pool *pool, acs_record_chain *chain);
/* Bytes held by the pool in all, for the soak test. */
uint64_t acs_record_pool_bytes(const acs_record_pool *pool);

#endif

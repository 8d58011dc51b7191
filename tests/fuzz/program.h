/*
 * A program of public API calls, decoded from bytes. Every string of bytes is a program; reading past the end gives zeros,
 * and the program ends where the bytes do, after FUZZ_STEPS steps at most.
 *
 *   5 bytes     options of context 0, which is opened first:
 *     0         window (bits 0-2), FIFO (3-4), wait=host (5), serial (6), check=overlap (7)
 *     1         streams less one (0-2), batch (3-4), workers (5-7)
 *     2         backend (0-3: one thread and a seed but for 13, the host backend stepped by its callers, and 14, disabled),
 *               faults (4-5), sync before close (6), options from the environment (7)
 *     3         seed; also kinds of faults (5-6), and by whose time the simulation goes (7)
 *     4         what is wrong with the options: 0 to 199 nothing, else see decode.c
 *   then steps: one byte kind (bits 0-4), context (5), calls ACS from inside (6), something wrong (7: one more byte says
 *   what); then what the kind needs, see decode.c: small numbers, and for ops a byte of flags and up to four segments:
 *     0         access (0-1), where (2-4: arena, block, phantom, token, all memory), tile (5), size class (6-7)
 *     1, 2      place, size;  tiles only: 3, 4  rows and pitch, which may be huge outside of the arena
 *
 * Segments in the *arena* and in *blocks* (of acs_malloc) have bytes, which ops mix as the access says. *Phantom*
 * segments have addresses that nothing is mapped at: only the order of ops and the skips show what they did.
 */
#ifndef FUZZ_PROGRAM_H
#define FUZZ_PROGRAM_H

#include "acs.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The deterministic backend: one thread, every choice from a seed. Named here and nowhere else. */
#define FUZZ_BACKEND ACS_BACKEND_SIM
#define FUZZ_BACKEND_NAME "sim"

enum {
    FUZZ_STEPS = 60,      /* fewer than the bits of a mask */
    FUZZ_SEGMENTS = 4,
    FUZZ_ARGS = 5,
    FUZZ_CONTEXTS = 2,
    FUZZ_BLOCKS = 8,
    FUZZ_ARENA = 512,
    FUZZ_ROWS = 256,      /* most rows of a tile: the oracle walks them */
    FUZZ_SEEN = 64        /* most bytes of a range that is waited for */
};

typedef enum fuzz_kind {
    FUZZ_KERNEL, FUZZ_HOST, FUZZ_CALL, FUZZ_MEMCPY, FUZZ_MEMSET, FUZZ_AFTER_STREAM, /* ops that can be skipped */
    FUZZ_FREE, FUZZ_RETIRE,                                                         /* ops that never are */
    FUZZ_WAIT_RANGE, FUZZ_STREAM_AFTER,                                             /* ops that are waited for */
    FUZZ_MALLOC, FUZZ_WAIT, FUZZ_QUERY, FUZZ_SYNC, FUZZ_CLEAR, FUZZ_STEP, FUZZ_ASK, FUZZ_OPEN_CLOSE
} fuzz_kind;

/* What is wrong with a call; each kind knows some of them and ignores the others. */
typedef enum fuzz_wrong {
    FUZZ_RIGHT,
    FUZZ_NO_PARAMS, FUZZ_BAD_SIZE, FUZZ_NO_FUNCTION, FUZZ_ONLY_GPU, FUZZ_ZERO_GRID, FUZZ_LARGE_GRID, FUZZ_LARGE_BLOCK,
    FUZZ_MANY_THREADS, FUZZ_LARGE_SHARED, FUZZ_NO_ARGS, FUZZ_NULL_ARG, FUZZ_EMPTY_ARG, FUZZ_ARG_TYPE, FUZZ_LARGE_ARGS,
    FUZZ_CLUSTER, FUZZ_PROGRAMMATIC, FUZZ_NO_SEGMENTS, FUZZ_MANY_SEGMENTS, FUZZ_ACCESS, FUZZ_EXTENT, FUZZ_WRAPS,
    FUZZ_IMPURE, FUZZ_COUNTLESS, FUZZ_NULL_PLACE, FUZZ_LARGE_CLOSURE, FUZZ_NO_CLOSURE, FUZZ_OP_ZERO, FUZZ_OP_LATER,
    FUZZ_INTERIOR, FUZZ_FOREIGN, FUZZ_TWICE, FUZZ_KIND_OF_MEMORY, FUZZ_EMPTY_BLOCK, FUZZ_HUGE_BLOCK, FUZZ_OUTSIDE,
    FUZZ_WRONGS
} fuzz_wrong;

typedef enum fuzz_area { FUZZ_IN_ARENA, FUZZ_IN_BLOCK, FUZZ_NOWHERE, FUZZ_TOP, FUZZ_TOKEN, FUZZ_ALL } fuzz_area;

typedef struct fuzz_segment {
    uint8_t area, access, block; /* block: which of the live ones */
    uint64_t offset, row_bytes, rows, pitch;
} fuzz_segment;

typedef struct fuzz_open {
    acs_options options;
    bool environment, sync_before_close;
    uint8_t wrong;         /* 0 nothing; 1 to 4 see open_context */
    size_t size;           /* options.size as given: an older header's where smaller */
} fuzz_open;

typedef struct fuzz_step {
    fuzz_kind kind;
    uint8_t index, context;
    bool calls_inside;
    fuzz_wrong wrong;
    uint8_t wrong_detail;
    /* ops */
    fuzz_segment segments[FUZZ_SEGMENTS];
    uint8_t segment_count;
    uint8_t computed;      /* segments given by a footprint function; its list is long where `many` */
    bool many, any, no_wait;
    uint16_t arg_bytes[FUZZ_ARGS];
    uint8_t arg_count;
    uint8_t fail;          /* host functions, calls: the code that they return */
    bool borrowed;         /* the closure is a pointer that is not copied */
    /* the rest */
    uint8_t a, b, c;
    fuzz_open open;
} fuzz_step;

typedef struct fuzz_program {
    fuzz_open first;
    fuzz_step steps[FUZZ_STEPS];
    uint32_t count;
} fuzz_program;

/* decode.c, print.c */
void fuzz_decode(const uint8_t *data, size_t bytes, fuzz_program *p);
void fuzz_print(const fuzz_program *p);
const char *fuzz_kind_name(fuzz_kind kind);

/* A piece of memory that the library works on, and the copy that serial execution works on. */
typedef struct fuzz_memory {
    uint8_t *real;
    uint8_t shadow[FUZZ_ARENA];
    uint32_t bytes;
    bool live, gone;       /* a block: may be named by the next step; was given back */
} fuzz_memory;

struct fuzz_session;

/* One step as it was run: what was declared, and what was observed. */
typedef struct fuzz_event {
    const fuzz_step *step;
    struct fuzz_session *session;
    acs_op op;             /* 0: not an op, or refused */
    uint32_t epoch;        /* how often the failures were cleared before */
    acs_status result;
    acs_segment segments[FUZZ_SEGMENTS];
    fuzz_memory *memory[FUZZ_SEGMENTS]; /* where the segment has bytes, or NULL */
    fuzz_memory *block;    /* MALLOC, FREE */
    int target;            /* event; -1: none */
    uint32_t length;       /* MEMCPY, MEMSET, WAIT_RANGE */
    uint64_t closure;      /* pattern that the function must find */
    atomic_uint began, ended; /* places in the session's sequence of bodies; 0: did not run. Of waits: when it returned */
    atomic_uint times;
    acs_op told_op;        /* RETIRE: what the callback was told */
    acs_status told;
    bool known, retired;   /* `error` was read; a wait has shown that it ended */
    uint32_t refused;      /* statuses of calls that were refused since the last clear, a bit each */
    uint32_t asked;        /* how often the footprint function was called */
    acs_error error;
    uint8_t seen[FUZZ_SEEN];
    uint64_t seen_all;     /* hash of all memory after a wait for everything */
    /* the oracle's */
    acs_status fate;
    uint64_t roots;        /* failed events that it descends from */
    acs_segment named[FUZZ_SEGMENTS]; /* `segments` as they were named: in those, failures of freed blocks are forgotten */
} fuzz_event;

/* A context from open to close. */
typedef struct fuzz_session {
    acs_context *context;
    fuzz_open open;
    fuzz_memory arena, blocks[FUZZ_BLOCKS];
    uint32_t block_count;
    fuzz_event events[FUZZ_STEPS];
    uint32_t count, epoch;
    acs_op last;
    uint64_t under_way;    /* ops before a call with no_wait: its refusal finds at most so many, since ops go on to end */
    atomic_uint refused;   /* statuses of refused calls since the last clear, a bit each; from inside bodies, too */
    atomic_uint sequence;
    atomic_uint places, destroyed;
    bool finished;         /* all ops had retired before the close */
    acs_status result;     /* of the last wait for everything, or the close */
    acs_context *stale;    /* the handle after the close, until its struct is used again */
} fuzz_session;

/* Ends the process with the listing of the program: the input is a finding. */
void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* run.c: opens, runs all steps, closes, and has each session judged. */
void fuzz_run(const fuzz_program *p);

/* bodies.c, calls.c: the calls that queue. Each sets event->op and checks what a refusal must say. */
void fuzz_queue(fuzz_session *s, fuzz_event *e);
/* One of the calls that take a context, with harmless arguments; returns its status. */
acs_status fuzz_any_call(acs_context *context, unsigned which);
/* The call was refused: the thread's error must say so too. */
void fuzz_expect(const fuzz_event *e, acs_status got, acs_status expected);
/* The memory that a step's segment `i` names now. */
void fuzz_resolve(fuzz_session *s, fuzz_event *e, uint32_t i);
/* The body of an op, or a place in the sequence for a wait that returns. */
int fuzz_body(fuzz_event *e);
size_t fuzz_footprint(const acs_footprint_input *in, acs_segment *out, size_t capacity);

/* judge.c: serial execution, and what it says of the run. */
void fuzz_judge(fuzz_session *s);
/* What the op does to memory: `shadow` says to which. */
void fuzz_work(const fuzz_event *e, bool shadow);
uint64_t fuzz_hash_memory(const fuzz_session *s, bool shadow);
uint64_t fuzz_mix(uint64_t x);

#endif

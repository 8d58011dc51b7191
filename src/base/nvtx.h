/*
 * Ranges of NVTX, by which a profiler shows what the library does: in one domain of the process, each with a message, a
 * category and a payload. A range begins and ends on one thread; ranges of a thread nest.
 *
 * Callers ask `acs_nvtx_taken` before each call, so that a range costs one branch where no tool takes ranges.
 */
#ifndef ACS_NVTX_H
#define ACS_NVTX_H

#include "base/base.h"

/* What a range is about. The values are those of NVTX's categories. */
typedef enum acs_nvtx_kind {
    ACS_NVTX_KERNEL = 1,
    ACS_NVTX_COPY,
    ACS_NVTX_FILL,
    ACS_NVTX_HOST,   /* host function or callback */
    ACS_NVTX_CALL,   /* library call */
    ACS_NVTX_FREE,
    ACS_NVTX_BUNDLE, /* several kernels that are launched as one */
    ACS_NVTX_REPLAY, /* several kernels that recur, launched as one */
    ACS_NVTX_WAIT,   /* a call that waits */
    ACS_NVTX_KINDS
} acs_nvtx_kind;

enum { ACS_NVTX_TEXT_BYTES = 512, ACS_NVTX_METHOD_BYTES = 16 };

/* Payload of a single op. A tool without extended payloads gets `op` alone, here and below. */
typedef struct acs_nvtx_launch {
    uint64_t op;
    uint64_t shared_bytes; /* of a kernel, as the two below; else 0 */
    acs_dim3 grid, block;
    int32_t slot; /* -1: none */
    uint32_t device;
} acs_nvtx_launch;

/* Payload of a bundle or a replay. */
typedef struct acs_nvtx_bundle {
    uint64_t op; /* number of its first op */
    uint32_t ops;
    int32_t slot;
    uint32_t device;
    char method[ACS_NVTX_METHOD_BYTES]; /* issue method, by its name */
} acs_nvtx_bundle;

typedef struct acs_nvtx_range {
    acs_nvtx_kind kind;
    uint64_t key; /* acs_nvtx_key of all that `write` reads: ranges of one key have one message */
    void (*write)(const void *contents, char text[ACS_NVTX_TEXT_BYTES]); /* called when the key is new */
    const void *contents;
    union {
        uint64_t op; /* of a wait */
        acs_nvtx_launch launch;
        acs_nvtx_bundle bundle; /* of a bundle or a replay */
    } payload;
} acs_nvtx_range;

/* Whether a tool takes ranges. Set by acs_nvtx_open; constant once a context is open. */
extern bool acs_nvtx_taken;

/* Look for a tool. The first call alone does so; any thread. */
void acs_nvtx_open(void);
/* Begin a range. The message is formatted and registered once per key, while there is room for its key. */
void acs_nvtx_push(const acs_nvtx_range *range);
/* End the range that this thread began last. */
void acs_nvtx_pop(void);
/* Begin a range around a call that waits for `op`. `function` is its name, in static storage. */
void acs_nvtx_push_wait(const char *function, acs_op op);

/* `key`, changed by a number, or by a text. Start with 0. */
uint64_t acs_nvtx_key(uint64_t key, uint64_t number);
uint64_t acs_nvtx_key_text(uint64_t key, const char *text);

#endif

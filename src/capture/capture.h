/*
 * Ops inside somebody else's capture: which threads' ops become nodes, and of which graph. Private to src/capture.
 *
 * A *section* belongs to a thread: from its acs_after_stream on a stream that is being captured to its acs_stream_after on
 * that stream. A *capture* is what sections of the same CUDA capture share: the order of all ops that became nodes of it.
 * What others launch on the context meanwhile runs as always, and is neither waited for nor waits.
 */
#ifndef ACS_CAPTURE_H
#define ACS_CAPTURE_H

#include "api/context.h"
#include "base/lock.h"
#include "window/nodes.h"
#include "window/record.h"

#include <stdatomic.h>

typedef struct acs_section acs_section;
typedef struct acs_capture acs_capture;
struct acs_draft;

/* Of one context. */
typedef struct acs_captures {
    acs_lock lock;           /* rank CAPTURE; guards what follows, and the calls that add nodes */
    acs_section *sections;   /* open ones */
    acs_capture *captures;   /* the one used last first */
    acs_op ops;              /* numbers given to captured calls */
    _Atomic(uint64_t) nodes; /* ops that became nodes */
} acs_captures;

acs_status acs_captures_init(acs_context *context);
void acs_captures_fini(acs_context *context);

/* Whether the calling thread has a section open in the context. */
bool acs_capture_mine(acs_context *context);
/* The same. Most often no thread has one, which costs the call a load. */
static inline bool acs_capture_on(acs_context *context)
{
    return ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_SECTIONS) && acs_capture_mine(context);
}
/* Refuse kinds of ops that cannot be nodes, and waits, inside a section. */
acs_status acs_capture_check(acs_op_kind kind);
/* acs_sync and its like inside a section. */
acs_status acs_capture_no_wait(const char *function);
/* A captured op's number stands for a node: nothing of it can be asked. ACS_OK for other ops. */
acs_status acs_capture_check_op(acs_op op, const char *function);

/* The record becomes a node of the section's graph. 0 with an error, as acs_draft_queue. */
acs_op acs_capture_add(struct acs_draft *draft);
/* acs_after_stream and acs_stream_after. ACS_NOT_READY: nothing is captured here; go on with an op that runs. */
acs_status acs_capture_begin(struct acs_draft *draft, void *stream, acs_op *op);
acs_status acs_capture_end(struct acs_draft *draft, void *stream);
/* Ops that became nodes. */
uint64_t acs_captures_count(acs_context *context);
/* acs_clear: a section of the calling thread, if there is one, is over. */
void acs_capture_abandon(acs_context *context);

#endif

/*
 * Ops inside a capture that the program makes: whose ops become nodes, and of which graph. Private to the modules above
 * src/api.
 *
 * A *section* belongs to a thread: from its acs_after_stream on a stream that is being captured to its acs_stream_after
 * on that stream. A *capture* is what sections of the same CUDA capture share: the order of all ops that became nodes of
 * it. Ops that other threads launch on the context meanwhile run as always, and are not ordered against captured ops.
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

/* The captures of a context. */
typedef struct acs_captures {
    acs_lock lock;           /* rank CAPTURE; guards all fields below, and the calls that add nodes */
    acs_section *sections;   /* list of open sections */
    acs_capture *captures;   /* list of captures, the latest used first */
    acs_op ops;              /* number of captured ops so far */
    _Atomic(uint64_t) nodes; /* counter: ops that became nodes */
} acs_captures;

acs_status acs_captures_init(acs_context *context);
void acs_captures_fini(acs_context *context);

/* Whether the calling thread has a section open in the context. */
bool acs_capture_mine(acs_context *context);
/* The same. As long as no thread has a section this costs a call one load. */
static inline bool acs_capture_on(acs_context *context)
{
    return ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_SECTIONS) && acs_capture_mine(context);
}
/* Refuse ops that cannot be nodes, and waits, inside a section. */
acs_status acs_capture_check(acs_op_kind kind);
/* Refuse a wait inside a section. Returns ACS_ERR_STATE. */
acs_status acs_capture_no_wait(const char *function);
/* Refuse a captured op: its number stands for a node, of which nothing can be asked. ACS_OK for other ops. */
acs_status acs_capture_check_op(acs_op op, const char *function);

/* Make the record a node of the section's graph. 0 with an error, as acs_draft_queue. */
acs_op acs_capture_add(struct acs_draft *draft);
/*
 * acs_after_stream and acs_stream_after on a captured stream. ACS_NOT_READY: nothing is captured here, so the caller
 * queues an op.
 */
acs_status acs_capture_begin(struct acs_draft *draft, void *stream, acs_op *op);
acs_status acs_capture_end(struct acs_draft *draft, void *stream);
/* The capture in which the calling thread has a section; NULL: none. */
const void *acs_capture_current(acs_context *context);
/* Device memory that lives as long as that capture's graph. */
acs_status acs_capture_memory(acs_context *context, size_t bytes, void **memory);
/* The number of ops that became nodes. */
uint64_t acs_captures_count(acs_context *context);
/* acs_clear: close the calling thread's section, if there is one. */
void acs_capture_abandon(acs_context *context);

#endif

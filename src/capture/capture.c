/*
 * Ops inside a capture that the program makes (see capture.h): sections of threads, the captures that sections share,
 * and the way of an op from its record to a node. Called by the public calls, on the thread that captures; all of it
 * happens inside the call. It uses neither FIFO nor core, and starts nothing.
 */
#include "capture/capture.h"
#include "capture/capture_order.h"
#include "capture/capture_scratch.h"

#include "api/draft.h"
#include "base/tuning.h"

#include <stdlib.h>

struct acs_capture {
    acs_capture *next;
    acs_context *context;
    uint64_t id;
    acs_capture_order *order;
    acs_nodes last;    /* without an order: end nodes of all ops so far */
    uint32_t sections; /* number of open sections */
    bool over;         /* whether it takes no more ops */
    void *stream;      /* stream through which the current section adds nodes; NULL: none */
    acs_capture_scratches scratches;
};

struct acs_section {
    acs_section *next;
    uint64_t thread;
    acs_capture *capture;
    void *stream;
    uint64_t first;  /* number of the op that stands for the stream's work before the section */
    acs_nodes began; /* nodes of that work */
};

/* Number of sections that this thread opened and did not close, in any context; a thread without any takes no lock. */
static _Thread_local uint32_t tl_open;

static const acs_capture_ops *ops_of(const acs_context *context)
{
    return context->backend->ops->capture;
}

/* ------------------------------------------------------------------------------------------------------------- sections */

static acs_section *section_mine_locked(acs_context *context)
{
    acs_section *section = context->captures->sections;
    while (section && section->thread != acs_thread_number())
        section = section->next;
    return section;
}

bool acs_capture_mine(acs_context *context)
{
    if (!tl_open)
        return false;
    ACS_HOLD(&context->captures->lock);
    return section_mine_locked(context) != NULL;
}

static void section_close_locked(acs_context *context, acs_section *section)
{
    acs_section **at = &context->captures->sections;
    while (*at != section)
        at = &(*at)->next;
    *at = section->next;
    section->capture->sections--;
    /* The count of another thread stays too high, which costs it a search. */
    tl_open -= section->thread == acs_thread_number();
    acs_nodes_fini(&section->began);
    free(section);
    /* Relaxed: only its own thread looks for a section. */
    atomic_fetch_sub_explicit(&context->modes, ACS_MODE_SECTION, memory_order_relaxed);
}

static acs_section *section_open_locked(acs_context *context, acs_capture *capture, void *stream)
{
    acs_section *section = calloc(1, sizeof *section);
    if (!section) {
        ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to begin a capture");
        return NULL;
    }
    section->thread = acs_thread_number();
    section->capture = capture;
    section->stream = stream;
    section->next = context->captures->sections;
    context->captures->sections = section;
    capture->sections++;
    tl_open++;
    /* Relaxed: as in section_close_locked. */
    atomic_fetch_add_explicit(&context->modes, ACS_MODE_SECTION, memory_order_relaxed);
    return section;
}

void acs_capture_abandon(acs_context *context)
{
    if (!acs_capture_on(context))
        return;
    ACS_HOLD(&context->captures->lock);
    section_close_locked(context, section_mine_locked(context));
}

/* ------------------------------------------------------------------------------------------------------------- captures */

static acs_status add_join_node(void *user, const acs_nodes *behind, acs_nodes *end)
{
    acs_capture *capture = user;
    acs_backend *backend = capture->context->backend;
    if (!capture->stream)
        return ACS_ERR_STATE; /* no section is at work, so no join is made */
    return ops_of(capture->context)->add(backend, capture->stream, capture->id, NULL, NULL, behind, end);
}

static acs_status order_create(acs_capture *capture)
{
    const acs_options *options = &capture->context->options;
    const acs_capture_order_config config = {
        .limit = TUNE_CAPTURE_WINDOW,
        .in_order = options->serial || options->disable,
        .join = add_join_node,
        .user = capture,
    };
    return acs_capture_order_create(&config, &capture->order);
}

/* Take an op that may touch any memory, behind all others. */
static acs_status take_all(acs_capture *capture, bool observer, acs_nodes *behind)
{
    acs_record all = {.kind = ACS_KIND_STREAM_WAIT, .any = 1};
    all.segments = all.inline_segments; /* no segments, but not NULL */
    return acs_capture_order_take(capture->order, &all, observer, behind);
}

/*
 * Free the order of an idle capture. The capture may go on later; the end nodes of its ops are enough to keep them in
 * order.
 */
static void order_drop(acs_capture *capture)
{
    capture->stream = NULL;
    if (!capture->order || take_all(capture, true, &capture->last) != ACS_OK)
        return;
    acs_capture_order_destroy(capture->order);
    capture->order = NULL;
}

static acs_status order_recreate(acs_capture *capture)
{
    uint64_t number;
    acs_nodes none = {NULL, 0, 0};
    ACS_TRY(order_create(capture));
    acs_capture_scratches_forget(&capture->scratches);
    acs_status status = take_all(capture, false, &none);
    if (status == ACS_OK)
        status = acs_capture_order_put(capture->order, &capture->last, &number);
    acs_nodes_fini(&none);
    return status;
}

static void capture_free(acs_capture *capture)
{
    acs_capture_order_destroy(capture->order);
    acs_nodes_fini(&capture->last);
    acs_capture_scratches_fini(&capture->scratches);
    free(capture);
}

/* No call tells when a capture is over, so the captures that were not used for longest are freed, their order first. */
static void captures_trim_locked(acs_captures *captures)
{
    uint32_t idle = 0;
    for (acs_capture **at = &captures->captures; *at;) {
        acs_capture *capture = *at;
        idle += capture->sections == 0;
        if (capture->sections == 0 && idle > TUNE_CAPTURES_KEPT) {
            *at = capture->next;
            capture_free(capture);
            continue;
        }
        if (capture->sections == 0 && idle > TUNE_CAPTURE_ORDERS_KEPT)
            order_drop(capture);
        at = &capture->next;
    }
}

/* The place in the list of the capture with this id, or the end of the list. */
static acs_capture **capture_find_locked(acs_context *context, uint64_t id)
{
    acs_capture **at = &context->captures->captures;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

/* Find or make the capture with this id, which becomes the first of the list. */
static acs_status capture_get_locked(acs_context *context, uint64_t id, acs_capture **found)
{
    acs_capture **at = capture_find_locked(context, id), *capture = *at ? *at : calloc(1, sizeof *capture);
    if (!capture)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to begin a capture");
    capture->context = context;
    capture->id = id;
    *at = capture->next;
    capture->next = context->captures->captures;
    context->captures->captures = capture;
    captures_trim_locked(context->captures);
    *found = capture;
    return capture->order ? ACS_OK : order_recreate(capture);
}

acs_status acs_captures_init(acs_context *context)
{
    acs_captures *captures = calloc(1, sizeof *captures);
    if (!captures || acs_lock_init(&captures->lock, ACS_RANK_CAPTURE)) {
        free(captures);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cannot make a mutex for captures");
    }
    context->captures = captures;
    return ACS_OK;
}

void acs_captures_fini(acs_context *context)
{
    acs_captures *captures = context->captures;
    if (!captures)
        return;
    if (captures->sections)
        acs_log(ACS_LOG_WARN, "close: a thread's ops were still being captured: acs_stream_after was not called");
    while (captures->sections)
        section_close_locked(context, captures->sections);
    while (captures->captures) {
        acs_capture *capture = captures->captures;
        captures->captures = capture->next;
        capture_free(capture);
    }
    acs_lock_fini(&captures->lock);
    free(captures);
    context->captures = NULL;
}

/* ------------------------------------------------------------------------------------------------------------- refusals */

acs_status acs_capture_check(acs_op_kind kind)
{
    switch (kind) {
    case ACS_KIND_HOST:
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0,
                        "acs_host: a host function cannot be captured: when the graph runs, its failure could skip nothing. "
                        "An acs_call may give env->stream a cudaLaunchHostFunc");
    case ACS_KIND_FREE:
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0,
                        "acs_free: memory cannot be freed inside a capture: its graph may run again");
    case ACS_KIND_CALLBACK:
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "acs_on_retire: nothing retires inside a capture");
    case ACS_KIND_OBSERVE:
        return acs_capture_no_wait("acs_wait_range");
    default:
        return ACS_OK;
    }
}

acs_status acs_capture_no_wait(const char *function)
{
    return acs_fail(ACS_ERR_STATE, 0, function,
                    "%s: the ops of this thread are being captured and do not run; acs_stream_after ends that", function);
}

acs_status acs_capture_check_op(acs_op op, const char *function)
{
    if (op & ACS_OP_CAPTURED)
        return acs_fail(ACS_ERR_UNSUPPORTED, 0, function,
                        "%s: op %llu was captured: it runs whenever its graph does, and is never done", function,
                        (unsigned long long)(op & ~ACS_OP_CAPTURED));
    return ACS_OK;
}

/* ---------------------------------------------------------------------------------------------------------------- adding */

static acs_status check_over(const acs_capture *capture, void *stream)
{
    if (!capture->over)
        return ACS_OK;
    return ACS_FAIL(ACS_ERR_STATE, 0,
                    "the capture of stream %p takes no more ops, since it ended or a call of it failed; acs_stream_after "
                    "comes next, then a new capture",
                    stream);
}

/* Hand the op to the backend, which makes its node. */
static acs_status send_locked(acs_section *section, acs_record *op, void *scratch, const acs_nodes *behind, acs_nodes *ends)
{
    ACS_NOT_CANCELLED;
    acs_context *context = section->capture->context;
    bool inside = acs_inside();
    acs_inside_set(true); /* a library call's function must not call ACS */
    acs_status status = ops_of(context)->add(context->backend, section->stream, section->capture->id, op, scratch, behind,
                                             ends);
    acs_inside_set(inside);
    return status;
}

/* Add the record to the graph. An op that could not be sent keeps its place in the order, without a node. */
static acs_status add_node_locked(acs_section *section, acs_record *op)
{
    acs_capture *capture = section->capture;
    acs_nodes behind = {NULL, 0, 0}, ends = {NULL, 0, 0};
    const acs_capture_at at = {capture->context->backend, section->stream, capture->id};
    acs_capture_scratch *block = NULL;
    uint64_t number;
    capture->stream = section->stream;
    ACS_TRY(check_over(capture, section->stream));
    acs_status status = acs_capture_order_take(capture->order, op, false, &behind);
    if (status == ACS_OK) {
        if (op->kind == ACS_KIND_CALL && op->u.call.scratch_bytes)
            status = acs_capture_scratch_get(&capture->scratches, &at, capture->order, op->u.call.scratch_bytes, &behind,
                                             &block);
        if (status == ACS_OK)
            status = send_locked(section, op, block ? block->memory : NULL, &behind, &ends);
        bool sent = ends.count > 0;
        acs_status put = acs_capture_order_put(capture->order, sent ? &ends : &behind, &number);
        if (block && put == ACS_OK)
            put = acs_capture_scratch_used(block, number, &ends);
        status = status == ACS_OK ? put : status;
        capture->over |= status == ACS_ERR_STATE || (put != ACS_OK);
    }
    acs_nodes_fini(&behind);
    acs_nodes_fini(&ends);
    return status;
}

/* Release the draft's record. Returns the op's number, which is not of the FIFO. */
static acs_op finish_locked(acs_draft *draft)
{
    acs_context *context = draft->context;
    acs_record_release(context->records, draft->record);
    draft->record = NULL;
    return ACS_OP_CAPTURED | ++context->captures->ops;
}

acs_op acs_capture_add(acs_draft *draft)
{
    acs_captures *captures = draft->context->captures;
    acs_op op = 0;
    acs_lock_acquire(&captures->lock);
    acs_status status = add_node_locked(section_mine_locked(draft->context), draft->record);
    if (status == ACS_OK) {
        op = finish_locked(draft);
        atomic_fetch_add_explicit(&captures->nodes, 1, memory_order_relaxed); /* relaxed: a counter */
    }
    acs_lock_release(&captures->lock);
    return op ? op : acs_draft_drop(draft);
}

const void *acs_capture_current(acs_context *context)
{
    if (!acs_capture_on(context))
        return NULL;
    ACS_HOLD(&context->captures->lock);
    return section_mine_locked(context)->capture;
}

acs_status acs_capture_memory(acs_context *context, size_t bytes, void **memory)
{
    ACS_HOLD(&context->captures->lock);
    const acs_section *section = section_mine_locked(context);
    return ops_of(context)->scratch(context->backend, section->stream, section->capture->id, bytes, memory);
}

uint64_t acs_captures_count(acs_context *context)
{
    return atomic_load_explicit(&context->captures->nodes, memory_order_relaxed); /* relaxed: a counter */
}

/* --------------------------------------------------------------------------------------------------------------- streams */

/*
 * Find the section to which a call on the stream belongs. ACS_NOT_READY: neither the stream nor the thread's ops are
 * captured. A section whose own capture is over was left open, perhaps after an error: a new acs_after_stream closes it.
 */
static acs_status meet_locked(acs_context *context, void *stream, uint64_t id, bool begins, acs_section **mine)
{
    acs_section *section = section_mine_locked(context);
    if (section && begins && section->stream == stream && section->capture->id != id) {
        section_close_locked(context, section);
        section = NULL;
    }
    *mine = section;
    if (!section)
        return id ? ACS_OK : ACS_NOT_READY;
    if (!id && section->stream != stream)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0,
                        "the stream %p is not being captured; ops of this thread are, and cannot be ordered against it",
                        stream);
    if (id && section->capture->id != id)
        return ACS_FAIL(ACS_ERR_STATE, 0,
                        "the stream %p is part of another capture than this thread's ops: acs_stream_after on stream %p "
                        "comes first, or acs_clear if that capture failed",
                        stream, section->stream);
    return ACS_OK;
}

/* Take an op without a node of its own: it stands for the work behind which the stream's next work would run. */
static acs_status stand_for(acs_section *section, acs_record *op, const acs_nodes *nodes, uint64_t *number)
{
    acs_capture *capture = section->capture;
    acs_nodes ends = {NULL, 0, 0};
    capture->stream = section->stream;
    ACS_TRY(check_over(capture, section->stream));
    acs_status status = acs_capture_order_take(capture->order, op, false, &ends);
    bool room = true;
    if (status == ACS_OK && nodes->count && ends.count) /* most often the stream's work came behind earlier sections */
        ops_of(capture->context)->implied(capture->context->backend, nodes, &ends);
    for (uint32_t i = 0; i < nodes->count && status == ACS_OK; i++)
        room &= acs_nodes_add(&ends, nodes->list[i]);
    if (status == ACS_OK && !room)
        status = ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the nodes of a capture");
    if (status == ACS_OK)
        status = acs_capture_order_put(capture->order, &ends, number);
    acs_nodes_fini(&ends);
    return status;
}

static acs_status begin_locked(acs_draft *draft, void *stream, uint64_t id, const acs_nodes *nodes, acs_op *op)
{
    acs_context *context = draft->context;
    acs_section *section = NULL;
    acs_capture *capture = NULL;
    uint64_t number = 0;
    ACS_TRY(meet_locked(context, stream, id, true, &section));
    bool opens = !section;
    if (opens) {
        ACS_TRY(capture_get_locked(context, id, &capture));
        section = section_open_locked(context, capture, stream);
        if (!section)
            return ACS_ERR_MEMORY;
    }
    acs_status status = stand_for(section, draft->record, nodes, &number);
    if (status == ACS_OK && opens) {
        section->first = number;
        if (!acs_nodes_set(&section->began, nodes->list, nodes->count))
            section->began.count = 0; /* without memory it only compares unequal */
    }
    if (status == ACS_OK)
        *op = finish_locked(draft);
    else if (opens)
        section_close_locked(context, section);
    return status;
}

/* Look at the stream. ACS_NOT_READY: neither it nor the thread's ops are captured. */
static acs_status look_at_stream(const acs_draft *draft, void *stream, uint64_t *id, acs_nodes *nodes)
{
    const acs_context *context = draft->context;
    if (!ops_of(context))
        return ACS_NOT_READY;
    ACS_TRY(ops_of(context)->look(context->backend, stream, id, nodes));
    return *id || draft->captured ? ACS_OK : ACS_NOT_READY;
}

acs_status acs_capture_begin(acs_draft *draft, void *stream, acs_op *op)
{
    acs_context *context = draft->context;
    acs_nodes nodes = {NULL, 0, 0};
    uint64_t id = 0;
    acs_status status = look_at_stream(draft, stream, &id, &nodes);
    if (status == ACS_OK) {
        acs_lock_acquire(&context->captures->lock);
        status = begin_locked(draft, stream, id, &nodes, op);
        acs_lock_release(&context->captures->lock);
    }
    acs_nodes_fini(&nodes);
    return status;
}

/*
 * Make the stream's next work come behind its own work and the ops. If its own work is what the section began with, and
 * the ops come behind that, the ops alone are enough.
 */
static acs_status follow_locked(acs_capture *capture, const acs_section *section, void *stream, acs_record *op,
                                const acs_nodes *own)
{
    acs_context *context = capture->context;
    acs_nodes behind = {NULL, 0, 0};
    bool room = true;
    capture->stream = stream;
    acs_status status = acs_capture_order_take(capture->order, op, true, &behind);
    if (status == ACS_OK) {
        bool implied = section && section->stream == stream && behind.count && acs_nodes_equal(own, &section->began) &&
                       acs_capture_order_implies(capture->order, section->first);
        for (uint32_t i = 0; i < own->count && !implied; i++)
            room &= acs_nodes_add(&behind, own->list[i]);
        status = room ? ops_of(context)->follow(context->backend, stream, capture->id, &behind)
                      : ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the nodes of a capture");
    }
    acs_nodes_fini(&behind);
    return status;
}

static acs_status end_locked(acs_draft *draft, void *stream, uint64_t id, const acs_nodes *own)
{
    acs_context *context = draft->context;
    acs_section *section = NULL;
    acs_status met = meet_locked(context, stream, id, false, &section);
    if (section && section->stream == stream && section->capture->id != id) {
        section_close_locked(context, section);
        return ACS_FAIL(ACS_ERR_STATE, 0,
                        "the capture of stream %p ended before acs_stream_after; what was launched before is in its graph",
                        stream);
    }
    ACS_TRY(met);
    acs_capture *capture = section ? section->capture : *capture_find_locked(context, id);
    if (!capture)
        return ACS_FAIL(ACS_ERR_STATE, 0,
                        "the stream %p is being captured, and no op is in that capture: acs_after_stream comes first",
                        stream);
    acs_status status = check_over(capture, stream);
    if (status == ACS_OK && !capture->order)
        status = order_recreate(capture);
    if (status == ACS_OK)
        status = follow_locked(capture, section, stream, draft->record, own);
    const bool ends = section && section->stream == stream;
    /* Also if the capture is over, since the section can then end in no other way. */
    if (ends && (status == ACS_OK || status == ACS_ERR_STATE))
        section_close_locked(context, section);
    if (status == ACS_OK)
        (void)finish_locked(draft);
    return status;
}

/* Close the thread's section if its stream is part of another capture by now. */
static void close_void(acs_context *context, void *stream)
{
    ACS_HOLD(&context->captures->lock);
    acs_section *section = section_mine_locked(context);
    if (section && section->stream == stream)
        section_close_locked(context, section);
}

acs_status acs_capture_end(acs_draft *draft, void *stream)
{
    acs_context *context = draft->context;
    acs_nodes own = {NULL, 0, 0};
    uint64_t id = 0;
    acs_status status = look_at_stream(draft, stream, &id, &own);
    if (status == ACS_OK) {
        acs_lock_acquire(&context->captures->lock);
        status = end_locked(draft, stream, id, &own);
        acs_lock_release(&context->captures->lock);
    } else if (draft->captured && status == ACS_ERR_STATE) {
        close_void(context, stream);
    }
    acs_nodes_fini(&own);
    return status;
}

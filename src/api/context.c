/*
 * Opening and closing contexts. Owns the lifetime of a context's parts (core, backend, memory, failures, statistics,
 * threads) and connects them by callbacks. Called by programs and, to drain, by acs::compat. Never issues an op itself.
 */
#include "api/registry.h"

#include "api/compat.h"
#include "api/duplicate_library.h"
#include "api/decisions.h"
#include "api/failures.h"
#include "api/stats.h"
#include "api/threads.h"
#include "api/wait.h"
#include "base/nvtx.h"
#include "base/options.h"
#include "base/tuning.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PINNED_MOST = 256 }; /* most contexts that acs_compat_drain waits for */

static const char g_inside[] = "ACS was called from inside a callback, host function or footprint function";

/* ------------------------------------------------------------------------------------------------------------- open */

static void timed_end(acs_context *context, const acs_end *end)
{
    acs_backend *backend = context->backend;
    acs_record *op = (acs_record *)(uintptr_t)end->op; /* its timer is given back */
    const uint64_t ns = backend->ops->elapsed ? backend->ops->elapsed(backend, op) : 0;
    op->u.launch.timing->ended(op->u.launch.timing, end->status, ns);
}

static void on_end(void *user, const acs_end *end)
{
    acs_context *context = user;
    if (ACS_UNLIKELY(end->status != ACS_OK))
        acs_failures_end(context, end);
    if (ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_DEVICES))
        context->hooks->ended(context, end);
    if (ACS_UNLIKELY(context->pairs != NULL))
        acs_pairs_end(context->pairs, end);
    if (ACS_UNLIKELY(end->op->flags & ACS_RECORD_TIMED))
        timed_end(context, end);
}

static void on_fault(void *user, const acs_error *error)
{
    acs_failures_fault(user, error);
}

static void on_check(void *user, const acs_record *op, const acs_record *other)
{
    acs_failures_check(user, op, other);
}

static void on_free(void *user, const acs_record *op)
{
    acs_context *context = user;
    acs_allocations_end_free(context->allocations, op->u.free.ptr);
}

static acs_status give_back(void *user, const acs_record *op)
{
    acs_context *context = user;
    const acs_block block = {.ptr = op->u.free.ptr, .bytes = op->u.free.bytes, .kind = op->u.free.memory};
    return acs_memory_give(context->memory, &block);
}

static acs_status status_of(void *user, acs_op op)
{
    return acs_failures_of_locked(user, op);
}

static acs_status open_backend(acs_context *context)
{
    const acs_options *o = &context->options;
    acs_backend_config config = {
        .options = o,
        .slots = acs_core_slots(o),
        .devices = (uint32_t)o->devices,
        .mark_capacity = acs_slots_mark_capacity(o->serial ? 1 : (uint32_t)o->window),
        .inline_only = o->disable != 0,
        .notify = acs_context_completed,
        .user = context,
        .cpu_next = acs_context_cpu_next,
        .activity = context->activity,
    };
    ACS_TRY(acs_library_parts.open_backend(&config, &context->backend));
    return ACS_OK;
}

static acs_status open_core(acs_context *context)
{
    const acs_options *o = &context->options;
    uint32_t records = acs_round_up_pow2((uint32_t)o->fifo) + (uint32_t)o->window + TUNE_RECORDS_SPARE;
    ACS_TRY(acs_record_pool_create(records, &context->records));
    acs_core_config config = {
        .options = o,
        .backend = context->backend,
        .records = context->records,
        .user = context,
        .failures_only = !o->stats && context->backend->devices == 1,
        .depths = o->stats != 0,
        .on_end = on_end,
        .on_fault = on_fault,
        .on_check = on_check,
        .on_free = on_free,
        .give_back = give_back,
        .status_of = status_of,
        .now_ns = acs_context_now_ns,
        .activity = context->activity,
        .batcher = acs_library_parts.batcher,
    };
    return acs_core_init(&context->core, &config);
}

static acs_status give_back_allocation(acs_context *context, const acs_allocation *allocation)
{
    const acs_block block = acs_allocation_block(allocation);
    return acs_memory_give(context->memory, &block);
}

/* Free all blocks, also those whose free op ended without freeing them, because the device was given up. */
static void free_blocks(acs_context *context)
{
    acs_allocation block;
    while (acs_allocations_take(context->allocations, &block))
        if (block.state != ACS_ALLOCATION_FREED && !block.foreign)
            (void)give_back_allocation(context, &block);
}

static acs_status obtain_memory(void *user, int kind, size_t bytes, void **ptr)
{
    acs_backend *backend = ((acs_context *)user)->backend;
    return backend->ops->memory_alloc(backend, kind, bytes, ptr);
}

static acs_status release_memory(void *user, int kind, void *ptr, size_t bytes)
{
    (void)bytes;
    acs_backend *backend = ((acs_context *)user)->backend;
    return backend->ops->memory_free(backend, kind, ptr);
}

static void forget_block(void *user, uint64_t base, uint64_t bytes)
{
    acs_core_forget_block(&((acs_context *)user)->core, base, bytes);
}

static acs_op settled(void *user)
{
    return acs_core_settled(&((acs_context *)user)->core);
}

static acs_status open_memory(acs_context *context)
{
    const acs_options *o = &context->options;
    const bool several = context->backend->devices > 1; /* only pools know to which device an address belongs */
    context->pooled = o->pool == ACS_POOL_ON || (o->pool == ACS_POOL_AUTO && (several || !context->backend->apart));
    acs_memory_config config = {
        .pooled = context->pooled,
        .devices = context->backend->devices,
        .limit = (uint64_t)o->memory_limit,
        .slack = (uint64_t)o->memory_slack,
        .user = context,
        .obtain = obtain_memory,
        .release = release_memory,
        .pages = o->growth == ACS_GROWTH_PAGES && context->backend->pages.page && !several ? &context->backend->pages : NULL,
        .page_user = context->backend,
        .forget = forget_block,
        .settled = settled,
    };
    if (acs_library_parts.pools)
        ACS_TRY(acs_library_parts.pools(context, &config));
    return acs_memory_create(&config, &context->memory);
}

static int eventcounts_init(acs_context *context)
{
    acs_eventcount *const all[] = {&context->work, &context->host_work, &context->ends};
    for (int i = 0; i < 3; i++) {
        const int error = acs_eventcount_init(all[i]);
        while (error && i > 0)
            acs_eventcount_fini(all[--i]);
        if (error)
            return error;
    }
    return 0;
}

static void eventcounts_fini(acs_context *context)
{
    acs_eventcount_fini(&context->work);
    acs_eventcount_fini(&context->host_work);
    acs_eventcount_fini(&context->ends);
}

/* Release the parts that were opened; the fields of the others are NULL. */
static void release_parts(acs_context *context, bool keep_backend)
{
    if (context->backend && !keep_backend && context->backend->ops->quiesce)
        context->backend->ops->quiesce(context->backend);
    if (acs_library_parts.close)
        acs_library_parts.close(context);
    acs_zeros_free(context->actions);
    if (context->core.backend)
        acs_core_fini(&context->core);
    if (context->allocations) {
        if (!keep_backend)
            free_blocks(context);
        acs_allocations_destroy(context->allocations);
    }
    acs_record left = {.flags = ACS_RECORD_REUSES, .reuses = atomic_load_explicit(&context->reuses, memory_order_acquire)};
    acs_record_drop_reuses(&left); /* D: no op came behind them */
    acs_memory_destroy(context->memory, keep_backend);
    acs_decisions_close(context, keep_backend);
    if (acs_library_parts.closed)
        acs_library_parts.closed(context, keep_backend);
    if (context->backend && !keep_backend)
        context->backend->ops->close(context->backend);
    if (context->records)
        acs_record_pool_destroy(context->records);
    if (context->failures)
        acs_failures_destroy(context->failures);
    acs_stats_close(context);
    eventcounts_fini(context);
}

static acs_status open_parts(acs_context *context)
{
    ACS_TRY(acs_cpus_parse(context, context->options.cpus));
    context->hooks = acs_library_parts.hooks;
    if (context->options.disable)
        acs_context_add_mode(context, ACS_MODE_ISSUE_NOW);
    if (acs_library_parts.begin)
        ACS_TRY(acs_library_parts.begin(context));
    ACS_TRY(acs_failures_create(&context->failures));
    ACS_TRY(acs_stats_open(context, acs_context_now_ns));
    ACS_TRY(open_backend(context));
    if (acs_library_parts.backend_opened)
        ACS_TRY(acs_library_parts.backend_opened(context));
    ACS_TRY(open_memory(context));
    ACS_TRY(acs_allocations_create(&context->allocations));
    ACS_TRY(open_core(context));
    if (acs_library_parts.core_opened)
        ACS_TRY(acs_library_parts.core_opened(context));
    return acs_workers_start(context);
}

static acs_status read_options(const acs_options *options, acs_options *to)
{
    if (!options)
        return acs_options_init(to, sizeof *to);
    ACS_TRY(acs_options_adopt(to, options));
    return acs_options_check(to);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* The options that are not at their defaults. */
static void log_options(const acs_options *options)
{
    char text[8192];
    if (!acs_log_enabled(ACS_LOG_INFO))
        return;
    (void)acs_options_dump(options, text, sizeof text);
    char *rest = text;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (!ends_with(line, " (default)"))
            acs_log(ACS_LOG_INFO, "%s", line);
}

static void name_in_log(acs_context *context)
{
    atomic_store_explicit(&context->logs, true, memory_order_relaxed); /* guards no other data */
}

/*
 * Refuse to be the second copy of the library in the process. Skipped in a forked child: a thread of the parent may
 * have held the loader's lock, which nobody releases there. This copy passed the check in the parent, and another copy
 * that is loaded later fails its own.
 */
static acs_status check_copies(void)
{
    return acs_registry_fork_generation() == 1 ? acs_copies_check() : ACS_OK;
}

acs_status acs_open(const acs_options *options, acs_context **out)
{
    ACS_NOT_CANCELLED;
    static _Atomic(uint64_t) opened;
    acs_options effective;
    acs_log_origin(0, NULL);
    if (acs_inside())
        return ACS_FAIL(ACS_ERR_STATE, 0, "%s", g_inside);
    if (!out)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_open: context is NULL");
    ACS_TRY(check_copies());
    acs_registry_init();
    acs_nvtx_open();
    if (options && options->size == 0)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "acs_open: options.size is 0; use acs_options_init");
    ACS_TRY(read_options(options, &effective));
    acs_log_set_level(effective.log);
    acs_context *context = acs_registry_take();
    if (!context)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a context");
    context->options = effective;
    context->fork_generation = acs_registry_fork_generation();
    context->opened_ns = acs_clock_ns();
    context->number = atomic_fetch_add_explicit(&opened, 1, memory_order_relaxed) + 1; /* a counter */
    acs_log_origin(context->number, NULL);
    if (eventcounts_init(context)) {
        acs_registry_give(context);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cannot make a mutex");
    }
    acs_status status = open_parts(context);
    if (status != ACS_OK) {
        (void)acs_workers_stop(context);
        release_parts(context, false);
        acs_registry_give(context);
        return status;
    }
    log_options(&effective);
    atomic_store_explicit(&context->open, 1, memory_order_relaxed); /* published with the handle by the caller */
    acs_registry_add(context);
    if (acs_log_enabled(ACS_LOG_ERROR))
        acs_registry_visit(name_in_log); /* the level is the process's, so other contexts have a log now, too */
    if (context->hooks)
        context->hooks->opened(context);
    *out = context;
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------------------ close */

/*
 * Close a context that was given up, without waiting for ops that may still run. True: none can, so close as usual.
 * False, with an error: the memory that such ops may use stays for good, and so does the context's struct. `threads`:
 * number of the context's own threads that are inside ops.
 */
static bool leave_behind(acs_context *context, uint32_t threads)
{
    acs_backend *backend = context->backend;
    acs_leave left = backend->ops->leave ? backend->ops->leave(backend) : ACS_LEFT_NOTHING;
    bool inside = left == ACS_LEFT_THREADS || threads || acs_core_left(&context->core);
    if (!inside && left == ACS_LEFT_NOTHING)
        return true;
    if (!inside)
        release_parts(context, true);
    acs_registry_keep(context);
    ACS_FAIL(ACS_ERR_DEVICE, ETIMEDOUT,
             "closed, but %s may never end: %s stay as they are until the process ends; see ACS_WATCHDOG_S",
             inside ? "a thread is inside an op that" : "an op on the device",
             inside ? "that thread, the context and its memory" : "the context's streams and memory");
    return false;
}

acs_status acs_close(acs_context *context)
{
    ACS_NOT_CANCELLED;
    if (!context)
        return ACS_OK;
    if (acs_inside())
        return acs_fail(ACS_ERR_STATE, 0, "acs_close", "%s", g_inside);
    if (!acs_registry_check(context, "acs_close"))
        return ACS_ERR_STATE;
    acs_log_origin(context->number, NULL);
    (void)acs_registry_clear_default(context);
    (void)acs_context_drain(context, __func__);
    (void)acs_decisions_look(context);
    acs_status status = acs_failures_first(context, NULL);
    acs_registry_remove(context);
    atomic_store_explicit(&context->open, 0, memory_order_relaxed); /* no other call may run beside acs_close */
    uint32_t inside = acs_workers_stop(context);
    if (context->options.stats)
        acs_stats_report(context);
    if (acs_library_parts.drained)
        acs_library_parts.drained(context);
    if (acs_core_given_up(&context->core) && !leave_behind(context, inside))
        return ACS_ERR_DEVICE;
    release_parts(context, false);
    acs_registry_give(context);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- compat */

void acs_compat_drain(void)
{
    if (acs_inside() || acs_thread_is_ours())
        return;
    acs_context *pinned[PINNED_MOST];
    uint32_t count = acs_registry_pin_all(pinned, PINNED_MOST);
    while (count > 0) {
        acs_log_origin(pinned[--count]->number, NULL);
        (void)acs_context_drain(pinned[count], __func__);
        acs_registry_unpin(pinned[count]);
    }
}

/*
 * Failures of a context: the first error, and how each failed or skipped op ended. Written when the core reports an end or
 * a call refuses a launch, read by the error calls; guarded by the core's lock. Never changes what runs.
 */
#include "runtime/context.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { FAILURES_MAX = 1 << 16 };

typedef struct failure {
    acs_op op; /* key */
    acs_status status;
    int native;
    acs_op cause;
    acs_site site;
    const char *text; /* static storage or NULL */
    int hash_failed;
    UT_hash_handle hh;
} failure;

struct acs_failures {
    failure *table;
    uint32_t count;
    uint64_t forgotten; /* beyond FAILURES_MAX */
    acs_error first;    /* status ACS_OK: none */
    acs_error fault;    /* stays after acs_clear */
};

acs_status acs_failures_create(acs_failures **failures)
{
    *failures = calloc(1, sizeof **failures);
    return *failures ? ACS_OK : ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a context's errors");
}

static void empty(acs_failures *failures)
{
    failure *f, *next;
    HASH_ITER(hh, failures->table, f, next)
    {
        HASH_DEL(failures->table, f);
        free(f);
    }
    failures->count = 0;
    failures->forgotten = 0;
}

void acs_failures_destroy(acs_failures *failures)
{
    empty(failures);
    free(failures);
}

/* ------------------------------------------------------------------------------------------------------------- text */

static void describe(acs_error *error, const failure *f)
{
    const char *name = f->site.name ? f->site.name : "?";
    const char *file = f->site.file ? f->site.file : "?";
    unsigned long long op = f->op, cause = f->cause;
    if (f->status == ACS_ERR_SKIPPED)
        acs_error_fill(error, f->status, 0, "skip", "op %llu '%s' (%s:%d) was skipped: it depends on op %llu, which failed",
                       op, name, file, f->site.line, cause);
    else if (f->status == ACS_ERR_HOST)
        acs_error_fill(error, f->status, f->native, "host function", "op %llu '%s' (%s:%d) reported failure %d", op, name,
                       file, f->site.line, f->native);
    else
        acs_error_fill(error, f->status, f->native, "issue", "op %llu '%s' (%s:%d): %s (%d)", op, name, file,
                       f->site.line, f->text ? f->text : acs_status_text(f->status), f->native);
    error->op = f->op;
    error->cause = f->cause;
    error->site = f->site;
}

/* ------------------------------------------------------------------------------------------------------------ record */

static void remember(acs_failures *failures, const failure *what)
{
    failure *f = failures->count < FAILURES_MAX ? malloc(sizeof *f) : NULL;
    if (f) {
        *f = *what;
        f->hash_failed = 0;
        HASH_ADD(hh, failures->table, op, sizeof f->op, f);
        if (!f->hash_failed) {
            failures->count++;
            return;
        }
        free(f);
    }
    if (failures->forgotten++ == 0)
        acs_log(ACS_LOG_WARN, "more than %u failed or skipped ops: acs_op_error no longer knows each", failures->count);
}

void acs_failures_end(acs_context *context, const acs_end *end)
{
    acs_failures *failures = context->failures;
    failure f = {.op = end->op->seq,
                 .status = end->status,
                 .native = end->native,
                 .cause = end->cause,
                 .site = *end->op->site,
                 .text = end->text};
    remember(failures, &f);
    if (failures->first.status != ACS_OK || end->status == ACS_ERR_DEVICE)
        return; /* a fault is reported as a whole */
    describe(&failures->first, &f);
    acs_log(ACS_LOG_ERROR, "%s", failures->first.text);
}

void acs_failures_fault(acs_context *context, const acs_error *error)
{
    context->failures->fault = *error;
    if (context->failures->first.status == ACS_OK)
        context->failures->first = *error;
    /* E: a caller that sees this refuses new ops; those under way end by themselves */
    atomic_store_explicit(&context->faulted, 1, memory_order_release);
    acs_log(ACS_LOG_ERROR, "%s", error->text);
}

void acs_failures_check(acs_context *context, const acs_record *op, const acs_record *other)
{
    acs_error error;
    acs_error_fill(&error, ACS_ERR_CHECK, 0, "check",
                   "op %llu '%s' (%s:%d) conflicts with op %llu '%s' (%s:%d) and is not ordered against it",
                   (unsigned long long)op->seq, op->site->name, op->site->file ? op->site->file : "?", op->site->line,
                   (unsigned long long)other->seq, other->site->name, other->site->file ? other->site->file : "?",
                   other->site->line);
    error.op = op->seq;
    error.cause = other->seq;
    error.site = *op->site;
    acs_log(ACS_LOG_ERROR, "%s", error.text);
    if (context->failures->first.status == ACS_OK)
        context->failures->first = error;
}

void acs_failures_unwritten(acs_context *context, acs_op op, const acs_site *site, uint32_t segment, uint64_t left,
                            uint64_t bytes, uint64_t first)
{
    acs_error error;
    acs_error_fill(&error, ACS_ERR_CHECK, 0, "check",
                   "op %llu '%s' (%s:%d) did not write %llu of %llu bytes of segment %u, which is out; the first lie "
                   "%llu bytes behind its beginning: is it inout?",
                   (unsigned long long)op, site->name, site->file ? site->file : "?", site->line, (unsigned long long)left,
                   (unsigned long long)bytes, segment, (unsigned long long)first);
    error.op = op;
    error.site = *site;
    acs_log(ACS_LOG_ERROR, "%s", error.text);
    acs_lock_acquire(&context->core.lock);
    if (context->failures->first.status == ACS_OK)
        context->failures->first = error;
    acs_lock_release(&context->core.lock);
}

void acs_failures_lost(acs_context *context)
{
    acs_error fault = *acs_error_thread();
    /* E: seen set means that this is known */
    if (atomic_load_explicit(&context->faulted, memory_order_acquire))
        return;
    acs_core_lose(&context->core, &fault);
    acs_gate_open(&context->ends);
    acs_gate_open(&context->work);
    acs_gate_open(&context->host_work);
}

acs_status acs_failures_refuse(acs_context *context, const acs_site *site)
{
    acs_error *error = acs_error_thread();
    if (site)
        error->site = *site;
    if (error->status == ACS_ERR_DEVICE)
        acs_failures_lost(context);
    if (error->status == ACS_ERR_FULL)
        return error->status; /* asked for, and safe to retry: nothing is missing from program order yet */
    acs_lock_acquire(&context->core.lock);
    if (context->failures->first.status == ACS_OK)
        context->failures->first = *error;
    acs_lock_release(&context->core.lock);
    return error->status;
}

/* -------------------------------------------------------------------------------------------------------------- read */

acs_status acs_failures_first(acs_context *context, acs_error *error)
{
    acs_lock_acquire(&context->core.lock);
    acs_error first = context->failures->first;
    acs_lock_release(&context->core.lock);
    if (first.status != ACS_OK && error)
        acs_error_copy(error, &first);
    return first.status;
}

static const failure *find(const acs_failures *failures, acs_op op)
{
    failure *f = NULL;
    HASH_FIND(hh, failures->table, &op, sizeof op, f);
    return f;
}

acs_status acs_failures_of_locked(acs_context *context, acs_op op)
{
    const failure *f = find(context->failures, op);
    return f ? f->status : ACS_OK;
}

acs_status acs_failures_of(acs_context *context, acs_op op, acs_error *error)
{
    acs_error found;
    found.status = ACS_OK;
    acs_lock_acquire(&context->core.lock);
    const failure *f = find(context->failures, op);
    if (f && f->status == ACS_ERR_DEVICE && context->failures->fault.status != ACS_OK)
        found = context->failures->fault;
    else if (f)
        describe(&found, f);
    acs_lock_release(&context->core.lock);
    if (found.status != ACS_OK && error)
        acs_error_copy(error, &found);
    return found.status;
}

void acs_failures_clear(acs_context *context)
{
    acs_lock_acquire(&context->core.lock);
    acs_failures *failures = context->failures;
    empty(failures);
    failures->first = failures->fault;
    acs_lock_release(&context->core.lock);
}

/* ------------------------------------------------------------------------------------------------------------ public */

acs_status acs_context_error(acs_context *context, acs_error *error)
{
    context = acs_context_enter(context, __func__);
    return context ? acs_failures_first(context, error) : acs_error_thread()->status;
}

acs_status acs_op_error(acs_context *context, acs_op op, acs_error *error)
{
    context = acs_context_enter(context, __func__);
    return context ? acs_failures_of(context, op, error) : acs_error_thread()->status;
}

acs_status acs_clear(acs_context *context)
{
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    acs_capture_abandon(context);
    const bool again = acs_context_drain(context);
    acs_failures_clear(context);
    acs_core_clear(&context->core);
    if (again) /* what did not come home does now; what fails again is told by the next call */
        (void)acs_context_drain(context);
    /* E: seen set means that the fault is in `failures` */
    return atomic_load_explicit(&context->faulted, memory_order_acquire) ? ACS_ERR_DEVICE : ACS_OK;
}

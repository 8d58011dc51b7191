/*
 * Failures of a context (failures.h): the first error, and how each failed or skipped op ended. Written when the core
 * reports an end or a call is refused, read by the calls that ask for errors. Owns struct acs_failures, which the
 * core's lock guards. Never decides which ops are skipped.
 */
#include "api/failures.h"

#include "api/bad_ops.h"

#include <stdlib.h>

struct acs_failures {
    acs_bad_ops bad;
    acs_error first; /* first error since acs_open or acs_clear; status ACS_OK: none */
    acs_error fault; /* error with which the device was lost; acs_clear keeps it */
    _Atomic uint64_t forgot; /* how often acs_clear forgot failed ops; written under the core's lock */
};

acs_status acs_failures_create(acs_failures **failures)
{
    *failures = calloc(1, sizeof **failures);
    return *failures ? ACS_OK : ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a context's errors");
}

void acs_failures_destroy(acs_failures *failures)
{
    acs_bad_ops_free(&failures->bad);
    free(failures);
}

/* ------------------------------------------------------------------------------------------------------------- text */

static void describe_lost(acs_error *error, acs_op op)
{
    acs_error_fill(error, ACS_ERR_SKIPPED, 0, "skip",
                   "op %llu may have been skipped, or have failed: so many ops have that the exact record was given up",
                   (unsigned long long)op);
    error->op = op;
}

static void describe(acs_error *error, const acs_bad_range *bad, acs_op op)
{
    const char *name = bad->site.name ? bad->site.name : "?";
    const char *file = bad->site.file ? bad->site.file : "?";
    unsigned long long number = op, cause = bad->cause;
    if (bad->status == ACS_ERR_SKIPPED)
        acs_error_fill(error, bad->status, 0, "skip",
                       "op %llu '%s' (%s:%d) was skipped: it depends on op %llu, which failed", number, name, file,
                       bad->site.line, cause);
    else if (bad->status == ACS_ERR_HOST)
        acs_error_fill(error, bad->status, bad->native, "host function", "op %llu '%s' (%s:%d) reported failure %d", number,
                       name, file, bad->site.line, bad->native);
    else
        acs_error_fill(error, bad->status, bad->native, "issue", "op %llu '%s' (%s:%d): %s (%d)", number, name, file,
                       bad->site.line, bad->text ? bad->text : acs_status_text(bad->status), bad->native);
    error->op = op;
    error->cause = bad->cause;
    error->site = bad->site;
}

/* ----------------------------------------------------------------------------------------------------------- record */

void acs_failures_end(acs_context *context, const acs_end *end)
{
    acs_failures *failures = context->failures;
    const acs_op op = end->op->seq;
    const acs_bad_range bad = {.first = op,
                               .last = op,
                               .cause = end->failed_by,
                               .status = end->status,
                               .native = end->native,
                               .text = end->text,
                               .site = acs_label_site(acs_record_label(end->op))};
    acs_bad_ops_add(&failures->bad, &bad);
    atomic_store_explicit(&context->has_failures, true, memory_order_relaxed); /* F: before the core tells the end */
    if (failures->first.status != ACS_OK || end->status == ACS_ERR_DEVICE)
        return; /* acs_failures_fault reports a lost device once for all ops */
    describe(&failures->first, &bad, op);
    acs_log(ACS_LOG_ERROR, "%s", failures->first.text);
}

/* F: relaxed; the flag is set before any thread can know that the failed call or op has ended. */
static void keep_first(acs_context *context, const acs_error *error)
{
    if (context->failures->first.status != ACS_OK)
        return;
    context->failures->first = *error;
    atomic_store_explicit(&context->has_failures, true, memory_order_relaxed); /* F */
}

void acs_failures_fault(acs_context *context, const acs_error *error)
{
    context->failures->fault = *error;
    keep_first(context, error);
    acs_context_add_mode(context, ACS_MODE_LOST); /* calls refuse new ops; the core ends those under way */
    acs_log(ACS_LOG_ERROR, "%s", error->text);
}

void acs_failures_check(acs_context *context, const acs_record *op, const acs_record *other)
{
    acs_error error;
    acs_error_fill(&error, ACS_ERR_CHECK, 0, "check",
                   "op %llu '%s' (%s:%d) conflicts with op %llu '%s' (%s:%d) and is not ordered against it",
                   (unsigned long long)op->seq, acs_record_name(op), op->site->file ? op->site->file : "?", op->site->line,
                   (unsigned long long)other->seq, acs_record_name(other), other->site->file ? other->site->file : "?",
                   other->site->line);
    error.op = op->seq;
    error.cause = other->seq;
    error.site = acs_label_site(acs_record_label(op));
    acs_log(ACS_LOG_ERROR, "%s", error.text);
    keep_first(context, &error);
}

void acs_failures_footprint(acs_context *context, acs_op op, uint64_t number, acs_label label, const char *text)
{
    acs_error error;
    const acs_site site = acs_label_site(label);
    acs_error_fill(&error, ACS_ERR_CHECK, 0, "check", "op %llu '%s' (%s:%d) %s", (unsigned long long)number,
                   acs_label_name(label), site.file ? site.file : "?", site.line, text);
    error.op = op;
    error.site = site;
    acs_log(ACS_LOG_ERROR, "%s", error.text);
    ACS_HOLD(&context->core.lock);
    keep_first(context, &error);
}

void acs_failures_lost(acs_context *context)
{
    acs_error fault = *acs_error_thread();
    if (acs_context_is_lost(context))
        return;
    acs_core_lose(&context->core, &fault);
    acs_eventcount_notify(&context->ends);
    acs_eventcount_notify(&context->work);
    acs_eventcount_notify(&context->host_work);
}

void acs_failures_keep(acs_context *context)
{
    ACS_HOLD(&context->core.lock);
    keep_first(context, acs_error_thread());
}

acs_status acs_failures_refuse(acs_context *context, const acs_site *site)
{
    const acs_error *error = acs_error_thread();
    if (site)
        acs_error_at(site);
    if (error->status == ACS_ERR_DEVICE)
        acs_failures_lost(context);
    if (error->status == ACS_ERR_FULL)
        return error->status; /* no_wait asked for it, and a retry leaves no hole in program order */
    acs_failures_keep(context);
    return error->status;
}

/* ------------------------------------------------------------------------------------------------------------- read */

acs_status acs_failures_first_of(acs_context *context, acs_error *error)
{
    ACS_HOLD(&context->core.lock);
    const acs_error *first = &context->failures->first;
    if (first->status != ACS_OK && error)
        acs_error_copy(error, first);
    return first->status;
}

acs_status acs_failures_of_locked(acs_context *context, acs_op op)
{
    acs_bad_range bad;
    return acs_bad_ops_find(&context->failures->bad, op, &bad) ? bad.status : ACS_OK;
}

static void find_locked(const acs_failures *failures, acs_op op, acs_error *found)
{
    acs_bad_range bad;
    if (!acs_bad_ops_find(&failures->bad, op, &bad))
        found->status = ACS_OK;
    else if (bad.status == ACS_ERR_DEVICE && failures->fault.status != ACS_OK)
        *found = failures->fault;
    else if (bad.first == 0 && bad.status == ACS_ERR_SKIPPED)
        describe_lost(found, op);
    else
        describe(found, &bad, op);
}

acs_status acs_failures_find(acs_context *context, acs_op op, acs_error *error)
{
    acs_error found;
    ACS_HOLD(&context->core.lock);
    find_locked(context->failures, op, &found);
    if (found.status != ACS_OK && error)
        acs_error_copy(error, &found);
    return found.status;
}

uint64_t acs_failures_forgot(const acs_context *context)
{
    return atomic_load_explicit(&context->failures->forgot, memory_order_relaxed);
}

void acs_failures_clear(acs_context *context)
{
    ACS_HOLD(&context->core.lock);
    acs_failures *failures = context->failures;
    if (failures->bad.count || failures->bad.vague_first) /* relaxed: a counter, which tells of no other data */
        atomic_fetch_add_explicit(&failures->forgot, 1, memory_order_relaxed);
    acs_bad_ops_clear(&failures->bad);
    failures->first = failures->fault;
    const bool left = failures->bad.count > 0 || failures->bad.vague_first != 0 || failures->first.status != ACS_OK;
    atomic_store_explicit(&context->has_failures, left, memory_order_relaxed); /* F: no thread waits for a forgotten op */
}


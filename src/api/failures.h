/*
 * Failures of a context (failures.c): the first error, and how each failed or skipped op ended. Written when the core
 * reports an end and when a call is refused. Guarded by the core's lock, which the functions take that are not said to
 * run under it. Calls that ask for errors begin with acs_failures_first and acs_failures_of of context.h.
 */
#ifndef ACS_FAILURES_H
#define ACS_FAILURES_H

#include "api/context.h"

acs_status acs_failures_create(acs_failures **failures);
void acs_failures_destroy(acs_failures *failures);

/* An op failed or was skipped. Under the core's lock. */
void acs_failures_end(acs_context *context, const acs_end *end);
/* The device is lost. Under the core's lock. */
void acs_failures_fault(acs_context *context, const acs_error *error);
/* ACS_CHECK=overlap: `op` conflicts with `other` and is not ordered against it. Under the core's lock. */
void acs_failures_check(acs_context *context, const acs_record *op, const acs_record *other);
/*
 * ACS_CHECK=writes, reads, all: the footprint of kernel `op` is not true, as `text` says. The text has its `number` among
 * the program's own ops. Not under the core's lock.
 */
void acs_failures_footprint(acs_context *context, acs_op op, uint64_t number, acs_label label, const char *text);
/* A call found the device lost, as this thread's error says: end all ops under way, and wake all sleeping threads. */
void acs_failures_lost(acs_context *context);
/* Keep this thread's error in the context, if that has none yet. */
void acs_failures_keep(acs_context *context);
/* A call is refused: add the site to this thread's error, keep it unless it is ACS_ERR_FULL, return its status. */
acs_status acs_failures_refuse(acs_context *context, const acs_site *site);
/* acs_clear: forget all failures but those of a lost device. */
void acs_failures_clear(acs_context *context);
/* How often acs_clear has forgotten failed or skipped ops. */
uint64_t acs_failures_forgot(const acs_context *context);

/* As acs_failures_of (context.h), without the error. Under the core's lock. */
acs_status acs_failures_of_locked(acs_context *context, acs_op op);

#endif

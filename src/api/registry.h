/*
 * The registry of contexts: the list of open ones, the structs of closed ones for reuse, the default context, and the
 * handling of fork. Private to src/api. All functions may be called by any thread.
 */
#ifndef ACS_REGISTRY_H
#define ACS_REGISTRY_H

#include "api/context.h"

/* Register the fork handlers, once in a process. */
void acs_registry_init(void);
/* Number of forks between the first process that used the library and this one, plus 1. */
uint32_t acs_registry_fork_generation(void);

/* Call `visit` for each open context; none is added or removed meanwhile. It must not call the registry. */
void acs_registry_visit(void (*visit)(acs_context *context));

/* Take a zeroed struct; NULL: no memory. Give it back by acs_registry_give. */
acs_context *acs_registry_take(void);
void acs_registry_give(acs_context *context);
/* Instead of acs_registry_give: keep the struct reachable and never reuse it, since a thread may use it for ever. */
void acs_registry_keep(acs_context *context);

/* Add a context to the list of open ones. */
void acs_registry_add(acs_context *context);
/* Remove a context that closes from the list. Waits while it is pinned. */
void acs_registry_remove(acs_context *context);
/* Pin up to `capacity` open contexts of this process, so that they do not close. @return their number. */
uint32_t acs_registry_pin_all(acs_context **pinned, uint32_t capacity);
void acs_registry_unpin(acs_context *context);

/* Whether the context is open and was opened by this process. */
bool acs_registry_is_usable(const acs_context *context);
/* The same; if not, with an error that names `function`. */
bool acs_registry_check(const acs_context *context, const char *function);

/* The lock under which a default context is opened. It is free in a forked child. */
void acs_registry_lock_default(void);
void acs_registry_unlock_default(void);
/* The default context if it is open, else NULL. */
acs_context *acs_registry_default(void);
/* Make an open context the default one. Under the lock. */
void acs_registry_set_default(acs_context *context);
/* The context closes. True: it was the default one, so there is no default context any more. */
bool acs_registry_clear_default(acs_context *context);

#endif

/*
 * The registry of contexts: which are open, structs of closed ones for the next, the slot of the default context, and what
 * a fork changes. Private to src/api. All functions may be called by any thread.
 */
#ifndef ACS_REGISTRY_H
#define ACS_REGISTRY_H

#include "api/context.h"

/* Prepare for forks, once in a process. */
void acs_registry_init(void);
/* Number of forks between the first process that used the library and this one, plus 1. */
uint32_t acs_registry_fork_generation(void);

/* A cleared struct, or NULL: no memory. It goes back by acs_registry_give. */
acs_context *acs_registry_take(void);
void acs_registry_give(acs_context *context);
/* The closed context's struct may be in use for ever: it stays, and stays reachable. */
void acs_registry_keep(acs_context *context);

/* The context is open. */
void acs_registry_add(acs_context *context);
/* The context closes. Waits until nobody has it pinned. */
void acs_registry_remove(acs_context *context);
/* Pin up to `capacity` open contexts of this process, so that they do not close. @return their number. */
uint32_t acs_registry_pin_all(acs_context **pinned, uint32_t capacity);
void acs_registry_unpin(acs_context *context);

/* Whether the context is open, and of this process. */
bool acs_registry_is_usable(const acs_context *context);
/* The same; where not, with an error that names `function`. */
bool acs_registry_check(const acs_context *context, const char *function);

/* The lock under which a default context is opened. It is free in a forked child. */
void acs_registry_lock_default(void);
void acs_registry_unlock_default(void);
/* The default context if it is open, else NULL. */
acs_context *acs_registry_default(void);
/* The default context was opened. Under the lock. */
void acs_registry_set_default(acs_context *context);
/* The context closes. True: it was the default one, so there is none any more. */
bool acs_registry_clear_default(acs_context *context);

#endif

/*
 * What a kernel is known by in tables of declarations (declared.c, variants/sets.c): its function, else its host body, else
 * its name. Pure; defined in identity.c.
 */
#ifndef ACS_IDENTITY_H
#define ACS_IDENTITY_H

#include "base/base.h"

typedef enum acs_identity_kind { ACS_BY_FUNCTION, ACS_BY_HOST, ACS_BY_NAME } acs_identity_kind;

typedef struct acs_identity {
    acs_identity_kind kind;
    const void *address; /* of a function or body; NULL by name */
    const char *name;    /* by name; else NULL */
} acs_identity;

static inline acs_identity acs_identity_at(acs_identity_kind kind, const void *address)
{
    return (acs_identity){kind, address, NULL};
}

static inline acs_identity acs_identity_by_name(const char *name)
{
    return (acs_identity){ACS_BY_NAME, NULL, name};
}

/* The kernel's host body as an address. */
static inline const void *acs_identity_host(const acs_kernel *kernel)
{
    return (const void *)(uintptr_t)kernel->host;
}

/* ACS_ERR_ARGUMENT, in the name of `function`: the kernel is NULL, or has nothing that it could be known by. */
acs_status acs_identity_check(const acs_kernel *kernel, const char *function);
/* What a checked kernel is known by. */
acs_identity acs_identity_of(const acs_kernel *kernel);
uint64_t acs_identity_hash(acs_identity identity);
bool acs_identity_is(acs_identity a, acs_identity b);

#endif

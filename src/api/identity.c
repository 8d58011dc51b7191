/* Identities of kernels (identity.h). Knows no table. */
#include "api/identity.h"

#include "base/hash.h"

#include <string.h>

acs_status acs_identity_check(const acs_kernel *kernel, const char *function)
{
    if (kernel && (kernel->function || kernel->host || (kernel->name && kernel->name[0])))
        return ACS_OK;
    return acs_fail(ACS_ERR_ARGUMENT, 0, function, "%s: the kernel %s", function,
                    kernel ? "has no function, no host body and no name" : "is NULL");
}

acs_identity acs_identity_of(const acs_kernel *kernel)
{
    if (kernel->function)
        return acs_identity_at(ACS_BY_FUNCTION, kernel->function);
    return kernel->host ? acs_identity_at(ACS_BY_HOST, acs_identity_host(kernel)) : acs_identity_by_name(kernel->name);
}

uint64_t acs_identity_hash(acs_identity identity)
{
    uint64_t hash = (uint64_t)(uintptr_t)identity.address ^ (uint64_t)identity.kind << 60;
    for (const char *c = identity.name; c && *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return acs_hash64(hash);
}

bool acs_identity_is(acs_identity a, acs_identity b)
{
    return a.kind == b.kind && a.address == b.address && (!a.name || strcmp(a.name, b.name) == 0);
}

/*
 * The parts of a library of the core alone (libacs_core.a): the backend of CPU threads, and nothing else. Ops are issued
 * one by one; there is no acs_malloc, no group and no capture. It shows that the core needs no other part.
 */
#include "api/parts.h"

static acs_status open_host(const acs_backend_config *config, acs_backend **backend)
{
    return acs_backend_host.open(config, backend);
}

const acs_parts acs_library_parts = {.open_backend = open_host};

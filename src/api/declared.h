/*
 * Declared footprints: what acs_declare was told of kernels. One table of the process, for all contexts. Launches look
 * kernels up in it without a lock (expand.c). Defined in declared.c.
 */
#ifndef ACS_DECLARED_H
#define ACS_DECLARED_H

#include "scheduler/backend.h"

typedef struct acs_declaration {
    acs_footprint footprint;
    const void *user;
} acs_declaration;

/*
 * Find the footprint that was declared for a kernel. The backend is asked once for each function what the driver calls it.
 * `stub`: acs_launch_params.stub. False: there is none.
 */
bool acs_declared_find(acs_backend *backend, const acs_kernel *kernel, const void *stub, acs_declaration *declaration);

#endif

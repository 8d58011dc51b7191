/*
 * Declared versions of kernels (acs_variants): one table of the process, for all contexts. Launches look kernels up in it
 * without a lock. Defined in sets.c.
 */
#ifndef ACS_VARIANT_SETS_H
#define ACS_VARIANT_SETS_H

#include "base/base.h"

enum { ACS_VARIANT_NAME_BYTES = 48, ACS_VERSIONS_MOST = ACS_VARIANTS_MOST + 1 /* with the kernel itself */ };

/* A version as it was declared. The first of a set, "base", has no kernel and no shape: those of the launch. */
typedef struct acs_declared_version {
    char name[ACS_VARIANT_NAME_BYTES];
    acs_kernel kernel;
    acs_variant_shape shape;
    const void *user;
} acs_declared_version;

/* The versions of a kernel. Constant; stays until the process ends, since a reader may hold it. */
typedef struct acs_variant_set {
    const void *owner; /* the kernel's function, body or name, as a number: tells kernels of one name apart */
    uint32_t count;
    acs_declared_version version[];
} acs_variant_set;

/* The set of a kernel; NULL: it has one version. `stub`: acs_launch_params.stub. */
const acs_variant_set *acs_variant_set_find(const acs_kernel *kernel, const void *stub);
/* Whether any kernel has versions. */
bool acs_variant_sets_exist(void);
/* Whether a name is one of a version or a model: 1 to 47 letters, digits and "_-.:". */
bool acs_variant_name_is_good(const char *name);

#endif

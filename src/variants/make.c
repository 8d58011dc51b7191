/*
 * Launches of one version (make.h): the shape that the program's function gives, and timed launches. Runs on the caller's
 * thread, under no lock.
 */
#include "variants/make.h"

#include "variants/profile.h"

#include <string.h>

enum { ARGS_MOST = 512 /* more arguments than these are refused for kernels with versions; on the stack */ };

/* ---------------------------------------------------------------------------------------------------------- versions */

const char *acs_variant_kernel_name(const acs_launch_params *p)
{
    const acs_label label = {p->site ? p->site : &acs_unknown_site, p->kernel->name ? p->kernel->name
                                                                    : p->site       ? p->site->name
                                                                                    : NULL};
    return acs_label_name(label);
}

void acs_variant_problem(const acs_launch_params *p, acs_problem_key *key)
{
    memset(key, 0, sizeof *key); /* it is hashed as a whole */
    memcpy(key->grid, (uint32_t[]){p->grid.x, p->grid.y, p->grid.z}, sizeof key->grid);
    memcpy(key->block, (uint32_t[]){p->block.x, p->block.y, p->block.z}, sizeof key->block);
    key->shared_bytes = p->shared_bytes;
    for (size_t i = 0; i < p->uses.count; i++) {
        const acs_segment *s = &p->uses.segments[i];
        const uint64_t bytes = s->extent == ACS_EXTENT_BYTES ? s->rows * s->row_bytes : 0;
        key->reads += s->access & ACS_READ ? bytes : 0;
        key->writes += s->access & ACS_WRITE ? bytes : 0;
    }
}

/* A C++ exception may leave the program's function, so this is a cleanup. */
static void shape_left(const int *unused)
{
    (void)unused;
    acs_inside_set(false);
}

/* Calls of ACS are refused meanwhile. */
static size_t run_shape(const acs_declared_version *version, const acs_footprint_input *in, acs_launch_shape *shape)
{
    __attribute__((cleanup(shape_left))) int running = 0;
    (void)running;
    acs_inside_set(true);
    return version->shape(in, shape);
}

/* The shape of a version: what the program's function makes of the launch. */
static acs_status shape_of(const acs_launch_params *p, const acs_declared_version *version, acs_launch_shape *shape,
                           bool *fits)
{
    void *args[ARGS_MOST];
    uint32_t bytes[ARGS_MOST];
    *fits = true;
    if (!version->shape)
        return ACS_OK;
    if (p->args.count > ARGS_MOST)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': %zu arguments are too many for a kernel with versions",
                        acs_variant_kernel_name(p), p->args.count);
    for (size_t i = 0; i < p->args.count; i++) {
        args[i] = (void *)(uintptr_t)p->args.list[i].value;
        bytes[i] = p->args.list[i].size;
    }
    const acs_footprint_input in = {.name = acs_variant_kernel_name(p), .grid = {p->grid.x, p->grid.y, p->grid.z},
                                    .block = {p->block.x, p->block.y, p->block.z}, .shared_bytes = p->shared_bytes,
                                    .args = args, .arg_count = p->args.count, .user = version->user, .arg_bytes = bytes};
    const size_t result = run_shape(version, &in, shape);
    *fits = result == ACS_SHAPE_FITS;
    if (result == ACS_SHAPE_FITS || result == ACS_SHAPE_UNFIT)
        return ACS_OK;
    if (result != ACS_FOOTPRINT_REFUSED)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': the shape of version '%s' returned %zu", acs_variant_kernel_name(p),
                        version->name, result);
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': the shape of version '%s' refuses the launch's arguments",
                    acs_variant_kernel_name(p), version->name);
}

bool acs_variant_make(const acs_launch_params *p, const acs_variant_set *set, uint32_t number, acs_version_launch *v,
                      acs_status *status)
{
    const acs_declared_version *version = &set->version[number];
    acs_launch_shape shape = {p->grid, p->block, p->shared_bytes};
    bool fits;
    *status = shape_of(p, version, &shape, &fits);
    if (*status != ACS_OK || !fits)
        return false;
    v->params = *p;
    v->kernel = number ? version->kernel : *p->kernel;
    v->kernel.name = p->kernel->name;
    v->params.kernel = &v->kernel;
    v->params.grid = shape.grid;
    v->params.block = shape.block;
    v->params.shared_bytes = shape.shared_bytes;
    v->params.attributes.variant = 0;
    return true;
}

/* -------------------------------------------------------------------------------------------------------------- timed */

acs_op acs_launch_timed(acs_context *context, const acs_launch_params *params, acs_timing *timing, bool *unfit)
{
    acs_draft draft = {.context = context};
    acs_backend *backend = context->backend;
    *unfit = false;
    if (!acs_launch_fill(&draft, params))
        return 0;
    if (draft.captured || draft.group) { /* no op of its own is issued */
        ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "'%s': a launch in a capture or a group cannot be timed", acs_draft_name(&draft));
        return acs_draft_drop(&draft);
    }
    if (acs_draft_bind(&draft) != ACS_OK)
        return acs_draft_drop(&draft);
    const acs_status status = backend->ops->check(backend, draft.record);
    *unfit = status == ACS_ERR_ARGUMENT || status == ACS_ERR_UNSUPPORTED;
    if (*unfit) { /* the program did not ask for this version */
        acs_draft_blame(&draft);
        acs_draft_take_back(&draft);
        return 0;
    }
    if (status != ACS_OK)
        return acs_draft_drop(&draft);
    draft.record->flags |= ACS_RECORD_TIMED;
    draft.record->type = 0; /* launched by itself */
    draft.record->u.launch.timing = timing;
    draft.record->u.launch.timer = 0;
    return acs_draft_queue(&draft);
}

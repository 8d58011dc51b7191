/*
 * Handles that no two running ops share: one for each slot, and in captures one for each block of scratch memory. Called by
 * wrappers whose library keeps state in a handle, on the thread that issues the op. A place belongs to one slot, or to the
 * captured calls of a context, whose functions run one at a time. It takes no lock.
 */
#include "common/wrap.h"

#include <stdlib.h>

typedef struct handle {
    struct handle *next;
    const void *block; /* scratch memory of captured calls; NULL: the slot's own handle */
    int device;
    void *handle;
} handle;

typedef struct place {
    const acs_wrap_handle_type *type;
    handle *first;
} place;

static int add_handle(place *p, const void *block, int device, void **made)
{
    handle *const h = calloc(1, sizeof *h);
    int code;

    if (!h)
        return ACS_WRAP_CODE_MEMORY;
    code = p->type->create(&h->handle);
    if (code) {
        free(h);
        return code;
    }
    h->block = block;
    h->device = device;
    h->next = p->first;
    p->first = h;
    *made = h->handle;
    return 0;
}

int acs_wrap_handle(const acs_call_env *env, const acs_wrap_handle_type *type, void **found)
{
    const void *const block = env->slot < 0 ? env->scratch : NULL;
    place *p = *env->place;

    if (!p) {
        p = calloc(1, sizeof *p);
        if (!p)
            return ACS_WRAP_CODE_MEMORY;
        p->type = type;
        *env->place = p;
    }
    for (const handle *h = p->first; h; h = h->next)
        if (h->block == block && h->device == env->device) {
            *found = h->handle;
            return 0;
        }
    return add_handle(p, block, env->device, found);
}

/* The context closes: there is nobody left to tell of a failure. */
void acs_wrap_handles_destroy(void *pointer)
{
    place *const p = pointer;

    while (p->first) {
        handle *const h = p->first;
        p->first = h->next;
        p->type->destroy(h->handle);
        free(h);
    }
    free(p);
}

/*
 * The checks of a context: what is known of its call sites, and which memory the program has registered. Called while a
 * context opens and closes, by launch_check.c and by the program.
 */
#include "checks/checks_internal.h"

#include "api/program_order.h"

#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------------------------------------------ open, close */

acs_status acs_checks_open(acs_context *context)
{
    if (context->options.check <= ACS_CHECK_OVERLAP)
        return ACS_OK;
    context->checks = calloc(1, sizeof *context->checks);
    return context->checks ? ACS_OK : ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for ACS_CHECK");
}

void acs_checks_close(acs_context *context)
{
    acs_checks *all = context->checks;
    if (!all)
        return;
    for (uint32_t i = 0; i < all->site_count; i++)
        acs_hints_print(&all->sites[i]);
    if (all->ops)
        (void)fprintf(stderr, "acs: check: %llu of %llu ops were checked", (unsigned long long)all->checked,
                      (unsigned long long)all->ops);
    if (all->left_out)
        (void)fprintf(stderr, "; %llu could not be: they may not wait, are captured or held, may write any memory, or come "
                      "behind a failure", (unsigned long long)all->left_out);
    if (all->ops)
        (void)fputc('\n', stderr);
    free(all->registered);
    free(all);
    context->checks = NULL;
}

void acs_checks_clear(acs_context *context)
{
    acs_checks *all = context->checks;
    if (!all)
        return;
    acs_order_lock(context);
    for (uint32_t i = 0; i < all->site_count; i++)
        all->sites[i].findings = 0;
    acs_order_unlock(context);
}

acs_checked_site *acs_checks_site(acs_checks *all, acs_label label)
{
    for (uint32_t i = 0; i < all->site_count; i++)
        if (all->sites[i].site == label.site && all->sites[i].name == label.name)
            return &all->sites[i];
    if (all->site_count == TUNE_CHECK_SITES)
        return NULL;
    all->sites[all->site_count] = (acs_checked_site){.site = label.site, .name = label.name};
    return &all->sites[all->site_count++];
}

/* -------------------------------------------------------------------------------------------------------- registered */

static acs_status refuse_memory(const void *ptr, size_t bytes, const char *function)
{
    return acs_fail(ACS_ERR_ARGUMENT, 0, function, "%zu bytes at %p", bytes, ptr);
}

acs_status acs_check_register(acs_context *context, const void *ptr, size_t bytes)
{
    ACS_ENTER(context);
    if (!ptr || !bytes || bytes >= (uint64_t)1 << 47) /* addresses of a process have 47 bits */
        return refuse_memory(ptr, bytes, __func__);
    acs_checks *all = context->checks;
    if (!all)
        return ACS_OK;
    acs_order_lock(context);
    const bool fits = ACS_GROW(all->registered, all->registered_room, (uint64_t)all->registered_count + 1);
    const uint64_t first = (uint64_t)(uintptr_t)ptr;
    if (fits)
        all->registered[all->registered_count++] = (acs_registered){first, first + bytes};
    acs_order_unlock(context);
    return fits ? ACS_OK : ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to register %zu bytes", bytes);
}

acs_status acs_check_unregister(acs_context *context, const void *ptr)
{
    ACS_ENTER(context);
    acs_checks *all = context->checks;
    if (!all)
        return ACS_OK;
    bool found = false;
    acs_order_lock(context);
    for (size_t i = all->registered_count; i-- > 0 && !found;) {
        found = all->registered[i].first == (uint64_t)(uintptr_t)ptr;
        if (found)
            all->registered[i] = all->registered[--all->registered_count];
    }
    acs_order_unlock(context);
    return found ? ACS_OK : ACS_FAIL(ACS_ERR_ARGUMENT, 0, "no registered memory begins at %p", ptr);
}

bool acs_checks_registered(acs_context *context, uint64_t address, uint64_t *first, uint64_t *bytes)
{
    acs_checks *all = context->checks;
    if (!all)
        return false;
    *bytes = 0;
    acs_order_lock(context);
    for (size_t i = 0; i < all->registered_count; i++) {
        const acs_registered *r = &all->registered[i];
        if (address < r->first || address >= r->end || r->end - r->first <= *bytes)
            continue;
        *first = r->first;
        *bytes = r->end - r->first;
    }
    acs_order_unlock(context);
    return *bytes != 0;
}

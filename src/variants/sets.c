/*
 * The table of declared versions (sets.h): acs_variants writes it under a lock, launches read it without one. A change
 * makes a new table. Tables and sets stay until the process ends. Never calls the program's code.
 */
#include "variants/sets.h"

#include "api/context.h"
#include "api/identity.h"
#include "api/registry.h"

#include <stdlib.h>
#include <string.h>

typedef struct row {
    acs_identity of;
    const acs_variant_set *set;
} row;

typedef struct table {
    uint32_t count, mask;
    struct table *older; /* kept for readers that hold it */
    row rows[];          /* open addressing, at most half full; set NULL: empty */
} table;

/*
 * A  publish_locked: fill a table, store it with release; acs_variant_set_find: load acquire. Broken: a reader sees rows
 *    without their sets.
 */
static _Atomic(table *) g_table; /* NULL: nothing was declared yet */
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards writes of the table */
static pthread_once_t g_fork_once = PTHREAD_ONCE_INIT;

static void lock(void)
{
    pthread_mutex_lock(&g_mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&g_mutex);
}

static void watch_forks(void)
{
    (void)pthread_atfork(lock, unlock, unlock);
}

/* ------------------------------------------------------------------------------------------------------------ lookup */

/* The row of a kernel, or the empty row where it belongs. */
static const row *row_of(const table *t, acs_identity of)
{
    for (uint64_t i = acs_identity_hash(of);; i++)
        if (!t->rows[i & t->mask].set || acs_identity_is(of, t->rows[i & t->mask].of))
            return &t->rows[i & t->mask];
}

/* A set without other versions stands for a kernel whose versions were taken back. */
static const acs_variant_set *find_in(const table *t, acs_identity of)
{
    const acs_variant_set *set = of.address || of.name ? row_of(t, of)->set : NULL;
    return set && set->count > 1 ? set : NULL;
}

const acs_variant_set *acs_variant_set_find(const acs_kernel *kernel, const void *stub)
{
    const table *t = atomic_load_explicit(&g_table, memory_order_acquire); /* A */
    const acs_variant_set *set = t ? find_in(t, acs_identity_at(ACS_BY_FUNCTION, kernel->function)) : NULL;
    if (!set && t)
        set = find_in(t, acs_identity_at(ACS_BY_FUNCTION, stub));
    if (!set && t)
        set = find_in(t, acs_identity_at(ACS_BY_HOST, acs_identity_host(kernel)));
    return set || !t ? set : find_in(t, acs_identity_by_name(kernel->name));
}

bool acs_variant_sets_exist(void)
{
    return atomic_load_explicit(&g_table, memory_order_acquire) != NULL; /* A */
}

/* ----------------------------------------------------------------------------------------------------------- declare */

bool acs_variant_name_is_good(const char *name)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:";
    const size_t length = name ? strnlen(name, ACS_VARIANT_NAME_BYTES) : 0;
    return length && length < ACS_VARIANT_NAME_BYTES && strspn(name, good) == length;
}

static acs_status check_variants(const acs_variant *variants, size_t count)
{
    if (count > ACS_VARIANTS_MOST)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_variants: %zu versions; a kernel has at most %d beside itself", count,
                        ACS_VARIANTS_MOST);
    for (size_t i = 0; i < count; i++) {
        const acs_variant *v = &variants[i];
        if (!acs_variant_name_is_good(v->name) || strcmp(v->name, "base") == 0)
            return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_variants: version %zu: the name '%.60s' is not 1 to 47 letters, "
                            "digits and \"_-.:\", or is \"base\"", i + 1, v->name ? v->name : "(NULL)");
        if (!v->kernel || (!v->kernel->function && !v->kernel->host))
            return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_variants: version '%s': its kernel is NULL, or has no function and no "
                            "host body", v->name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(variants[k].name, v->name) == 0)
                return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_variants: the name '%s' is there twice", v->name);
    }
    return ACS_OK;
}

static acs_variant_set *make_set(const acs_variant *variants, size_t count)
{
    acs_variant_set *set = calloc(1, sizeof *set + (count + 1) * sizeof set->version[0]);
    if (!set)
        return NULL;
    set->count = (uint32_t)count + 1;
    strcpy(set->version[0].name, "base");
    for (size_t i = 0; i < count; i++) {
        acs_declared_version *to = &set->version[i + 1];
        strcpy(to->name, variants[i].name);
        to->kernel = *variants[i].kernel;
        to->shape = variants[i].shape;
        to->user = variants[i].user;
    }
    return set;
}

/* Publish a table with this row beside those of the old one. False: no memory. */
static bool publish_locked(table *old, const row *more)
{
    const uint32_t rows = acs_round_up_pow2(2 * ((old ? old->count : 0) + 2));
    table *t = calloc(1, sizeof *t + rows * sizeof t->rows[0]);
    if (!t)
        return false;
    t->mask = rows - 1;
    t->older = old;
    *(row *)(uintptr_t)row_of(t, more->of) = *more;
    t->count = 1;
    for (uint32_t i = 0; old && i <= old->mask; i++) {
        row *to = old->rows[i].set ? (row *)(uintptr_t)row_of(t, old->rows[i].of) : NULL;
        if (!to || to->set)
            continue;
        *to = old->rows[i];
        t->count++;
    }
    atomic_store_explicit(&g_table, t, memory_order_release); /* A */
    return true;
}

static void look_for_versions(acs_context *context)
{
    acs_context_add_mode(context, ACS_MODE_VARIANTS);
}

static acs_status declare(const acs_kernel *kernel, const acs_variant *variants, size_t count)
{
    row made = {acs_identity_of(kernel), NULL};
    char *name = made.of.name ? malloc(strlen(made.of.name) + 1) : NULL;
    acs_variant_set *set = make_set(variants, count);
    bool done = set && (!made.of.name || name);
    if (done && name)
        made.of.name = strcpy(name, made.of.name);
    if (set)
        set->owner = made.of.address; /* NULL by name: one name is one kernel */
    made.set = set;
    (void)pthread_once(&g_fork_once, watch_forks);
    lock();
    /* Relaxed: written under the lock, which is held. */
    done = done && publish_locked(atomic_load_explicit(&g_table, memory_order_relaxed), &made);
    unlock();
    if (done)
        return ACS_OK;
    free(name);
    free(set);
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "acs_variants: no memory for %zu versions", count);
}

acs_status acs_variants(const acs_kernel *kernel, const acs_variant *variants, size_t count)
{
    ACS_TRY(acs_identity_check(kernel, "acs_variants"));
    if (count && !variants)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_variants: %zu versions at NULL", count);
    ACS_TRY(check_variants(variants, count));
    ACS_TRY(declare(kernel, variants, count));
    acs_registry_visit(look_for_versions); /* contexts that open later look by themselves */
    return ACS_OK;
}

acs_status acs_variant_number(const acs_kernel *kernel, const char *name, uint32_t *number)
{
    if (!kernel || !name || !number)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_variant_number: kernel %p, name %p, number %p", (const void *)kernel,
                        (const void *)name, (void *)number);
    const acs_variant_set *set = acs_variant_set_find(kernel, NULL);
    uint32_t i = 0;
    while (set && i < set->count && strcmp(set->version[i].name, name) != 0)
        i++;
    if ((set && i == set->count) || (!set && strcmp(name, "base") != 0))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_variant_number: the kernel '%.60s' has no version '%.60s'",
                        kernel->name ? kernel->name : "?", name);
    *number = i;
    return ACS_OK;
}

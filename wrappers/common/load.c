/*
 * Libraries opened at run time, so that programs start where they are missing. Called by the wrappers, at the first op on a
 * GPU and by their load functions. Each wrapper's libraries are looked for once per process. They are never closed: there
 * are handles and loaded code in them for as long as the process lives.
 */
#include "common/wrap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { NOT_TRIED, LOADED, FAILED };

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

/* Where the loader looks, then in the toolkit of the build. */
static void *open_library(acs_wrap_loader *loader, const char *name)
{
    char path[512], first[160];
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

    if (library)
        return library;
    snprintf(first, sizeof first, "%s", dlerror());
    if ((size_t)snprintf(path, sizeof path, "%s/%s", ACS_WRAP_TOOLKIT_LIBRARIES, name) < sizeof path)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        snprintf(loader->why, sizeof loader->why, "%s, nor in %s", first, ACS_WRAP_TOOLKIT_LIBRARIES);
    return library;
}

static bool load_library(acs_wrap_loader *loader, const acs_wrap_library *wanted)
{
    void *const library = open_library(loader, wanted->file);

    for (size_t i = 0; library && i < wanted->count; i++) {
        void *const function = dlsym(library, wanted->functions[i].name);
        if (!function) {
            snprintf(loader->why, sizeof loader->why, "%s has no function %s", wanted->file, wanted->functions[i].name);
            return false;
        }
        /* POSIX lets function pointers be objects; C has no cast for it. */
        memcpy(wanted->functions[i].to, &function, sizeof function);
    }
    return library != NULL;
}

static int load_all(acs_wrap_loader *loader)
{
    for (size_t i = 0; i < loader->count; i++)
        if (!load_library(loader, &loader->libraries[i]))
            return FAILED;
    return LOADED;
}

bool acs_wrap_load(acs_wrap_loader *loader, const char **why)
{
    /* Acquire: pairs with the release below. A state seen implies the function pointers, or `why`. */
    int state = atomic_load_explicit(&loader->state, memory_order_acquire);

    if (state == NOT_TRIED) {
        (void)pthread_mutex_lock(&g_lock); /* cannot fail: the mutex is valid and not held by this thread */
        state = atomic_load_explicit(&loader->state, memory_order_relaxed); /* relaxed: written under the lock */
        if (state == NOT_TRIED) {
            state = load_all(loader);
            atomic_store_explicit(&loader->state, state, memory_order_release); /* see above */
        }
        (void)pthread_mutex_unlock(&g_lock);
    }
    *why = loader->why;
    return state == LOADED;
}

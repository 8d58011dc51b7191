/*
 * The table of declared footprints (declared.h): acs_declare writes it under a lock, launches read it without one. An
 * entry, once made, stays until the process ends, so that a reader may hold it. Knows no context, so that static
 * constructors may declare. Never calls the program's code.
 */
#include "api/declared.h"

#include "api/identity.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { DECLARED_FIRST = 64 /* cells of the first table; power of two */ };

typedef struct entry {
    acs_identity of; /* constant, as the next one */
    uint64_t hash;
    _Atomic(uint32_t) turn; /* odd: the next two are being written */
    _Atomic(acs_footprint) footprint; /* NULL: none is declared */
    _Atomic(const void *) user;
    /* Of a function: entry of the driver's name for it; the entry itself: there is no name; NULL: not asked yet. */
    _Atomic(struct entry *) named;
    char text[]; /* the name */
} entry;

typedef _Atomic(entry *) cell;

typedef struct table {
    uint32_t mask, used;
    struct table *older; /* tables stay, for readers that hold them */
    cell cells[];
} table;

/*
 * A  insert_locked, grow_locked: fill an entry or a table, publish it with release; find_entry: load acquire. Broken: a
 *    reader sees an entry without its name, or empty cells that are full.
 * B  write_locked: make the turn odd, store the pair with release, make the turn even with release; read: load the turn
 *    and the pair with acquire, then the turn again. Broken: a reader gets the function of one declaration and the user
 *    pointer of another.
 */
static _Atomic(table *) g_table; /* NULL: nothing was declared yet */
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards writes of the table; taken after all other locks */
static pthread_once_t g_fork_once = PTHREAD_ONCE_INIT;

static void lock(void)
{
    pthread_mutex_lock(&g_mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&g_mutex);
}

static void unlock_in_child(void)
{
    acs_backend_unloading = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
    unlock();
}

/* A child must not get a table that is half changed, nor a lock that nobody holds there. */
static void watch_forks(void)
{
    (void)pthread_atfork(lock, unlock, unlock_in_child);
}

/* ------------------------------------------------------------------------------------------------------------ table */

/* Parts of mangled names that nvcc makes unique to a file, from its path: of anonymous namespaces and static functions. */
static const char *const g_file_parts[] = {"_GLOBAL__N__", "_INTERNAL_"};

/* Where the next such part begins, its length in decimals before it; NULL: there is none. *end: behind it. */
static const char *file_part(const char *name, const char **end)
{
    for (const char *c = name; *c; c++) {
        char *text;
        if (*c < '1' || *c > '9')
            continue;
        const unsigned long bytes = strtoul(c, &text, 10);
        for (size_t i = 0; i < sizeof g_file_parts / sizeof *g_file_parts; i++)
            if (strncmp(text, g_file_parts[i], strlen(g_file_parts[i])) == 0 && strnlen(text, bytes) == bytes) {
                *end = text + bytes;
                return c;
            }
        c = text - 1;
    }
    return NULL;
}

/* With -rdc=true the part comes before a static function's name: "__nv_static_", its length, itself, each with "_". */
static const char *behind_static_part(const char *name)
{
    static const char head[] = "__nv_static_";
    char *text;
    if (strncmp(name, head, sizeof head - 1) != 0)
        return name;
    const unsigned long bytes = strtoul(name + sizeof head - 1, &text, 10);
    return *text == '_' && strnlen(text, bytes + 2) == bytes + 2 && text[bytes + 1] == '_' ? text + bytes + 2 : name;
}

/* A copy of a name without these parts, to free; NULL: there is no memory. Other names stay as they are. */
static char *plain_name(const char *full_name)
{
    const char *name = behind_static_part(full_name);
    char *copy = malloc(strlen(name) + 1), *to = copy;
    const char *part, *end;
    while (copy && (part = file_part(name, &end)) != NULL) {
        memcpy(to, name, (size_t)(part - name));
        to += part - name;
        name = end;
    }
    if (copy)
        strcpy(to, name);
    return copy;
}

static bool is_same(const entry *e, acs_identity of, uint64_t hash)
{
    return e->hash == hash && acs_identity_is(of, e->of);
}

/* The cell that holds the entry, or the empty cell where it belongs. A table is never full. */
static cell *cell_of(table *t, acs_identity of, uint64_t hash)
{
    for (uint64_t i = hash;; i++) {
        cell *at = &t->cells[i & t->mask];
        const entry *e = atomic_load_explicit(at, memory_order_acquire); /* A */
        if (!e || is_same(e, of, hash))
            return at;
    }
}

static entry *find_entry(acs_identity of)
{
    table *t = atomic_load_explicit(&g_table, memory_order_acquire); /* A */
    return t ? atomic_load_explicit(cell_of(t, of, acs_identity_hash(of)), memory_order_acquire) /* A */ : NULL;
}

/* Make the first table, or one twice as large. False: no memory. */
static bool grow_locked(table *old)
{
    const uint32_t cells = old ? 2 * (old->mask + 1) : DECLARED_FIRST;
    table *t = calloc(1, sizeof *t + cells * sizeof t->cells[0]);
    if (!t)
        return false;
    t->mask = cells - 1;
    t->older = old;
    t->used = old ? old->used : 0;
    for (uint32_t i = 0; old && i <= old->mask; i++) {
        /* Relaxed: cells are written under the lock, which is held. */
        entry *e = atomic_load_explicit(&old->cells[i], memory_order_relaxed);
        if (e)
            atomic_store_explicit(cell_of(t, e->of, e->hash), e, memory_order_relaxed);
    }
    atomic_store_explicit(&g_table, t, memory_order_release); /* A */
    return true;
}

/* The entry of an identity, made if there is none. NULL: no memory. */
static entry *insert_locked(acs_identity of)
{
    const uint64_t hash = acs_identity_hash(of);
    const size_t name_bytes = of.name ? strlen(of.name) + 1 : 0;
    entry *e = find_entry(of);
    /* Relaxed: written under the lock, which is held. */
    table *t = atomic_load_explicit(&g_table, memory_order_relaxed);
    if (e)
        return e;
    if ((!t || 2 * (t->used + 1) > t->mask) && !grow_locked(t)) /* at most half full: probes stay short */
        return NULL;
    t = atomic_load_explicit(&g_table, memory_order_relaxed);
    e = calloc(1, sizeof *e + name_bytes);
    if (!e)
        return NULL;
    if (of.name)
        of.name = memcpy(e->text, of.name, name_bytes);
    e->of = of;
    e->hash = hash;
    t->used++;
    atomic_store_explicit(cell_of(t, of, hash), e, memory_order_release); /* A */
    return e;
}

/* ---------------------------------------------------------------------------------------------------------- declare */

static void write_locked(entry *e, acs_footprint footprint, const void *user)
{
    /* Relaxed: written under the lock, which is held. */
    const uint32_t turn = atomic_load_explicit(&e->turn, memory_order_relaxed);
    atomic_store_explicit(&e->turn, turn + 1, memory_order_relaxed); /* B: the next two release it */
    atomic_store_explicit(&e->footprint, footprint, memory_order_release);
    atomic_store_explicit(&e->user, user, memory_order_release);
    atomic_store_explicit(&e->turn, turn + 2, memory_order_release);
    if (!footprint) /* the address may come to name another kernel */
        atomic_store_explicit(&e->named, NULL, memory_order_release);
}

/* Waits for graphs that are being built: the driver reads the code of their kernels. */
static void forget_handles(void)
{
    (void)pthread_rwlock_wrlock(&acs_backend_unloading);
    atomic_fetch_add_explicit(&acs_backend_unloads, 1, memory_order_relaxed); /* relaxed: no data goes with it */
    (void)pthread_rwlock_unlock(&acs_backend_unloading);
}

acs_status acs_declare(const acs_kernel *kernel, acs_footprint footprint, const void *user)
{
    ACS_TRY(acs_identity_check(kernel, "acs_declare"));
    const bool named = !kernel->function && !kernel->host;
    char *const name = named ? plain_name(kernel->name) : NULL;
    const acs_identity of = named ? acs_identity_by_name(name) : acs_identity_of(kernel);
    (void)pthread_once(&g_fork_once, watch_forks);
    if (!footprint && (kernel->kind == ACS_KERNEL_HANDLE || kernel->kind == ACS_KERNEL_CUFUNCTION))
        forget_handles();
    lock();
    entry *e = named && !name ? NULL : footprint ? insert_locked(of) : find_entry(of);
    if (e)
        write_locked(e, footprint, user);
    unlock();
    free(name);
    return e || !footprint ? ACS_OK : ACS_FAIL(ACS_ERR_MEMORY, 0, "acs_declare: no memory for the declaration");
}

/* ----------------------------------------------------------------------------------------------------------- lookup */

/* Read an entry's declaration. False: it has none, and *declaration stays as it is. */
static bool read(const entry *e, acs_declaration *declaration)
{
    for (;;) {
        const uint32_t before = atomic_load_explicit(&e->turn, memory_order_acquire); /* B */
        const acs_declaration found = {atomic_load_explicit(&e->footprint, memory_order_acquire),
                                       atomic_load_explicit(&e->user, memory_order_acquire)};
        /* Relaxed: the two loads before it acquire. */
        if (before % 2 == 0 && atomic_load_explicit(&e->turn, memory_order_relaxed) == before) {
            if (found.footprint)
                *declaration = found;
            return found.footprint != NULL;
        }
        acs_pause();
    }
}

static bool find_declared(acs_identity of, acs_declaration *declaration)
{
    const entry *e = find_entry(of);
    return e && read(e, declaration);
}

/* Ask the driver for a function's name, and remember the answer. NULL: no memory to remember it. */
static entry *ask_name(acs_backend *backend, const acs_kernel *kernel)
{
    const char *const given = backend->ops->kernel_name(backend, kernel);
    char *const name = given ? plain_name(given) : NULL;
    lock();
    entry *function = insert_locked(acs_identity_at(ACS_BY_FUNCTION, kernel->function));
    entry *named = function && name ? insert_locked(acs_identity_by_name(name)) : function;
    if (named)
        atomic_store_explicit(&function->named, named, memory_order_release); /* A */
    unlock();
    free(name);
    return named;
}

/* The declaration of the name that the driver has for a function. */
static bool find_by_driver(acs_backend *backend, const acs_kernel *kernel, acs_declaration *declaration)
{
    const entry *function = find_entry(acs_identity_at(ACS_BY_FUNCTION, kernel->function));
    const entry *named = function ? atomic_load_explicit(&function->named, memory_order_acquire) /* A */ : NULL;
    if (!named && backend->ops->kernel_name)
        named = ask_name(backend, kernel);
    return named && named->of.kind == ACS_BY_NAME && read(named, declaration);
}

/* The declaration of the name in the launch's acs_kernel. */
static bool find_by_own_name(const char *given, acs_declaration *declaration)
{
    const char *end;
    if (behind_static_part(given) == given && !file_part(given, &end))
        return find_declared(acs_identity_by_name(given), declaration);
    char *const name = plain_name(given);
    const bool found = name && find_declared(acs_identity_by_name(name), declaration);
    free(name);
    return found;
}

bool acs_declared_find(acs_backend *backend, const acs_kernel *kernel, const void *stub, acs_declaration *declaration)
{
    if (!atomic_load_explicit(&g_table, memory_order_relaxed)) /* relaxed: whoever declared before is ordered by that */
        return false;
    if (kernel->function && find_declared(acs_identity_at(ACS_BY_FUNCTION, kernel->function), declaration))
        return true;
    if (stub && find_declared(acs_identity_at(ACS_BY_FUNCTION, stub), declaration))
        return true;
    if (kernel->host && find_declared(acs_identity_at(ACS_BY_HOST, acs_identity_host(kernel)), declaration))
        return true;
    if (kernel->function && find_by_driver(backend, kernel, declaration))
        return true;
    return kernel->name && find_by_own_name(kernel->name, declaration);
}

/*
 * A table in shared memory, guarded and kept alive by locks on its file (see ledger.h). Called when pools grow and
 * shrink, and by groups that wait for memory; each call takes some microseconds. Owns its entry and the mapping. Uses
 * other programs' entries only in ways that cannot harm this one.
 */
#include "devices/ledger_internal.h"

#include "base/lock.h"
#include "base/tuning.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { VERSION = 4 };
#define MAGIC UINT64_C(0x3172656764656c61)   /* "aledger1" */
#define MUTEX_BYTE ((off_t)1 << 40)          /* the locks are on bytes behind the table */
#define ENTRY_BYTE(index) (MUTEX_BYTE + 1 + (off_t)(index))

/*
 * All ledgers of this process, so that a child of fork can close them: a lock lasts as long as any process has its file
 * open.
 */
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static acs_ledger *g_ledgers;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

/* ------------------------------------------------------------------------------------------------------- file locks */

static int lock_byte(int file, off_t byte, short type, int command)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int result;
    do
        result = fcntl(file, command, &lock);
    while (result != 0 && errno == EINTR);
    return result != 0 ? -1 : command == F_OFD_GETLK ? lock.l_type != F_UNLCK : 0;
}

void acs_ledger_leave(acs_ledger *l)
{
    (void)lock_byte(l->file, MUTEX_BYTE, F_UNLCK, F_OFD_SETLK); /* it was taken */
    pthread_mutex_unlock(&l->lock);
}

/*
 * The user may truncate the file, and touching a page that is gone is SIGBUS. A ledger that lost pages stays unusable,
 * since the account was in them. A truncation between this check and the use, within microseconds, still ends the
 * program.
 */
bool acs_ledger_usable(acs_ledger *l)
{
    struct stat is;
    if (fstat(l->file, &is) != 0 || is.st_size < (off_t)sizeof *l->table)
        atomic_store_explicit(&l->cut, true, memory_order_relaxed); /* relaxed: for good, and guards no other data */
    return !atomic_load_explicit(&l->cut, memory_order_relaxed);
}

/* Another program may have made a new table after the file was truncated; this program's entry is not in it. */
static bool confirm_entry(acs_ledger *l)
{
    if (l->own && !acs_ledger_get(&l->own->used))
        atomic_store_explicit(&l->cut, true, memory_order_relaxed); /* relaxed: as in acs_ledger_usable */
    return !atomic_load_explicit(&l->cut, memory_order_relaxed);
}

acs_status acs_ledger_enter(acs_ledger *l)
{
    pthread_mutex_lock(&l->lock);
    if (lock_byte(l->file, MUTEX_BYTE, F_WRLCK, F_OFD_SETLKW) != 0) {
        acs_status status = ACS_FAIL(ACS_ERR_STATE, errno, "the ledger cannot be locked: %s", strerror(errno));
        pthread_mutex_unlock(&l->lock);
        return status;
    }
    if (!l->table || (acs_ledger_usable(l) && confirm_entry(l)))
        return ACS_OK;
    acs_ledger_leave(l);
    return ACS_FAIL(ACS_ERR_STATE, 0, "the ledger cannot be used: its file was truncated");
}

/* Whether a process, this one included, holds the entry. */
static bool is_alive(const acs_ledger *l, uint32_t index)
{
    const acs_ledger_entry *e = &l->table->entries[index];
    return acs_ledger_get(&e->used) && (e == l->own || lock_byte(l->file, ENTRY_BYTE(index), F_WRLCK, F_OFD_GETLK) == 1);
}

/* -------------------------------------------------------------------------------------------------------------- forks */

ACS_HELD_OVER_FORKS(&g_mutex)

/* Contexts and their entries belong to the parent alone; the mapping was not inherited. */
static void in_child(void)
{
    for (acs_ledger *l = g_ledgers; l; l = l->next)
        (void)close(l->file);
    g_ledgers = NULL;
    pthread_mutex_unlock(&g_mutex);
}

static void watch_ledger_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, in_child); /* on failure a child keeps entries alive, which is all */
}

static void ledgers_remove(const acs_ledger *l)
{
    ACS_HOLD_MUTEX(&g_mutex);
    for (acs_ledger **at = &g_ledgers; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
}

/* ------------------------------------------------------------------------------------------------------ open, close */

static acs_status path_of(const char *name, char *path, size_t bytes)
{
    const size_t length = strlen(name);
    if (name[0] != '/' || length < 2 || length >= ACS_LEDGER_NAME_BYTES - 32 || strchr(name + 1, '/'))
        return ACS_FAIL(ACS_ERR_OPTION, 0, "'%.64s' is not the name of a ledger: a slash and up to %d other characters",
                        name, ACS_LEDGER_NAME_BYTES - 34);
    (void)snprintf(path, bytes, "%s-ledger-%d-%lu", name, VERSION, (unsigned long)geteuid());
    return ACS_OK;
}

static acs_status unusable(const char *path, int native, const char *why)
{
    return ACS_FAIL(ACS_ERR_STATE, native, "the ledger %s cannot be used: %s", path, native ? strerror(native) : why);
}

/* Make the table under the lock, if there is none. A table that was begun and not finished is begun again. */
static acs_status make_table(acs_ledger_table *t, const char *path)
{
    if (acs_ledger_get(&t->magic) == 0) {
        t->version = VERSION;
        t->bytes = sizeof *t;
        /* Release: the fields above are stored first, so a program that is killed before this leaves no table. */
        atomic_store_explicit(&t->magic, MAGIC, memory_order_release);
    }
    if (acs_ledger_get(&t->magic) != MAGIC || t->version != VERSION || t->bytes != sizeof *t)
        return unusable(path, 0, "it has another layout, or is damaged");
    return ACS_OK;
}

/* Check that the file is this user's before anything of it is used: another owner could keep its locks. */
static acs_status check_owner(int file, const char *path)
{
    struct stat is;
    if (fstat(file, &is) != 0)
        return unusable(path, errno, NULL);
    if (!S_ISREG(is.st_mode) || is.st_uid != geteuid() || (is.st_mode & 077) != 0)
        return unusable(path, 0, "it is another user's, or others may reach it");
    if ((is.st_mode & 0600) != 0600 && fchmod(file, 0600) != 0) /* made under a umask that shuts its owner out */
        return unusable(path, errno, NULL);
    return ACS_OK;
}

/* Make sure that all pages are there: touching one that the system cannot give would end the program. */
static acs_status fill_file(int file, const char *path)
{
    const off_t bytes = sizeof(acs_ledger_table);
    struct rlimit most;
    struct stat is;
    if (fstat(file, &is) != 0)
        return unusable(path, errno, NULL);
    if (is.st_size < bytes && getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < (rlim_t)bytes)
        return unusable(path, EFBIG, NULL); /* an attempt raises a signal */
    int result;
    do
        result = fallocate(file, 0, 0, bytes);
    while (result != 0 && errno == EINTR);
    if (result != 0 && errno == EOPNOTSUPP)
        result = is.st_size < bytes ? ftruncate(file, bytes) : 0;
    return result == 0 ? ACS_OK : unusable(path, errno, NULL);
}

/* A mapping keeps the file open, too, so a child of fork gets none. */
static void *map_file(int file)
{
    ACS_HOLD_MUTEX(&g_mutex); /* no fork falls between */
    void *at = mmap(NULL, sizeof(acs_ledger_table), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at != MAP_FAILED)
        (void)madvise(at, sizeof(acs_ledger_table), MADV_DONTFORK);
    return at;
}

static acs_status map_table(acs_ledger *l, const char *path)
{
    ACS_TRY(check_owner(l->file, path));
    ACS_TRY(acs_ledger_enter(l));
    acs_status status = fill_file(l->file, path);
    void *at = status == ACS_OK ? map_file(l->file) : MAP_FAILED;
    if (status == ACS_OK && at == MAP_FAILED)
        status = unusable(path, errno, NULL);
    if (status == ACS_OK) {
        l->table = at;
        status = make_table(l->table, path);
    }
    acs_ledger_leave(l);
    return status;
}

/* Open the file and map the table, without an entry yet. */
static acs_status attach(acs_ledger *l, const char *name, int flags)
{
    char path[ACS_LEDGER_NAME_BYTES];
    ACS_TRY(path_of(name, path, sizeof path));
    pthread_once(&g_once, watch_ledger_forks);
    pthread_mutex_lock(&g_mutex); /* no fork falls between */
    l->file = shm_open(path, flags | O_RDWR | O_CLOEXEC, 0600);
    const int error = errno;
    if (l->file >= 0) {
        l->next = g_ledgers;
        g_ledgers = l;
    }
    pthread_mutex_unlock(&g_mutex);
    if (l->file < 0)
        return error == ENOENT && !(flags & O_CREAT) ? ACS_NOT_READY : unusable(path, error, NULL);
    return map_table(l, path);
}

static void detach(acs_ledger *l)
{
    if (l->table)
        (void)munmap(l->table, sizeof *l->table);
    if (l->file >= 0) {
        ledgers_remove(l);
        (void)close(l->file); /* releases all its locks */
    }
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->waiting);
}

static void init_ledger(acs_ledger *l)
{
    *l = (acs_ledger){.file = -1};
    pthread_mutex_init(&l->lock, NULL); /* cannot fail with these attributes */
    pthread_mutex_init(&l->waiting, NULL);
}

/* The process's own name, as the system knows it. */
static void program_name(char name[ACS_LEDGER_PROGRAM_BYTES])
{
    FILE *file = fopen("/proc/self/comm", "re");
    if (!file || !fgets(name, ACS_LEDGER_PROGRAM_BYTES, file))
        memcpy(name, "?", 2);
    name[strcspn(name, "\n")] = '\0';
    if (file)
        (void)fclose(file);
}

static acs_status take_entry_locked(acs_ledger *l)
{
    for (uint32_t i = 0; i < ACS_LEDGER_ENTRIES; i++) {
        acs_ledger_entry *e = &l->table->entries[i];
        if (is_alive(l, i) || lock_byte(l->file, ENTRY_BYTE(i), F_WRLCK, F_OFD_SETLK) != 0)
            continue;
        acs_ledger_set(&e->used, 0);
        acs_ledger_set(&e->reserved, 0);
        acs_ledger_set(&e->obtained, 0);
        acs_ledger_set(&e->waits, 0);
        acs_ledger_set(&e->wanted, 0);
        acs_ledger_set(&e->reclaimable, 0);
        acs_ledger_set(&e->threads, 0);
        acs_ledger_set(&e->registers, 0);
        acs_ledger_set(&e->shared, 0);
        e->pid = getpid();
        (void)snprintf(e->device, sizeof e->device, "%s", l->config.device);
        program_name(e->program);
        acs_ledger_set(&e->used, 1);
        l->own = e;
        return ACS_OK;
    }
    return ACS_FAIL(ACS_ERR_STATE, 0, "all %d entries of the ledger are taken", ACS_LEDGER_ENTRIES);
}

acs_status acs_ledger_open(const acs_ledger_config *config, acs_ledger **ledger)
{
    acs_ledger *l = malloc(sizeof *l);
    if (!l)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the ledger");
    init_ledger(l);
    l->config = *config;
    (void)snprintf(l->device, sizeof l->device, "%s", config->device);
    l->config.device = l->device;
    l->config.name = NULL;
    acs_status status = attach(l, config->name, O_CREAT);
    if (status == ACS_OK && (status = acs_ledger_enter(l)) == ACS_OK) {
        status = take_entry_locked(l);
        acs_ledger_leave(l);
    }
    if (status != ACS_OK) {
        detach(l);
        free(l);
        return status;
    }
    *ledger = l;
    return ACS_OK;
}

void acs_ledger_tell(acs_ledger *l)
{
    if (!acs_ledger_usable(l))
        return; /* waiting programs look by themselves, too */
    /* Release: a waiter that sees the change sees what was given; pairs with changes_seen. */
    atomic_fetch_add_explicit(&l->table->changes, 1, memory_order_release);
    (void)syscall(SYS_futex, &l->table->changes, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void acs_ledger_close(acs_ledger *l)
{
    if (!l)
        return;
    if (acs_ledger_enter(l) == ACS_OK) {
        acs_ledger_set(&l->own->used, 0);
        acs_ledger_leave(l);
    }
    acs_ledger_tell(l);
    detach(l);
    free(l);
}

/* ------------------------------------------------------------------------------------------------------------- room */

/* Entries that wait with an earlier ticket, and were overtaken TUNE_LEDGER_PASSES times. */
typedef struct overtaken_entries {
    const acs_ledger_entry *entries[ACS_LEDGER_ENTRIES];
    uint32_t count;
} overtaken_entries;

static void account_wait(acs_ledger_account *a, const acs_ledger_entry *e, uint64_t ticket, overtaken_entries *often)
{
    const uint64_t wanted = acs_ledger_get(&e->wanted);
    if (!wanted || acs_ledger_get(&e->ticket) >= ticket)
        return;
    if (a->before == 0 || wanted < a->before)
        a->before = wanted;
    if (acs_ledger_get(&e->overtaken) >= TUNE_LEDGER_PASSES)
        often->entries[often->count++] = e;
}

/*
 * Find the first of them that will have room beside what is kept. An entry that waits for memory which is kept depends
 * on what its owner does, so no program waits for that entry.
 */
static void find_due(const acs_ledger *l, acs_ledger_account *a, const overtaken_entries *often)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < often->count; i++) {
        const uint64_t wanted = acs_ledger_get(&often->entries[i]->wanted), its = acs_ledger_get(&often->entries[i]->ticket);
        if (its < first && wanted <= acs_ledger_room_locked(l, a) + a->reclaimable) {
            a->due = wanted;
            a->due_ticket = first = its;
            a->due_backoff = acs_ledger_get(&often->entries[i]->backoff);
        }
    }
}

static acs_ledger_account account_locked(const acs_ledger *l, uint64_t ticket, bool own_waits_too)
{
    acs_ledger_account a = {0};
    overtaken_entries often = {.count = 0};
    for (uint32_t i = 0; i < ACS_LEDGER_ENTRIES; i++) {
        const acs_ledger_entry *e = &l->table->entries[i];
        if (!acs_ledger_get(&e->used) || strncmp(e->device, l->config.device, sizeof e->device) != 0 || !is_alive(l, i))
            continue;
        const uint64_t reserved = acs_ledger_get(&e->reserved), obtained = acs_ledger_get(&e->obtained);
        a.reserved += reserved;
        a.to_come += reserved > obtained ? reserved - obtained : 0;
        const uint64_t reclaimable = acs_ledger_get(&e->reclaimable);
        a.reclaimable += reclaimable < reserved ? reclaimable : reserved;
        if (e != l->own || own_waits_too)
            account_wait(&a, e, ticket, &often);
        if (e == l->own)
            continue;
        a.others.memory += reserved;
        a.others.threads += acs_ledger_get(&e->threads);
        a.others.registers += acs_ledger_get(&e->registers);
        a.others.shared += acs_ledger_get(&e->shared);
        const bool waits = acs_ledger_get(&e->waits) != 0;
        a.somebody_runs |= reserved > 0 && (!waits || acs_ledger_get(&e->busy));
        a.waits_later |= waits && reserved > 0 && acs_ledger_get(&e->ticket) > ticket;
    }
    find_due(l, &a, &often);
    return a;
}

acs_ledger_account acs_ledger_account_locked(const acs_ledger *l, uint64_t ticket)
{
    return account_locked(l, ticket, false);
}

acs_ledger_account acs_ledger_account_all_locked(const acs_ledger *l, uint64_t ticket)
{
    return account_locked(l, ticket, true);
}

static uint64_t room_of(const acs_ledger *l, const acs_ledger_account *a)
{
    const uint64_t room = acs_ledger_less(l->config.total, a->reserved);
    uint64_t left = 0;
    if (!l->config.left || room == 0)
        return room;
    const acs_error before = *acs_error_thread(); /* an error shows when memory is asked for */
    const bool known = l->config.left(l->config.user, l->config.number, &left) == ACS_OK;
    *acs_error_thread() = before;
    const uint64_t given = acs_ledger_less(left, a->to_come);
    return known && given < room ? given : room;
}

uint64_t acs_ledger_room_locked(const acs_ledger *l, acs_ledger_account *a)
{
    if (!a->asked)
        a->room = room_of(l, a);
    a->asked = true;
    return a->room;
}

/* Whether the entry waits for this device with an earlier ticket. */
static bool waits_before(const acs_ledger *l, const acs_ledger_entry *e, uint64_t ticket)
{
    return acs_ledger_get(&e->used) && acs_ledger_get(&e->wanted) && acs_ledger_get(&e->ticket) < ticket &&
           strncmp(e->device, l->config.device, sizeof e->device) == 0;
}

void acs_ledger_count_overtaken_locked(acs_ledger *l, uint64_t ticket)
{
    for (uint32_t i = 0; i < ACS_LEDGER_ENTRIES; i++) {
        acs_ledger_entry *e = &l->table->entries[i];
        if (waits_before(l, e, ticket))
            acs_ledger_set(&e->overtaken, acs_ledger_get(&e->overtaken) + 1);
    }
}

void acs_ledger_reset_overtaken_locked(acs_ledger *l, uint64_t ticket)
{
    for (uint32_t i = 0; i < ACS_LEDGER_ENTRIES; i++) {
        acs_ledger_entry *e = &l->table->entries[i];
        if (!waits_before(l, e, ticket) || acs_ledger_get(&e->overtaken) < TUNE_LEDGER_PASSES)
            continue;
        acs_ledger_set(&e->overtaken, 0);
        acs_ledger_set(&e->backoff, acs_ledger_get(&e->backoff) + 1);
    }
}

acs_status acs_ledger_take(acs_ledger *l, uint64_t bytes)
{
    ACS_TRY(acs_ledger_enter(l));
    acs_ledger_account a = acs_ledger_account_locked(l, UINT64_MAX);
    const uint64_t own = acs_ledger_get(&l->own->reserved);
    const bool room = (own > 0 || !a.due) && acs_ledger_fits_locked(l, &a, bytes);
    if (room && a.before)
        acs_ledger_count_overtaken_locked(l, UINT64_MAX);
    if (room)
        acs_ledger_set(&l->own->reserved, own + bytes);
    acs_ledger_leave(l);
    return room ? ACS_OK : ACS_NOT_READY;
}

acs_status acs_ledger_try_overtake(acs_ledger *l)
{
    ACS_TRY(acs_ledger_enter(l));
    const acs_ledger_account a = acs_ledger_account_all_locked(l, UINT64_MAX);
    if (a.before && !a.due)
        acs_ledger_count_overtaken_locked(l, UINT64_MAX);
    acs_ledger_leave(l);
    return a.due ? ACS_NOT_READY : ACS_OK;
}

void acs_ledger_reclaimable(acs_ledger *l, uint64_t bytes)
{
    if (!acs_ledger_usable(l))
        return;
    /* Its own entry, and one store: a reader sees the old or the new value. */
    acs_ledger_set(&l->own->reclaimable, bytes);
}

void acs_ledger_obtained(acs_ledger *l, uint64_t bytes)
{
    if (acs_ledger_enter(l) != ACS_OK)
        return; /* counts as not given yet until it goes back: others wait longer than they need */
    acs_ledger_set(&l->own->obtained, acs_ledger_get(&l->own->obtained) + bytes);
    acs_ledger_leave(l);
}

void acs_ledger_give(acs_ledger *l, uint64_t bytes, uint64_t obtained)
{
    if (bytes == 0 || acs_ledger_enter(l) != ACS_OK)
        return; /* as in acs_ledger_obtained */
    /* This store comes first: a program that is killed in between has more to come, not less. */
    acs_ledger_set(&l->own->obtained, acs_ledger_less(acs_ledger_get(&l->own->obtained), obtained));
    acs_ledger_set(&l->own->reserved, acs_ledger_less(acs_ledger_get(&l->own->reserved), bytes));
    acs_ledger_leave(l);
    acs_ledger_tell(l);
}

uint64_t acs_ledger_reserved(acs_ledger *l)
{
    return acs_ledger_usable(l) ? acs_ledger_get(&l->own->reserved) : 0;
}

uint64_t acs_ledger_total(const acs_ledger *l)
{
    return l->config.total;
}

/* -------------------------------------------------------------------------------------------------------------- look */

void acs_ledger_runs(acs_ledger *l, const acs_demand *demand)
{
    if (!acs_ledger_usable(l))
        return;
    /* Its own entry; a reader in between sees some old and some new values. */
    acs_ledger_set(&l->own->threads, demand->threads);
    acs_ledger_set(&l->own->registers, demand->registers);
    acs_ledger_set(&l->own->shared, demand->shared);
}

acs_status acs_ledger_look(acs_ledger *l, uint64_t *room, acs_demand *others, bool *awaited)
{
    ACS_TRY(acs_ledger_enter(l));
    acs_ledger_account a = acs_ledger_account_locked(l, UINT64_MAX);
    *room = acs_ledger_room_locked(l, &a);
    *others = a.others;
    *awaited = a.before != 0;
    acs_ledger_leave(l);
    return ACS_OK;
}

static acs_ledger_line line_of(const acs_ledger_entry *e)
{
    acs_ledger_line line = {.pid = e->pid, .reserved = acs_ledger_get(&e->reserved),
                            .obtained = acs_ledger_get(&e->obtained), .wanted = acs_ledger_get(&e->wanted)};
    memcpy(line.device, e->device, sizeof line.device);
    memcpy(line.program, e->program, sizeof line.program);
    line.device[sizeof line.device - 1] = line.program[sizeof line.program - 1] = '\0';
    return line;
}

acs_status acs_ledger_each(const char *name, void (*visit)(void *user, const acs_ledger_line *line), void *user)
{
    acs_ledger l;
    acs_ledger_line lines[ACS_LEDGER_ENTRIES];
    uint32_t count = 0;
    init_ledger(&l);
    acs_status status = attach(&l, name, 0);
    if (status == ACS_OK && (status = acs_ledger_enter(&l)) == ACS_OK) {
        for (uint32_t i = 0; i < ACS_LEDGER_ENTRIES; i++)
            if (is_alive(&l, i))
                lines[count++] = line_of(&l.table->entries[i]);
        acs_ledger_leave(&l);
    }
    detach(&l);
    for (uint32_t i = 0; i < count && status == ACS_OK; i++)
        visit(user, &lines[i]);
    return status;
}

/*
 * A table in shared memory, guarded and kept alive by locks on its file (see ledger.h). Called when pools grow and shrink,
 * and by groups that wait for memory; each call takes some microseconds. Owns its entry and the mapping; trusts of others'
 * entries only what cannot harm.
 */
#include "devices/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { VERSION = 1, ENTRIES = 512, NAP_MS = 20, STUCK_MOST = 10, ALONE_MOST = 100 /* naps */ };
#define MAGIC UINT64_C(0x3172656764656c61)   /* "aledger1" */
#define MUTEX_BYTE ((off_t)1 << 40)          /* the locks are on bytes behind all that is there */
#define ENTRY_BYTE(index) (MUTEX_BYTE + 1 + (off_t)(index))

typedef struct entry {
    _Atomic(uint64_t) used; /* stored last when it is made; without its lock it counts for nothing */
    _Atomic(uint64_t) reserved, obtained;
    _Atomic(uint64_t) wanted; /* stored behind `ticket`; 0: it does not wait */
    _Atomic(uint64_t) ticket, passed;
    _Atomic(uint64_t) busy;   /* of who waits: some of what it has is in use by work that ends */
    int64_t pid;
    char device[ACS_LEDGER_DEVICE_BYTES], program[ACS_LEDGER_PROGRAM_BYTES];
} entry;

typedef struct table {
    _Atomic(uint64_t) magic; /* stored last when the table is made */
    uint64_t version, bytes;
    _Atomic(uint64_t) tickets;
    _Atomic(uint32_t) changes; /* who waits sleeps on it */
    uint32_t unused;
    entry entries[ENTRIES];
} table;

struct acs_ledger {
    acs_ledger_config config; /* the texts copied below, or done with */
    char device[ACS_LEDGER_DEVICE_BYTES];
    int file;
    table *table;
    entry *own;
    pthread_mutex_t lock;    /* threads of this process: the file's locks are one for all of them */
    pthread_mutex_t waiting; /* one thread waits at a time: there is one entry */
    acs_ledger *next;
};

/* All of this process, so that a child of fork can let go of them: a lock lasts as long as somebody has its file open. */
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static acs_ledger *g_ledgers;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

/* All under the file's lock, so their order is that lock's. */
static uint64_t get(const _Atomic(uint64_t) *value)
{
    return atomic_load_explicit((_Atomic(uint64_t) *)(uintptr_t)value, memory_order_relaxed); /* see above */
}

static void set(_Atomic(uint64_t) *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed); /* see above */
}

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

static acs_status enter(acs_ledger *l)
{
    pthread_mutex_lock(&l->lock);
    if (lock_byte(l->file, MUTEX_BYTE, F_WRLCK, F_OFD_SETLKW) == 0)
        return ACS_OK;
    acs_status status = ACS_FAIL(ACS_ERR_STATE, errno, "the ledger cannot be locked: %s", strerror(errno));
    pthread_mutex_unlock(&l->lock);
    return status;
}

static void leave(acs_ledger *l)
{
    (void)lock_byte(l->file, MUTEX_BYTE, F_UNLCK, F_OFD_SETLK); /* was taken */
    pthread_mutex_unlock(&l->lock);
}

/* Whether somebody holds the entry, this process included. */
static bool is_alive(const acs_ledger *l, uint32_t index)
{
    const entry *e = &l->table->entries[index];
    return get(&e->used) && (e == l->own || lock_byte(l->file, ENTRY_BYTE(index), F_WRLCK, F_OFD_GETLK) == 1);
}

/* -------------------------------------------------------------------------------------------------------------- forks */

static void before_fork(void)
{
    pthread_mutex_lock(&g_mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&g_mutex);
}

/* Contexts are the parent's alone, and so are their entries; the mapping was not inherited. */
static void in_child(void)
{
    for (acs_ledger *l = g_ledgers; l; l = l->next)
        (void)close(l->file);
    g_ledgers = NULL;
    pthread_mutex_unlock(&g_mutex);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, in_child); /* without it a child keeps entries alive, no worse */
}

static void ledgers_remove(const acs_ledger *l)
{
    pthread_mutex_lock(&g_mutex);
    for (acs_ledger **at = &g_ledgers; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    pthread_mutex_unlock(&g_mutex);
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

/* Nobody else is in it. A table that was begun and not finished is begun again. */
static acs_status make_table(table *t, const char *path)
{
    if (get(&t->magic) == 0) {
        t->version = VERSION;
        t->bytes = sizeof *t;
        set(&t->magic, MAGIC);
    }
    if (get(&t->magic) != MAGIC || t->version != VERSION || t->bytes != sizeof *t)
        return unusable(path, 0, "it has another layout, or is damaged");
    return ACS_OK;
}

static acs_status check_file(int file, const char *path)
{
    struct stat is;
    if (fstat(file, &is) != 0)
        return unusable(path, errno, NULL);
    if (is.st_uid != geteuid() || (is.st_mode & 077) != 0)
        return unusable(path, 0, "it is another user's, or others may reach it");
    if ((uint64_t)is.st_size < sizeof(table) && ftruncate(file, sizeof(table)) != 0)
        return unusable(path, errno, NULL);
    return ACS_OK;
}

/* A mapping keeps the file open, too, so a child of fork gets none. */
static void *map_file(int file)
{
    pthread_mutex_lock(&g_mutex); /* no fork falls between */
    void *at = mmap(NULL, sizeof(table), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at != MAP_FAILED)
        (void)madvise(at, sizeof(table), MADV_DONTFORK);
    pthread_mutex_unlock(&g_mutex);
    return at;
}

static acs_status map_table(acs_ledger *l, const char *path)
{
    ACS_TRY(enter(l));
    acs_status status = check_file(l->file, path);
    void *at = status == ACS_OK ? map_file(l->file) : MAP_FAILED;
    if (status == ACS_OK && at == MAP_FAILED)
        status = unusable(path, errno, NULL);
    if (status == ACS_OK) {
        l->table = at;
        status = make_table(l->table, path);
    }
    leave(l);
    return status;
}

/* With no entry of its own yet. */
static acs_status attach(acs_ledger *l, const char *name, int flags)
{
    char path[ACS_LEDGER_NAME_BYTES];
    ACS_TRY(path_of(name, path, sizeof path));
    pthread_once(&g_once, watch_forks);
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
        (void)close(l->file); /* gives all its locks up */
    }
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->waiting);
}

static void prepare(acs_ledger *l)
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
    for (uint32_t i = 0; i < ENTRIES; i++) {
        entry *e = &l->table->entries[i];
        if (is_alive(l, i) || lock_byte(l->file, ENTRY_BYTE(i), F_WRLCK, F_OFD_SETLK) != 0)
            continue;
        set(&e->used, 0);
        set(&e->reserved, 0);
        set(&e->obtained, 0);
        set(&e->wanted, 0);
        e->pid = getpid();
        (void)snprintf(e->device, sizeof e->device, "%s", l->config.device);
        program_name(e->program);
        set(&e->used, 1);
        l->own = e;
        return ACS_OK;
    }
    return ACS_FAIL(ACS_ERR_STATE, 0, "all %d entries of the ledger are taken", ENTRIES);
}

acs_status acs_ledger_open(const acs_ledger_config *config, acs_ledger **ledger)
{
    acs_ledger *l = malloc(sizeof *l);
    if (!l)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the ledger");
    prepare(l);
    l->config = *config;
    (void)snprintf(l->device, sizeof l->device, "%s", config->device);
    l->config.device = l->device;
    l->config.name = NULL;
    acs_status status = attach(l, config->name, O_CREAT);
    if (status == ACS_OK && (status = enter(l)) == ACS_OK) {
        status = take_entry_locked(l);
        leave(l);
    }
    if (status != ACS_OK) {
        detach(l);
        free(l);
        return status;
    }
    *ledger = l;
    return ACS_OK;
}

/* Those that wait look again. */
static void tell(acs_ledger *l)
{
    atomic_fetch_add_explicit(&l->table->changes, 1, memory_order_release); /* who sees it sees what was given */
    (void)syscall(SYS_futex, &l->table->changes, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void acs_ledger_close(acs_ledger *l)
{
    if (!l)
        return;
    if (enter(l) == ACS_OK) {
        set(&l->own->used, 0);
        leave(l);
    }
    tell(l);
    detach(l);
    free(l);
}

/* ------------------------------------------------------------------------------------------------------------- room */

/* What the other entries of the device come to. */
typedef struct account {
    uint64_t reserved;   /* by all, with one's own */
    uint64_t to_come;    /* of that, what the device has not given yet */
    uint64_t before;     /* the least of what others wait for that began before; 0: there are none */
    bool passed_enough;  /* one of them was passed as often as may be */
    bool somebody_runs;  /* another has memory, and does not wait or has work under way */
    bool waits_later;    /* another waits that began later */
} account;

static account account_locked(const acs_ledger *l, uint64_t ticket)
{
    account a = {0};
    for (uint32_t i = 0; i < ENTRIES; i++) {
        const entry *e = &l->table->entries[i];
        if (!get(&e->used) || strncmp(e->device, l->config.device, sizeof e->device) != 0 || !is_alive(l, i))
            continue;
        const uint64_t reserved = get(&e->reserved), obtained = get(&e->obtained);
        a.reserved += reserved;
        a.to_come += reserved > obtained ? reserved - obtained : 0;
        if (e == l->own)
            continue;
        const bool waits = get(&e->wanted) != 0;
        a.somebody_runs |= reserved > 0 && (!waits || get(&e->busy));
        const bool before = waits && get(&e->ticket) < ticket;
        if (before && (a.before == 0 || get(&e->wanted) < a.before))
            a.before = get(&e->wanted);
        a.passed_enough |= before && get(&e->passed) >= ACS_LEDGER_PASSES;
        a.waits_later |= waits && reserved > 0 && get(&e->ticket) > ticket;
    }
    return a;
}

/* By the account, and by what the device says: programs that did not join take memory, too. */
static bool fits(const acs_ledger *l, const account *a, uint64_t bytes)
{
    const uint64_t total = l->config.total;
    uint64_t left = 0;
    if (a->reserved > total || bytes > total - a->reserved)
        return false;
    if (!l->config.left)
        return true;
    const acs_error before = *acs_error_thread(); /* that it does not answer shows when memory is asked for */
    const bool known = l->config.left(l->config.user, &left) == ACS_OK;
    *acs_error_thread() = before;
    return !known || (a->to_come <= left && bytes <= left - a->to_come);
}

/* Those that began before, and have no room yet. */
static void pass_locked(acs_ledger *l, uint64_t ticket)
{
    for (uint32_t i = 0; i < ENTRIES; i++) {
        entry *e = &l->table->entries[i];
        if (get(&e->used) && get(&e->wanted) && get(&e->ticket) < ticket &&
            strncmp(e->device, l->config.device, sizeof e->device) == 0)
            set(&e->passed, get(&e->passed) + 1);
    }
}

acs_status acs_ledger_take(acs_ledger *l, uint64_t bytes)
{
    ACS_TRY(enter(l));
    const account a = account_locked(l, UINT64_MAX);
    const uint64_t own = get(&l->own->reserved);
    const bool room = (own > 0 || !a.passed_enough) && fits(l, &a, bytes);
    if (room && a.before)
        pass_locked(l, UINT64_MAX);
    if (room)
        set(&l->own->reserved, own + bytes);
    leave(l);
    return room ? ACS_OK : ACS_NOT_READY;
}

static acs_status refuse(const acs_ledger *l, const account *a, uint64_t bytes, const char *why)
{
    return ACS_FAIL(ACS_ERR_MEMORY, 0,
                    "no %llu bytes more of device %s: it has %llu, the programs in the ledger reserve %llu, this one %llu "
                    "of them; %s", (unsigned long long)bytes, l->config.device,
                    (unsigned long long)l->config.total, (unsigned long long)a->reserved,
                    (unsigned long long)get(&l->own->reserved), why);
}

/* Until others give, or for a while: of who is killed, and of who did not join, nobody tells. */
static bool only_outsiders_can_give(const acs_ledger *l, const account *a, uint64_t bytes)
{
    return a->reserved == get(&l->own->reserved) && bytes <= l->config.total - a->reserved;
}

/* How often in a row it looked as if there was nobody left to give any. What is about to be given shows a little later. */
typedef struct patience {
    uint32_t stuck, alone;
} patience;

/* ACS_NOT_READY: not yet. */
static acs_status try_locked(acs_ledger *l, uint64_t ticket, uint64_t bytes, patience *p)
{
    const account a = account_locked(l, ticket);
    const uint64_t own = get(&l->own->reserved);
    const bool beside_own = own <= l->config.total && bytes <= l->config.total - own;
    if (bytes > l->config.total)
        return refuse(l, &a, bytes, "this cannot fit");
    /* Who holds some is never barred: those that wait for it would wait for ever. */
    const bool in_turn = own > 0 || a.before == 0 || (!a.passed_enough && !fits(l, &a, a.before));
    if (in_turn && fits(l, &a, bytes)) {
        if (a.before)
            pass_locked(l, ticket);
        set(&l->own->reserved, own + bytes);
        return ACS_OK;
    }
    /* Who holds nothing keeps nobody from going on; and of those that do, the last to come gives way. */
    const bool last = own > 0 && a.reserved > own && !a.somebody_runs && !a.waits_later;
    p->stuck = (last || !beside_own) && !get(&l->own->busy) ? p->stuck + 1 : 0;
    if (p->stuck > STUCK_MOST)
        return refuse(l, &a, bytes, beside_own ? "all programs that have some wait for more, and this one began last"
                                               : "this cannot fit beside what it has");
    p->alone = only_outsiders_can_give(l, &a, bytes) && !get(&l->own->busy) ? p->alone + 1 : 0;
    if (p->alone > ALONE_MOST)
        return refuse(l, &a, bytes, "the rest is taken outside of the ledger");
    if (l->config.ended && l->config.ended(l->config.user))
        return ACS_FAIL(ACS_ERR_DEVICE, 0, "the device was lost while a group waited for its memory");
    return ACS_NOT_READY;
}

/* Until something was given since `seen`, or for a while. */
static void nap(acs_ledger *l, uint32_t seen)
{
    const struct timespec while_ = {0, NAP_MS * 1000000L};
    (void)syscall(SYS_futex, &l->table->changes, FUTEX_WAIT, seen, &while_, NULL, 0);
}

static acs_status wait_in_turn(acs_ledger *l, uint64_t bytes)
{
    acs_status status = ACS_NOT_READY;
    uint64_t ticket = 0;
    patience p = {0, 0};
    while (status == ACS_NOT_READY) {
        const bool busy = l->config.busy && l->config.busy(l->config.user);
        const uint32_t seen = atomic_load_explicit(&l->table->changes, memory_order_acquire); /* pairs with tell() */
        acs_status entered = enter(l);
        if (entered != ACS_OK) {
            set(&l->own->wanted, 0); /* its own, and one store */
            return entered;
        }
        if (!ticket) {
            ticket = get(&l->table->tickets) + 1;
            set(&l->table->tickets, ticket);
            set(&l->own->ticket, ticket);
            set(&l->own->passed, 0);
            set(&l->own->wanted, bytes);
        }
        set(&l->own->busy, busy);
        status = try_locked(l, ticket, bytes, &p);
        if (status != ACS_NOT_READY)
            set(&l->own->wanted, 0);
        leave(l);
        if (status == ACS_NOT_READY)
            nap(l, seen);
    }
    tell(l); /* whoever stood behind may go on, or is the last that waits */
    return status;
}

acs_status acs_ledger_wait(acs_ledger *l, uint64_t bytes)
{
    if (bytes == 0)
        return ACS_OK;
    pthread_mutex_lock(&l->waiting);
    acs_status status = wait_in_turn(l, bytes);
    pthread_mutex_unlock(&l->waiting);
    return status;
}

void acs_ledger_obtained(acs_ledger *l, uint64_t bytes)
{
    if (enter(l) != ACS_OK)
        return; /* counts as to come until it goes back: others wait longer than they need */
    set(&l->own->obtained, get(&l->own->obtained) + bytes);
    leave(l);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0; /* nobody's mistake is to become everybody's */
}

void acs_ledger_give(acs_ledger *l, uint64_t bytes, uint64_t obtained)
{
    if (bytes == 0 || enter(l) != ACS_OK)
        return; /* the same */
    /* First: who is killed here has more to come, not less. */
    set(&l->own->obtained, less(get(&l->own->obtained), obtained));
    set(&l->own->reserved, less(get(&l->own->reserved), bytes));
    leave(l);
    tell(l);
}

uint64_t acs_ledger_reserved(acs_ledger *l)
{
    return get(&l->own->reserved);
}

/* -------------------------------------------------------------------------------------------------------------- look */

static acs_ledger_line line_of(const entry *e)
{
    acs_ledger_line line = {.pid = e->pid, .reserved = get(&e->reserved), .obtained = get(&e->obtained),
                            .wanted = get(&e->wanted)};
    memcpy(line.device, e->device, sizeof line.device);
    memcpy(line.program, e->program, sizeof line.program);
    line.device[sizeof line.device - 1] = line.program[sizeof line.program - 1] = '\0';
    return line;
}

acs_status acs_ledger_each(const char *name, void (*visit)(void *user, const acs_ledger_line *line), void *user)
{
    acs_ledger l;
    acs_ledger_line lines[ENTRIES];
    uint32_t count = 0;
    prepare(&l);
    acs_status status = attach(&l, name, 0);
    if (status == ACS_OK && (status = enter(&l)) == ACS_OK) {
        for (uint32_t i = 0; i < ENTRIES; i++)
            if (is_alive(&l, i))
                lines[count++] = line_of(&l.table->entries[i]);
        leave(&l);
    }
    detach(&l);
    for (uint32_t i = 0; i < count && status == ACS_OK; i++)
        visit(user, &lines[i]);
    return status;
}

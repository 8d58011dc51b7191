/*
 * The ledger's table in shared memory, and functions that its two files share: ledger.c keeps the account, ledger_wait.c
 * waits for other programs.
 */
#ifndef ACS_DEVICES_LEDGER_INTERNAL_H
#define ACS_DEVICES_LEDGER_INTERNAL_H

#include "devices/ledger.h"

#include <pthread.h>
#include <stdatomic.h>

enum { ACS_LEDGER_ENTRIES = 512 };

typedef struct acs_ledger_entry {
    _Atomic(uint64_t) used;   /* whether the entry is used; stored last. Without its file lock it does not count */
    _Atomic(uint64_t) reserved, obtained;
    _Atomic(uint64_t) waits;  /* whether its program waits, for this device or another */
    _Atomic(uint64_t) wanted; /* bytes of this device that it waits for; stored after `ticket`; 0: none */
    _Atomic(uint64_t) ticket, overtaken;
    _Atomic(uint64_t) backoff; /* times that others let it go first, and it got nothing */
    _Atomic(uint64_t) busy;   /* of a waiting program: whether work that will end uses some of its memory */
    _Atomic(uint64_t) reclaimable; /* bytes of `reserved` that it does not keep, as it last said */
    _Atomic(uint64_t) threads, registers, shared; /* of its groups that run */
    int64_t pid;
    char device[ACS_LEDGER_DEVICE_BYTES], program[ACS_LEDGER_PROGRAM_BYTES];
} acs_ledger_entry;

typedef struct acs_ledger_table {
    _Atomic(uint64_t) magic; /* stored last when the table is made */
    uint64_t version, bytes;
    _Atomic(uint64_t) tickets;
    _Atomic(uint32_t) changes; /* futex on which waiting programs sleep */
    uint32_t unused;
    acs_ledger_entry entries[ACS_LEDGER_ENTRIES];
} acs_ledger_table;

struct acs_ledger {
    acs_ledger_config config; /* its device is a copy below; its name is used only while opening */
    char device[ACS_LEDGER_DEVICE_BYTES];
    int file;
    acs_ledger_table *table;
    acs_ledger_entry *own;
    atomic_bool cut;         /* whether its file was ever truncated; the table is not touched any more then */
    pthread_mutex_t lock;    /* taken with the file's lock, which is one for all threads of the process */
    pthread_mutex_t waiting; /* held by the one thread that may wait at a time, since there is one entry */
    acs_ledger *next;
};

/* Relaxed: accesses are under the file's lock, or single stores of the entry's owner. */
static inline uint64_t acs_ledger_get(const _Atomic(uint64_t) *value)
{
    return atomic_load_explicit((_Atomic(uint64_t) *)(uintptr_t)value, memory_order_relaxed); /* see above */
}

static inline void acs_ledger_set(_Atomic(uint64_t) *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed); /* see above */
}

static inline uint64_t acs_ledger_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0; /* a mistake of one program must not become one of all */
}

/*
 * Take the lock over all entries, also against threads of this process. ACS_ERR_STATE, also if the file was truncated.
 */
acs_status acs_ledger_enter(acs_ledger *ledger);
void acs_ledger_leave(acs_ledger *ledger);
/* Whether the table may be touched, for reads without the lock. */
bool acs_ledger_usable(acs_ledger *ledger);
/* Wake all programs that wait, to look again. */
void acs_ledger_tell(acs_ledger *ledger);

/* The account of a device: all its entries, as one program sees them. */
typedef struct acs_ledger_account {
    uint64_t reserved;   /* bytes reserved by all, this program included */
    acs_demand others;   /* memory and running groups of other programs */
    uint64_t to_come;    /* bytes of `reserved` that the device has not given yet */
    uint64_t before;     /* least bytes that an entry waits for which began earlier; 0: there is none */
    /*
     * bytes that the first of those waits for which was overtaken TUNE_LEDGER_PASSES times and will have room beside
     * what all keep; it goes before others; 0: there is none
     */
    uint64_t due;
    uint64_t due_ticket, due_backoff; /* ticket of that entry, and its `backoff` */
    uint64_t reclaimable; /* bytes of `reserved` that are not kept */
    uint64_t room;       /* result of acs_ledger_room_locked */
    bool asked;          /* whether `room` is known */
    bool somebody_runs;  /* whether another program has memory, and does not wait or has work under way */
    bool waits_later;    /* whether another program with memory waits that began later */
} acs_ledger_account;

/* The account for a thread that waits with the ticket. Under the lock. */
acs_ledger_account acs_ledger_account_locked(const acs_ledger *ledger, uint64_t ticket);
/* The same, where waits of this program count, too. */
acs_ledger_account acs_ledger_account_all_locked(const acs_ledger *ledger, uint64_t ticket);
/*
 * Bytes that can be taken: by the account, and by what the device says, since programs outside of the ledger take
 * memory, too.
 */
uint64_t acs_ledger_room_locked(const acs_ledger *ledger, acs_ledger_account *account);
static inline bool acs_ledger_fits_locked(const acs_ledger *ledger, acs_ledger_account *account, uint64_t bytes)
{
    return bytes <= acs_ledger_room_locked(ledger, account);
}
/* Count that entries which wait with an earlier ticket were overtaken once more. */
void acs_ledger_count_overtaken_locked(acs_ledger *ledger, uint64_t ticket);
/*
 * Backoff: entries with an earlier ticket that were overtaken TUNE_LEDGER_PASSES times have to be overtaken as often
 * again.
 */
void acs_ledger_reset_overtaken_locked(acs_ledger *ledger, uint64_t ticket);

#endif

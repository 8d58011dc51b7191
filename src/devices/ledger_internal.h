/*
 * The ledger's table in shared memory, and what both of its parts do: ledger.c, which keeps the account, and ledger_wait.c,
 * which waits for others. Private to those two.
 */
#ifndef ACS_DEVICES_LEDGER_INTERNAL_H
#define ACS_DEVICES_LEDGER_INTERNAL_H

#include "devices/ledger.h"

#include <pthread.h>
#include <stdatomic.h>

enum { ACS_LEDGER_ENTRIES = 512 };

typedef struct acs_ledger_entry {
    _Atomic(uint64_t) used;   /* stored last when it is made; without its lock it counts for nothing */
    _Atomic(uint64_t) reserved, obtained;
    _Atomic(uint64_t) waits;  /* its program does, for this device or another */
    _Atomic(uint64_t) wanted; /* of this one; stored behind `ticket`; 0: none */
    _Atomic(uint64_t) ticket, overtaken;
    _Atomic(uint64_t) backoff; /* how often others let it go first and it got nothing */
    _Atomic(uint64_t) busy;   /* of a program that waits: some of what it has is in use by work that ends */
    _Atomic(uint64_t) reclaimable; /* bytes of what is reserved that it does not keep, as it said last */
    _Atomic(uint64_t) threads, registers, shared; /* of its groups that run */
    int64_t pid;
    char device[ACS_LEDGER_DEVICE_BYTES], program[ACS_LEDGER_PROGRAM_BYTES];
} acs_ledger_entry;

typedef struct acs_ledger_table {
    _Atomic(uint64_t) magic; /* stored last when the table is made */
    uint64_t version, bytes;
    _Atomic(uint64_t) tickets;
    _Atomic(uint32_t) changes; /* who waits sleeps on it */
    uint32_t unused;
    acs_ledger_entry entries[ACS_LEDGER_ENTRIES];
} acs_ledger_table;

struct acs_ledger {
    acs_ledger_config config; /* the texts copied below, or done with */
    char device[ACS_LEDGER_DEVICE_BYTES];
    int file;
    acs_ledger_table *table;
    acs_ledger_entry *own;
    atomic_bool cut;         /* its file was truncated once: the table is not touched any more */
    pthread_mutex_t lock;    /* threads of this process: the file's locks are one for all of them */
    pthread_mutex_t waiting; /* one thread waits at a time: there is one acs_ledger_entry */
    acs_ledger *next;
};

/* All under the file's lock, so their order is that lock's. */
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
    return a > b ? a - b : 0; /* nobody's mistake is to become everybody's */
}

/* The lock over all entries, which threads of this process take, too. ACS_ERR_STATE, also where the file was truncated. */
acs_status acs_ledger_enter(acs_ledger *ledger);
void acs_ledger_leave(acs_ledger *ledger);
/* Whether the table may be touched, for what is read without the lock. */
bool acs_ledger_usable(acs_ledger *ledger);
/* Those that wait look again. */
void acs_ledger_tell(acs_ledger *ledger);

/* What the other entries of the device come to. */
typedef struct acs_ledger_account {
    uint64_t reserved;   /* by all, with one's own */
    acs_demand others;   /* what their groups take */
    uint64_t to_come;    /* of that, what the device has not given yet */
    uint64_t before;     /* the least of what others wait for that began before; 0: there are none */
    uint64_t due;        /* what the first of them waits for that was passed as often as may be, and will have room beside
                            what all keep: it goes before others; 0: there is none */
    uint64_t due_ticket, due_backoff; /* of that one */
    uint64_t reclaimable; /* of what is reserved, what is not kept */
    uint64_t room;       /* acs_ledger_room_locked, */
    bool asked;          /* once it was asked for */
    bool somebody_runs;  /* another has memory, and does not wait or has work under way */
    bool waits_later;    /* another waits that began later */
} acs_ledger_account;

/* Under that lock. */
acs_ledger_account acs_ledger_account_locked(const acs_ledger *ledger, uint64_t ticket);
/* The same with threads of this program among those that wait. */
acs_ledger_account acs_ledger_account_all_locked(const acs_ledger *ledger, uint64_t ticket);
/* By the account, and by what the device says: programs that did not join take memory, too. */
uint64_t acs_ledger_room_locked(const acs_ledger *ledger, acs_ledger_account *account);
static inline bool acs_ledger_fits_locked(const acs_ledger *ledger, acs_ledger_account *account, uint64_t bytes)
{
    return bytes <= acs_ledger_room_locked(ledger, account);
}
/* Those that began before, and have no room yet, were passed once more. */
void acs_ledger_count_overtaken_locked(acs_ledger *ledger, uint64_t ticket);
/* Those of them that were passed as often as may be have to be passed as often again. */
void acs_ledger_reset_overtaken_locked(acs_ledger *ledger, uint64_t ticket);

#endif

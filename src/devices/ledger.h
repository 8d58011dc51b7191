/*
 * The ledger: an account of the memory of each device that a user's programs take. Programs that joined it cannot run
 * each other out of memory. It is a file of shared memory (POSIX), one for each name and user, readable and writable by
 * that user alone. It outlives every program, and any program may be killed at any instant:
 *
 * - Locks on bytes of the file (open file description locks), one for each entry, tell which programs are alive: the
 *   system releases them with the process, in whatever container it ran. Process ids are there for people to read.
 * - One more such lock is the mutex over all entries. (The system releases it with the process, too. A robust mutex does
 *   the same, but its layout belongs to one C library, and programs here may have several.)
 * - No sum is stored, and a change is one store of eight bytes, so a change that was cut short leaves a valid account.
 *   An entry whose lock no process holds is free.
 *
 * HuntKTm's task scheduler (section 5.3) keeps such an account in a server; here there is no server.
 */
#ifndef ACS_DEVICES_LEDGER_H
#define ACS_DEVICES_LEDGER_H

#include "devices/capacity.h"

enum { ACS_LEDGER_NAME_BYTES = 64, ACS_LEDGER_DEVICE_BYTES = 64, ACS_LEDGER_PROGRAM_BYTES = 32 };

typedef struct acs_ledger acs_ledger;

/* How to join. The texts are copied. */
typedef struct acs_ledger_config {
    const char *name;    /* name such as "/acs"; the file has this name, the layout's version and the user */
    const char *device;  /* id of the device, the same in all programs: a UUID */
    uint64_t total;      /* bytes that the device has */
    void *user;
    uint32_t number;     /* for `left`: the program's own number of the device */
    /* Ask the device how many bytes it has left, whoever took the others; NULL: not known. ACS_ERR_DEVICE. */
    acs_status (*left)(void *user, uint32_t number, uint64_t *bytes);
    /*
     * Called repeatedly while a thread waits, under no lock: give back what is not in use. Returns whether work that
     * will end uses some of it; NULL: none ever does.
     */
    bool (*give_back)(void *user);
    bool (*ended)(void *user); /* whether no wait is worthwhile any more; NULL: never */
} acs_ledger_config;

/* An entry of the ledger, for people. */
typedef struct acs_ledger_line {
    char device[ACS_LEDGER_DEVICE_BYTES], program[ACS_LEDGER_PROGRAM_BYTES];
    int64_t pid;       /* process id in its own container */
    uint64_t reserved; /* bytes that it may take */
    uint64_t obtained; /* bytes of those that the device gave */
    uint64_t wanted;   /* further bytes that it waits for; 0: it does not wait */
} acs_ledger_line;

/*
 * Join, with an entry for this program and device. ACS_ERR_OPTION: not a name. ACS_ERR_STATE through ACS_FAIL: the file
 * cannot be used, and why (another user's, another layout, damaged), or all entries are taken.
 */
acs_status acs_ledger_open(const acs_ledger_config *config, acs_ledger **ledger);
/* Leave. NULL is allowed. */
void acs_ledger_close(acs_ledger *ledger);

/* From any thread: */
/*
 * Take bytes if they are there. A program without memory comes behind those that were overtaken too often and will have
 * room beside what all keep. ACS_NOT_READY, no error: they are not there. ACS_ERR_STATE: the ledger cannot be locked.
 */
acs_status acs_ledger_take(acs_ledger *ledger, uint64_t bytes);
/*
 * The same, but wait until they are there, in the order in which entries began to wait. A later one may overtake where
 * only it has room, TUNE_LEDGER_PASSES times. An entry that will have no room beside what all keep
 * (acs_ledger_reclaimable) holds nobody up.
 *
 * ACS_ERR_MEMORY through ACS_FAIL: more than the device has, or has beside this program's memory; or every program with
 * memory of the device waits, and this one began last; or for TUNE_LEDGER_ALONE_MS only programs outside of the ledger
 * could have given it. ACS_ERR_DEVICE: `ended` says so. ACS_ERR_STATE as above.
 */
acs_status acs_ledger_wait(acs_ledger *ledger, uint64_t bytes);
/*
 * The same on whichever of some devices has them first: *which. `ledgers` are all of a program's entries, always in the
 * same order; `asked` has a bit for each that will do. Memory of the other devices is not given back meanwhile, either.
 * Refused, as above, once none of those asked will ever have the bytes.
 */
acs_status acs_ledger_wait_any(acs_ledger *const *ledgers, uint32_t count, uint32_t asked, uint64_t bytes, uint32_t *which);
/*
 * This program is about to use its memory again: those that wait are overtaken once more. ACS_NOT_READY: the first of
 * them that was overtaken often enough will have room if all give back what they do not keep. So this program should do
 * that (acs_ledger_give_way). ACS_ERR_STATE as above.
 */
acs_status acs_ledger_try_overtake(acs_ledger *ledger);
/*
 * Wait until all entries that were overtaken too often have what they wait for, or will not have room after all; entries
 * that began later do not count.
 *
 * Patience is limited: it ends if for TUNE_LEDGER_PATIENCE_MS the first of them stays the same and the reserved bytes do
 * not fall. Then they have to be overtaken as often again, and the next time the limit doubles. The same holds in
 * acs_ledger_wait. Meanwhile `give_back` is called repeatedly. ACS_ERR_DEVICE: `ended` says so; ACS_ERR_STATE as above.
 */
acs_status acs_ledger_give_way(acs_ledger *ledger);
/* Set that patience in milliseconds; for tests, before any wait. */
void acs_ledger_patience(uint64_t ms);
/*
 * Tell how many of its bytes the program does not keep: they lie idle, or work that will end uses them. The program may
 * free the others.
 */
void acs_ledger_reclaimable(acs_ledger *ledger, uint64_t bytes);
/* Note that the device gave `bytes` of what was taken. */
void acs_ledger_obtained(acs_ledger *ledger, uint64_t bytes);
/* Give bytes back to the ledger; the device had given `obtained` of them, and has them back. */
void acs_ledger_give(acs_ledger *ledger, uint64_t bytes, uint64_t obtained);
/* Bytes that this program has reserved. */
uint64_t acs_ledger_reserved(acs_ledger *ledger);
/* Bytes that the device has for all programs, as this program was told. */
uint64_t acs_ledger_total(const acs_ledger *ledger);

/*
 * Tell other programs what this program's running groups take on the device (HuntKTm's Algorithm 1 over programs);
 * `memory` and `queues` are not told. One thread at a time.
 */
void acs_ledger_runs(acs_ledger *ledger, const acs_demand *demand);
/*
 * Look at the device: *room is bytes that could be taken, *others what other programs' groups take, with `memory` what
 * they have reserved; *awaited tells whether others wait for it. ACS_ERR_STATE: it cannot be locked.
 */
acs_status acs_ledger_look(acs_ledger *ledger, uint64_t *room, acs_demand *others, bool *awaited);
/* Sleep until a program gives or takes, or for a few milliseconds. */
void acs_ledger_nap(acs_ledger *ledger);

/*
 * Call `visit` for each entry of a living program. ACS_NOT_READY: there is no such ledger. Otherwise as acs_ledger_open.
 */
acs_status acs_ledger_each(const char *name, void (*visit)(void *user, const acs_ledger_line *line), void *user);

#endif

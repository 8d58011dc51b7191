/*
 * The ledger: how much of each device's memory the programs of a user take that joined it, so that they cannot run each
 * other out of memory. A file of shared memory (POSIX), one for each name and user, readable and writable by that user
 * alone. It outlives every program, and any of them may be killed at any instant:
 *
 * - Who is alive is told by locks on bytes of the file (open file description locks), one for each entry, which the system
 *   gives up with the process, in whatever container it ran; process ids are there for people to read.
 * - One more such lock is the mutex over all entries. (The system gives that up, too, with whatever was done so far; a
 *   robust mutex does the same, but its layout belongs to one C library, and programs here may have several.)
 * - No sum is stored, and a change is one store of eight bytes, so that whatever was done so far is right. An entry whose
 *   lock nobody holds is nobody's.
 *
 * HuntKTm's task scheduler (section 5.3) keeps such an account in a server of its own; here there is no server.
 */
#ifndef ACS_DEVICES_LEDGER_H
#define ACS_DEVICES_LEDGER_H

#include "devices/capacity.h"

enum { ACS_LEDGER_NAME_BYTES = 64, ACS_LEDGER_DEVICE_BYTES = 64, ACS_LEDGER_PROGRAM_BYTES = 32 };

typedef struct acs_ledger acs_ledger;

/* The texts are copied. */
typedef struct acs_ledger_config {
    const char *name;    /* "/acs": the file is this, the layout's version and the user */
    const char *device;  /* the same for all programs that use it: a UUID */
    uint64_t total;      /* bytes that the device has */
    void *user;
    uint32_t number;     /* for `left`: the program's own name of the device */
    /* Bytes that the device has left, by whoever they were taken; NULL: not known. ACS_ERR_DEVICE. */
    acs_status (*left)(void *user, uint32_t number, uint64_t *bytes);
    /*
     * While one waits, again and again, under no lock: give back what is not in use. Whether some of it is in use by work
     * that will end; NULL: none ever is.
     */
    bool (*give_back)(void *user);
    bool (*ended)(void *user); /* nothing is worth waiting for any more; NULL: never */
} acs_ledger_config;

/* An entry of the ledger, for people. */
typedef struct acs_ledger_line {
    char device[ACS_LEDGER_DEVICE_BYTES], program[ACS_LEDGER_PROGRAM_BYTES];
    int64_t pid;       /* in its own container */
    uint64_t reserved; /* bytes that it may take */
    uint64_t obtained; /* bytes of them that it has from the device */
    uint64_t wanted;   /* bytes more for which it waits; 0: it does not */
} acs_ledger_line;

/*
 * Join, with an entry of one's own. ACS_ERR_OPTION: not a name; ACS_ERR_STATE through ACS_FAIL: the file cannot be used, why
 * (another user's, another layout, damaged), or all entries are taken.
 */
acs_status acs_ledger_open(const acs_ledger_config *config, acs_ledger **ledger);
/* The entry ends. NULL is allowed. */
void acs_ledger_close(acs_ledger *ledger);

/* Any thread. */
/*
 * Take so many bytes more, if they are there: who holds nothing is behind those that were passed too often and will have
 * room beside what all keep. ACS_NOT_READY, no error: they are not. ACS_ERR_STATE: it cannot be locked.
 */
acs_status acs_ledger_take(acs_ledger *ledger, uint64_t bytes);
/*
 * The same, but wait until they are there, in the order in which entries began to wait, but that later ones may pass by
 * where there is room for them alone, TUNE_LEDGER_PASSES times; nobody is held up by one that will have no room beside
 * what all keep (acs_ledger_reclaimable). ACS_ERR_MEMORY through ACS_FAIL: more than the device has, or
 * than it has beside what this one has; or every program that has memory of the device waits for more, and this one began
 * last; or for two seconds only programs outside the ledger could have given it. ACS_ERR_DEVICE: `ended` says so.
 * ACS_ERR_STATE as above.
 */
acs_status acs_ledger_wait(acs_ledger *ledger, uint64_t bytes);
/*
 * The same on whichever of some devices has them first: *which tells. `ledgers` are all of a program's entries, always
 * in the same order, `asked` has a bit for each that will do: what it has of the others is not given back meanwhile,
 * either. Refused, as above, once none of those asked will ever have the bytes.
 */
acs_status acs_ledger_wait_any(acs_ledger *const *ledgers, uint32_t count, uint32_t asked, uint64_t bytes, uint32_t *which);
/*
 * This one is about to use memory again that it has: those that wait are passed once more. ACS_NOT_READY: the first of
 * them that was passed often enough will have room if all give back what they do not keep, so this one is to do that
 * (acs_ledger_give_way). ACS_ERR_STATE as above.
 */
acs_status acs_ledger_try_overtake(acs_ledger *ledger);
/*
 * Wait until none is left of those that began before: each has what it waits for, or will not have room after all. Where
 * two seconds go by in which the first of them is the same, and no less is reserved than ever since, they have to be
 * passed as often again; the next time it is four seconds, and so on. So it is for those in acs_ledger_wait that have to
 * let them go first. Meanwhile `busy` is called again and again. ACS_ERR_DEVICE: `ended` says so; ACS_ERR_STATE as above.
 */
acs_status acs_ledger_give_way(acs_ledger *ledger);
/* Instead of two seconds; for tests, before anybody waits. */
void acs_ledger_patience(uint64_t ms);
/* So much of what it has it does not keep: that lies idle, or work has it that will end. The rest its program may free. */
void acs_ledger_reclaimable(acs_ledger *ledger, uint64_t bytes);
/* Of what was taken, so many bytes came from the device. */
void acs_ledger_obtained(acs_ledger *ledger, uint64_t bytes);
/* So many bytes are not needed any more; `obtained` of them had come from the device, and went back there. */
void acs_ledger_give(acs_ledger *ledger, uint64_t bytes, uint64_t obtained);
/* How much it has reserved. */
uint64_t acs_ledger_reserved(acs_ledger *ledger);
/* What the device has for all programs, as they were told. */
uint64_t acs_ledger_total(const acs_ledger *ledger);

/*
 * What its groups take that run there now, for others to see (HuntKTm's Algorithm 1 over programs): `memory` and `queues`
 * are not told. One thread at a time.
 */
void acs_ledger_runs(acs_ledger *ledger, const acs_demand *demand);
/*
 * What there is just now: bytes that could be taken, in *room; what others' groups take, in *others, whose `memory` is what
 * they have reserved; whether others wait for the device. ACS_ERR_STATE: it cannot be locked.
 */
acs_status acs_ledger_look(acs_ledger *ledger, uint64_t *room, acs_demand *others, bool *awaited);
/* Until somebody gives or takes, or a few milliseconds. */
void acs_ledger_nap(acs_ledger *ledger);

/* Call `visit` for each entry that somebody holds. ACS_NOT_READY: there is no such ledger. As acs_ledger_open. */
acs_status acs_ledger_each(const char *name, void (*visit)(void *user, const acs_ledger_line *line), void *user);

#endif

/*
 * Mutexes with a rank. Take them in increasing rank; builds with ACS_ASSERTIONS abort on a reversal, naming both ranks.
 * No lock behind CAPTURE is held across a call of a backend that can block, or of user code. The plain
 * mutexes of the default context and of the registry of contexts are taken before all of these.
 */
#ifndef ACS_LOCK_H
#define ACS_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum acs_rank {
    ACS_RANK_REGISTRY = 1, /* list of contexts, default context */
    ACS_RANK_ORDER,        /* program order of one context, where ops are looked at or marked; held while they run */
    ACS_RANK_BLOCKS,       /* a context's relocatable blocks; held while an op that names one is queued */
    ACS_RANK_CAPTURE,      /* a context's captures; held while nodes are added and library calls run for them */
    ACS_RANK_CORE,         /* window and scheduler of one context */
    ACS_RANK_SLEEP,        /* a context's eventcounts */
    ACS_RANK_BACKEND,      /* inside a backend */
    ACS_RANK_POOL,         /* pools of records, events and memory */
    ACS_RANK_LOG           /* the log; no lock is taken under it */
};

typedef struct acs_lock {
    pthread_mutex_t mutex;
    int rank;
    bool recursive;
} acs_lock;

/* 0, or an errno. */
int acs_lock_init(acs_lock *lock, int rank);
/* A lock that its holder may take again, whatever it took since. No thread holds two such locks of one rank. */
int acs_lock_init_recursive(acs_lock *lock, int rank);
void acs_lock_fini(acs_lock *lock);
void acs_lock_acquire(acs_lock *lock);
bool acs_lock_try(acs_lock *lock);
void acs_lock_release(acs_lock *lock);

/* Hold the lock from here to the end of the block, in whichever way that is left. _MUTEX: one without a rank. */
#define ACS_HOLD(lock) __attribute__((cleanup(acs_hold_end), unused)) acs_lock *acs_held = acs_hold_begin(lock)
#define ACS_HOLD_MUTEX(mutex)                                                                                          \
    __attribute__((cleanup(acs_hold_mutex_end), unused)) pthread_mutex_t *acs_held_mutex = acs_hold_mutex_begin(mutex)
/* For pthread_atfork: before_fork() and after_fork(), so that a child gets nothing that is half changed. */
#define ACS_HELD_OVER_FORKS(mutex)                                                                                     \
    static void before_fork(void) { pthread_mutex_lock(mutex); }                                                       \
    static void after_fork(void) { pthread_mutex_unlock(mutex); }
static inline acs_lock *acs_hold_begin(acs_lock *lock)
{
    acs_lock_acquire(lock);
    return lock;
}
static inline void acs_hold_end(acs_lock *const *lock)
{
    acs_lock_release(*lock);
}
static inline pthread_mutex_t *acs_hold_mutex_begin(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return mutex;
}
static inline void acs_hold_mutex_end(pthread_mutex_t *const *mutex)
{
    pthread_mutex_unlock(*mutex);
}

/* Condition variable on the monotonic clock. */
typedef struct acs_cond {
    pthread_cond_t cond;
} acs_cond;

int acs_cond_init(acs_cond *cond);
void acs_cond_fini(acs_cond *cond);
void acs_cond_wait(acs_cond *cond, acs_lock *lock);
/* Wait at most `timeout_us` microseconds; false when the time ran out. */
bool acs_cond_wait_us(acs_cond *cond, acs_lock *lock, uint64_t timeout_us);
void acs_cond_signal(acs_cond *cond);
void acs_cond_broadcast(acs_cond *cond);

#endif

/*
 * Mutexes with ranks and condition variables on the monotonic clock, for every module that has threads. Builds with
 * ACS_ASSERTIONS count the locks of each rank that a thread holds, and abort on a reversal, since it can deadlock.
 * Other builds do not check. Never waits on the wall clock.
 */
#include "base/base.h"
#include "base/lock.h"
#include "base/tuning.h"

#include <errno.h>
#include <time.h>

#ifdef ACS_ASSERTIONS

/* Counts, not flags: acs_lock_try may take a second lock of a rank that is held. */
static _Thread_local unsigned tl_held[ACS_RANK_LOG + 1];

static const char *rank_name(int rank)
{
    static const char *const names[] = {
        [ACS_RANK_REGISTRY] = "REGISTRY", [ACS_RANK_ORDER] = "ORDER", [ACS_RANK_BLOCKS] = "BLOCKS",
        [ACS_RANK_CAPTURE] = "CAPTURE",   [ACS_RANK_CORE] = "CORE",   [ACS_RANK_SLEEP] = "SLEEP",
        [ACS_RANK_BACKEND] = "BACKEND",   [ACS_RANK_POOL] = "POOL",   [ACS_RANK_LOG] = "LOG",
    };
    return names[rank];
}

static void rank_check(const acs_lock *lock)
{
    if (lock->recursive && tl_held[lock->rank])
        return; /* the thread has it */
    /*
     * Its own rank is refused, too: two locks of one rank have no order, so two threads could take both and deadlock.
     */
    for (int held = lock->rank; held <= ACS_RANK_LOG; held++) {
        if (tl_held[held])
            acs_fatal("lock order: %s taken while %s is held", rank_name(lock->rank), rank_name(held));
    }
}

static void rank_add(const acs_lock *lock)
{
    tl_held[lock->rank]++;
}

static void rank_remove(const acs_lock *lock)
{
    if (tl_held[lock->rank] == 0)
        acs_fatal("lock order: %s released by a thread that does not hold it", rank_name(lock->rank));
    tl_held[lock->rank]--;
}

#else
#define rank_check(lock) ((void)(lock))
#define rank_add(lock) ((void)(lock))
#define rank_remove(lock) ((void)(lock))
#endif

int acs_lock_init(acs_lock *lock, int rank)
{
    if (rank < ACS_RANK_REGISTRY || rank > ACS_RANK_LOG)
        return EINVAL;
    *lock = (acs_lock){.rank = rank};
    return pthread_mutex_init(&lock->mutex, NULL);
}

int acs_lock_init_recursive(acs_lock *lock, int rank)
{
    pthread_mutexattr_t attributes;
    int error = pthread_mutexattr_init(&attributes);
    if (error)
        return error;
    *lock = (acs_lock){.rank = rank, .recursive = true};
    (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE); /* fails only for unknown types */
    error = pthread_mutex_init(&lock->mutex, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    return error;
}

void acs_lock_fini(acs_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

/*
 * Spin for a lock. Locks are held for up to some ten microseconds. Waking a sleeping thread takes about as long, and on
 * a virtual machine several times as long: without spinning, the thread that issues would sleep more than it works.
 * glibc's adaptive mutex spins for too short a time.
 */
static bool spin_for(acs_lock *lock)
{
    for (int i = 0; i < TUNE_LOCK_SPINS; i++) {
        if (pthread_mutex_trylock(&lock->mutex) == 0)
            return true;
        acs_pause();
    }
    return false;
}

void acs_lock_acquire(acs_lock *lock)
{
    rank_check(lock); /* before waiting, since a thread in a deadlock cannot report it */
    if (ACS_UNLIKELY(!spin_for(lock)))
        pthread_mutex_lock(&lock->mutex);
    rank_add(lock);
}

bool acs_lock_try(acs_lock *lock)
{
    /* No check of ranks: a thread that does not wait cannot deadlock. */
    if (pthread_mutex_trylock(&lock->mutex) != 0)
        return false;
    rank_add(lock);
    return true;
}

void acs_lock_release(acs_lock *lock)
{
    rank_remove(lock);
    pthread_mutex_unlock(&lock->mutex);
}

int acs_cond_init(acs_cond *cond)
{
    pthread_condattr_t attributes;
    int rc = pthread_condattr_init(&attributes);
    if (rc != 0)
        return rc;
    rc = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (rc == 0)
        rc = pthread_cond_init(&cond->cond, &attributes);
    pthread_condattr_destroy(&attributes);
    return rc;
}

void acs_cond_fini(acs_cond *cond)
{
    pthread_cond_destroy(&cond->cond);
}

/*
 * May return without a signal, as POSIX allows: callers test their condition in a loop. The thread counts as holder of
 * the lock while it waits, which is harmless, since it takes no other meanwhile.
 */
void acs_cond_wait(acs_cond *cond, acs_lock *lock)
{
    pthread_cond_wait(&cond->cond, &lock->mutex);
}

/* The monotonic time `timeout_us` from now. Even the longest fits: time_t has 63 bits for seconds. */
static struct timespec deadline_after_us(uint64_t timeout_us)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(timeout_us / 1000000);
    at.tv_nsec += (long)(timeout_us % 1000000) * 1000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

bool acs_cond_wait_us(acs_cond *cond, acs_lock *lock, uint64_t timeout_us)
{
    /* Not pthread_cond_clockwait: gcc's thread sanitizer does not know it and would report false races. */
    struct timespec at = deadline_after_us(timeout_us);
    return pthread_cond_timedwait(&cond->cond, &lock->mutex, &at) != ETIMEDOUT;
}

void acs_cond_signal(acs_cond *cond)
{
    pthread_cond_signal(&cond->cond);
}

void acs_cond_broadcast(acs_cond *cond)
{
    pthread_cond_broadcast(&cond->cond);
}

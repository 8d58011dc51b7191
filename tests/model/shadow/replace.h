/*
 * Included before everything else in the sources under test: threads, mutexes and memory of the C library become those of
 * the explorer, and so do the ranked mutexes and condition variables of base/lock.h, whose lock.c is not compiled in.
 */
#ifndef MODEL_REPLACE_H
#define MODEL_REPLACE_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "model.h"

#define MODEL_CALL_(name, type) static model_site model_site_ = {__FILE__, __LINE__, __func__, name, type, -1, -1, 0, 0}
#define pthread_mutex_lock(mutex)                                                                                      \
    __extension__({                                                                                                    \
        MODEL_CALL_(#mutex, MODEL_LOCK);                                                                               \
        model_mutex(&model_site_, MODEL_LOCK, mutex);                                                                  \
        0;                                                                                                             \
    })
#define pthread_mutex_unlock(mutex)                                                                                    \
    __extension__({                                                                                                    \
        MODEL_CALL_(#mutex, MODEL_UNLOCK);                                                                             \
        model_mutex(&model_site_, MODEL_UNLOCK, mutex);                                                                \
        0;                                                                                                             \
    })
#define pthread_create(thread, attributes, function, argument)                                                         \
    __extension__({                                                                                                    \
        MODEL_CALL_(#thread, MODEL_SPAWN);                                                                             \
        *(thread) = (pthread_t)model_spawn(&model_site_, function, argument);                                          \
        0;                                                                                                             \
    })
#define pthread_join(thread, result)                                                                                   \
    __extension__({                                                                                                    \
        MODEL_CALL_(#thread, MODEL_JOIN);                                                                              \
        model_join(&model_site_, (int)(thread));                                                                       \
        0;                                                                                                             \
    })

#define MODEL_MUTEX_(lock, kind)                                                                                       \
    __extension__({                                                                                                    \
        MODEL_CALL_(#lock, kind);                                                                                      \
        model_mutex(&model_site_, kind, &(lock)->mutex);                                                               \
    })
#define acs_lock_acquire(lock) MODEL_MUTEX_(lock, MODEL_LOCK)
#define acs_lock_try(lock) (acs_lock_acquire(lock), true) /* who fails spins and tries again: nothing that need be played */
#define acs_lock_release(lock) MODEL_MUTEX_(lock, MODEL_UNLOCK)
/* Locks that are held to the end of a block. */
static inline void model_hold_end(acs_lock *const *lock)
{
    acs_lock_release(*lock);
}
static inline void model_hold_mutex_end(pthread_mutex_t *const *mutex)
{
    pthread_mutex_unlock(*mutex);
}
#undef ACS_HOLD
#define ACS_HOLD(lock)                                                                                                 \
    acs_lock_acquire(lock);                                                                                            \
    __attribute__((cleanup(model_hold_end), unused)) acs_lock *acs_held = (lock)
#undef ACS_HOLD_MUTEX
#define ACS_HOLD_MUTEX(mutex)                                                                                          \
    pthread_mutex_lock(mutex);                                                                                         \
    __attribute__((cleanup(model_hold_mutex_end), unused)) pthread_mutex_t *acs_held_mutex = (mutex)
#define acs_cond_wait(condition, lock)                                                                                 \
    __extension__({                                                                                                    \
        MODEL_CALL_(#condition, MODEL_WAIT);                                                                           \
        model_wait(&model_site_, condition, &(lock)->mutex);                                                           \
    })
#define acs_cond_wait_us(condition, lock, timeout_us) ((void)(timeout_us), acs_cond_wait(condition, lock), true)
#define acs_cond_broadcast(condition)                                                                                  \
    __extension__({                                                                                                    \
        MODEL_CALL_(#condition, MODEL_WAKE);                                                                           \
        model_wake(&model_site_, condition);                                                                           \
    })

#define atexit(function) ((void)(function), 0) /* the process outlives executions */
#define WATCHES_HEAP /* base/zeros.c takes its arrays there, too */
#define malloc(bytes) model_alloc(bytes, 16)
#define calloc(count, bytes) model_calloc(count, bytes)
#define aligned_alloc(align, bytes) model_alloc(bytes, align)
#define free(block) model_free(block)

#endif

/*
 * Stands before the compiler's <stdatomic.h> for the sources under test: the operations that the library uses, each a
 * visible operation of the explorer (model.h). An operation that is missing here does not compile, rather than escape.
 */
#ifndef MODEL_STDATOMIC_H
#define MODEL_STDATOMIC_H
#pragma GCC system_header

#include "model.h"

typedef enum memory_order {
    memory_order_relaxed = __ATOMIC_RELAXED,
    memory_order_consume = __ATOMIC_CONSUME,
    memory_order_acquire = __ATOMIC_ACQUIRE,
    memory_order_release = __ATOMIC_RELEASE,
    memory_order_acq_rel = __ATOMIC_ACQ_REL,
    memory_order_seq_cst = __ATOMIC_SEQ_CST
} memory_order;

#define MODEL_SITE_(name, type, order, fail)                                                                           \
    static model_site model_site_ = {__FILE__, __LINE__, __func__, name, type, order, fail, 0, 0}
#define MODEL_TYPE_(at) __typeof__((void)0, *(at))

#define atomic_init(at, value) ((void)(*(volatile MODEL_TYPE_(at) *)(at) = (value)))
#define atomic_load_explicit(at, order)                                                                                \
    __extension__({                                                                                                    \
        MODEL_SITE_(#at, MODEL_LOAD, order, -1);                                                                       \
        (MODEL_TYPE_(at))model_load(&model_site_, (at), sizeof *(at), order);                                          \
    })
#define atomic_store_explicit(at, value, order)                                                                        \
    __extension__({                                                                                                    \
        MODEL_SITE_(#at, MODEL_STORE, order, -1);                                                                      \
        MODEL_TYPE_(at) model_value_ = (value);                                                                        \
        model_store(&model_site_, (at), sizeof *(at), (uint64_t)model_value_, order);                                  \
    })
#define MODEL_CHANGE_(at, type, operand, order)                                                                        \
    __extension__({                                                                                                    \
        MODEL_SITE_(#at, type, order, -1);                                                                             \
        (MODEL_TYPE_(at))model_change(&model_site_, (at), sizeof *(at), operand, order);                               \
    })
#define atomic_fetch_add_explicit(at, value, order) MODEL_CHANGE_(at, MODEL_ADD, (uint64_t)(value), order)
#define atomic_fetch_sub_explicit(at, value, order) MODEL_CHANGE_(at, MODEL_ADD, 0 - (uint64_t)(value), order)
#define MODEL_BITS_(at, new, order)                                                                                    \
    __extension__({                                                                                                    \
        MODEL_TYPE_(at) model_old_ = atomic_load_explicit(at, memory_order_relaxed);                                   \
        while (!atomic_compare_exchange_weak_explicit(at, &model_old_, new, order, memory_order_relaxed))              \
            continue;                                                                                                  \
        model_old_;                                                                                                    \
    })
#define atomic_fetch_or_explicit(at, value, order) MODEL_BITS_(at, model_old_ | (value), order)
#define atomic_fetch_and_explicit(at, value, order) MODEL_BITS_(at, model_old_ & (value), order)
#define atomic_exchange_explicit(at, value, order)                                                                     \
    __extension__({                                                                                                    \
        MODEL_TYPE_(at) model_value_ = (value);                                                                        \
        MODEL_CHANGE_(at, MODEL_EXCHANGE, (uint64_t)model_value_, order);                                              \
    })
#define atomic_compare_exchange_strong_explicit(at, expected, desired, order, fail)                                    \
    __extension__({                                                                                                    \
        MODEL_SITE_(#at, MODEL_CAS, order, fail);                                                                      \
        uint64_t model_expected_ = (uint64_t)*(expected);                                                              \
        bool model_done_ = model_compare(&model_site_, (at), sizeof *(at), &model_expected_, (uint64_t)(desired),      \
                                         order, fail);                                                                 \
        if (!model_done_)                                                                                              \
            *(expected) = (MODEL_TYPE_(at))model_expected_;                                                            \
        model_done_;                                                                                                   \
    })
#define atomic_compare_exchange_weak_explicit atomic_compare_exchange_strong_explicit
#define atomic_thread_fence(order)                                                                                     \
    __extension__({                                                                                                    \
        MODEL_SITE_("fence", MODEL_FENCE, order, -1);                                                                  \
        model_fence(&model_site_, order);                                                                              \
    })

#endif

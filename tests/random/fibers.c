/*
 * Producers as coroutines (fibers.h), by ucontext; the sanitizers are told of each switch. Called by runner.c alone.
 * Stacks are made once and used again by each program.
 */
#include "fibers.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#elif __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#endif

#ifdef WITH_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef WITH_TSAN
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#endif

enum { STACK_BYTES = 256 * 1024, YIELDS_IN = 4 };

typedef struct fiber {
    ucontext_t context;
    unsigned char *stack; /* NULL: the thread's own */
    size_t stack_bytes;
    void *sanitizer;      /* what it keeps of the fiber */
    bool alive;
    void *(*main_of)(void *);
    void *argument;
} fiber;

static fiber fibers[FIBERS_MOST], scheduler;
static fiber *running = &scheduler;
static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

static void switch_to(fiber *to)
{
    fiber *from = running;
    running = to;
#ifdef WITH_ASAN
    /* NULL: this stack will not be used again */
    __sanitizer_start_switch_fiber(from->alive || from == &scheduler ? &from->sanitizer : NULL, to->stack, to->stack_bytes);
#endif
#ifdef WITH_TSAN
    __tsan_switch_to_fiber(to->sanitizer, 0);
#endif
    swapcontext(&from->context, &to->context);
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(from->sanitizer, NULL, NULL);
#endif
}

static void enter(void)
{
#ifdef WITH_ASAN
    /* The thread's own stack is known from here on. */
    const void *bottom;
    __sanitizer_finish_switch_fiber(NULL, &bottom, &scheduler.stack_bytes);
    scheduler.stack = (unsigned char *)(uintptr_t)bottom;
#endif
    running->main_of(running->argument);
    running->alive = false;
    switch_to(&scheduler);
}

static void make(fiber *f, void *(*main_of)(void *), void *argument)
{
    if (!f->stack)
        f->stack = malloc(STACK_BYTES);
    if (!f->stack) {
        fprintf(stderr, "test_random: no memory for a producer's stack\n");
        exit(2);
    }
    f->stack_bytes = STACK_BYTES;
    f->main_of = main_of;
    f->argument = argument;
    f->alive = true;
#ifdef WITH_TSAN
    f->sanitizer = __tsan_create_fiber(0);
#endif
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, enter, 0);
}

void fibers_run(uint32_t count, void *(*main_of)(void *), void *const *arguments, uint64_t seed)
{
    state = seed;
#ifdef WITH_TSAN
    scheduler.sanitizer = __tsan_get_current_fiber();
#endif
    for (uint32_t i = 0; i < count; i++)
        make(&fibers[i], main_of, arguments[i]);
    for (uint32_t left = count; left;) {
        fiber *next = &fibers[below(count)];
        if (!next->alive)
            continue;
        switch_to(next);
        left -= !next->alive;
    }
#ifdef WITH_TSAN
    for (uint32_t i = 0; i < count; i++)
        __tsan_destroy_fiber(fibers[i].sanitizer);
#endif
}

void fibers_yield(bool always)
{
    if (running != &scheduler && (always || below(YIELDS_IN) == 0))
        switch_to(&scheduler);
}

/*
 * What the sources under test call without saying so: the functions that -fsanitize=thread compiles in for plain
 * accesses (the sanitizer's own library is not linked), and the parts of src/base that the explorer replaces. Never
 * called by the explorer itself.
 */
#include "base/base.h"
#include "base/lock.h"
#include "internal.h"
#include "window/window.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------- -fsanitize=thread */

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memset(void *to, int value, size_t bytes);
void __tsan_read_range(void *at, size_t bytes);
void __tsan_write_range(void *at, size_t bytes);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void)
{
}

#define PLAIN(name, bytes, write)                                                                                      \
    void __tsan_##name(void *at);                                                                                      \
    void __tsan_##name(void *at)                                                                                       \
    {                                                                                                                  \
        machine_plain(at, bytes, write, __builtin_return_address(0));                                                  \
    }
#define PLAIN_SIZES(prefix)                                                                                            \
    PLAIN(prefix##read1, 1, false)                                                                                     \
    PLAIN(prefix##read2, 2, false)                                                                                     \
    PLAIN(prefix##read4, 4, false)                                                                                     \
    PLAIN(prefix##read8, 8, false)                                                                                     \
    PLAIN(prefix##read16, 16, false)                                                                                   \
    PLAIN(prefix##write1, 1, true)                                                                                     \
    PLAIN(prefix##write2, 2, true)                                                                                     \
    PLAIN(prefix##write4, 4, true)                                                                                     \
    PLAIN(prefix##write8, 8, true)                                                                                     \
    PLAIN(prefix##write16, 16, true)
PLAIN_SIZES()
PLAIN_SIZES(unaligned_)
PLAIN_SIZES(volatile_)
PLAIN_SIZES(unaligned_volatile_)

void __tsan_read_range(void *at, size_t bytes)
{
    machine_plain(at, bytes, false, __builtin_return_address(0));
}

void __tsan_write_range(void *at, size_t bytes)
{
    machine_plain(at, bytes, true, __builtin_return_address(0));
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    machine_plain(from, bytes, false, __builtin_return_address(0));
    machine_plain(to, bytes, true, __builtin_return_address(0));
    return memcpy(to, from, bytes);
}

/* clang 19 calls it; clang 14 and gcc call memmove itself. */
void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    machine_plain(from, bytes, false, __builtin_return_address(0));
    machine_plain(to, bytes, true, __builtin_return_address(0));
    return memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int value, size_t bytes)
{
    machine_plain(to, bytes, true, __builtin_return_address(0));
    return memset(to, value, bytes);
}

/* -------------------------------------------------------------------------------------------------------- src/base */

int acs_lock_init(acs_lock *lock, int rank)
{
    lock->rank = rank;
    return 0;
}

void acs_lock_fini(acs_lock *lock)
{
    (void)lock;
}

int acs_cond_init(acs_cond *cond)
{
    (void)cond;
    return 0;
}

void acs_cond_fini(acs_cond *cond)
{
    (void)cond;
}

acs_status acs_fail(acs_status status, int native, const char *where, const char *format, ...)
{
    (void)native;
    model_fail("%s fails with status %d: %s", where, (int)status, format);
}

void acs_log_origin(uint64_t context, const acs_site *site)
{
    (void)context;
    (void)site;
}

void acs_log(int level, const char *format, ...)
{
    (void)level;
    (void)format;
}

void acs_log_always(int level, const char *format, ...)
{
    (void)level;
    (void)format;
}

void acs_fatal(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    model_fail("%s", text);
}

/* What the window holds is not what is explored here, and to look at all of it takes long. */
bool acs_window_check(acs_window *window)
{
    (void)window;
    return true;
}

/* Time stands still: what sleeps after a while sleeps at once. */
uint64_t acs_clock_ticks(void)
{
    return 0;
}

uint64_t acs_clock_ns(void)
{
    return 1;
}

void acs_pause_briefly(void)
{
    model_fail("a thread spins: the explorer would follow it forever");
}

/*
 * CPUs to which the library's threads are pinned: reads the list of ACS_CPUS at acs_open, and gives each new thread the
 * next one in turn. Owns no state outside the context.
 */
#include "api/threads.h"

#include <errno.h>
#include <stdlib.h>

enum { CPU_MAX = 1024 };

int acs_context_cpu_next(void *user)
{
    acs_context *context = user;
    if (context->cpu_count == 0)
        return -1;
    uint32_t turn = atomic_fetch_add_explicit(&context->cpu_turn, 1, memory_order_relaxed); /* a counter, no data */
    return context->cpus[turn % context->cpu_count];
}

static bool parse_number(const char **text, long *number)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    *number = strtol(*text, &end, 10);
    *text = end;
    return errno == 0 && *number < CPU_MAX;
}

acs_status acs_cpus_parse(acs_context *context, const char *list)
{
    const char *at = list;
    const uint32_t capacity = sizeof context->cpus / sizeof *context->cpus;
    while (*at) {
        long first, last;
        bool good = parse_number(&at, &first);
        last = first;
        if (good && *at == '-') {
            at++;
            good = parse_number(&at, &last) && last >= first;
        }
        if (!good || (*at && *at != ',') || (*at == ',' && !at[1]))
            return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_CPUS: '%s' is not a list such as 0,2,8-11 of CPUs below %d", list,
                            CPU_MAX);
        for (long cpu = first; cpu <= last && context->cpu_count < capacity; cpu++)
            context->cpus[context->cpu_count++] = (int)cpu;
        at += *at == ',';
    }
    return ACS_OK;
}

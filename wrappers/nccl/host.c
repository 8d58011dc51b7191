/*
 * Groups of one rank on the CPU, for the host backends: every operation is a copy, and what a rank sends to itself is
 * received by the group's receives in their order. Called when an op runs. Checks nothing.
 */
#include "nccl/nccl.h"

#include <string.h>

static void copy(void *to, const void *from, const acs_nccl_part *part)
{
    if (part->count && to != from)
        memmove(to, from, (size_t)part->count * acs_nccl_size(part->type));
}

/* The next receive behind part `at`, or `count`. */
static size_t next_receive(const acs_nccl_args *args, size_t at)
{
    while (at < args->count && args->parts[at].kind != ACS_NCCL_RECEIVE)
        at++;
    return at;
}

void acs_nccl_host_run(const acs_nccl_args *args)
{
    size_t receive = next_receive(args, 0);

    for (size_t i = 0; i < args->count; i++) {
        const acs_nccl_part *const part = &args->parts[i];
        if (part->kind == ACS_NCCL_SEND) {
            copy(args->parts[receive].receive, part->send, part);
            receive = next_receive(args, receive + 1);
        } else if (part->kind != ACS_NCCL_RECEIVE)
            copy(part->receive, part->send, part);
    }
}

/*
 * The calls of acs_nccl.h: communicators are made, arguments checked, footprints made from them, and ops queued. Called by
 * programs from any thread. Moves no data: nccl/host.c and nccl/cuda.c do, when the op runs.
 */
#include "acs_nccl.h"
#include "nccl/nccl.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(acs_nccl_args) + ACS_NCCL_PARTS_MAX * sizeof(acs_nccl_part) <= ACS_ARG_BYTES_MAX, "room for parts");

static const char *const g_own_codes[] = {"the communicator is of another device than the op", NULL};
static const acs_wrap_codes g_codes = {"NCCL", "ncclResult_t", acs_nccl_cuda_load, acs_nccl_cuda_text, g_own_codes};

size_t acs_nccl_code_text(int code, char *text, size_t bytes)
{
    return acs_wrap_code_text(&g_codes, code, text, bytes);
}

acs_status acs_nccl_load(void)
{
    static const acs_site site = {"acs_nccl_load", NULL, 0};
    return acs_wrap_load_status(acs_nccl_cuda_load, &site);
}

/* -------------------------------------------------------------------------------------------------------- communicators */

static acs_nccl_comm *comm_new(const acs_site *site)
{
    acs_nccl_comm *const made = calloc(1, sizeof *made);

    if (!made) {
        (void)acs_wrap_fail(ACS_ERR_MEMORY, site, "no memory for a communicator");
        return NULL;
    }
    (void)pthread_mutex_init(&made->lock, NULL); /* cannot fail on Linux without attributes */
    made->ranks = 1;
    return made;
}

acs_status acs_nccl_comm_adopt(void *nccl_comm, acs_nccl_comm **comm)
{
    static const acs_site site = {"acs_nccl_comm_adopt", NULL, 0};
    acs_nccl_comm *made;
    char text[200];
    int code;

    if (!nccl_comm || !comm)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &site, "%s is NULL", comm ? "nccl_comm" : "comm");
    if (acs_wrap_load_status(acs_nccl_cuda_load, &site) != ACS_OK)
        return ACS_ERR_UNSUPPORTED;
    made = comm_new(&site);
    if (!made)
        return ACS_ERR_MEMORY;
    made->handle = nccl_comm;
    made->adopted = true;
    code = acs_nccl_cuda_describe(made);
    if (code) {
        acs_nccl_comm_destroy(made);
        (void)acs_nccl_code_text(code, text, sizeof text);
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &site, "%s", text);
    }
    *comm = made;
    return ACS_OK;
}

acs_status acs_nccl_comm_alone(acs_nccl_comm **comm)
{
    static const acs_site site = {"acs_nccl_comm_alone", NULL, 0};
    acs_nccl_comm *made;

    if (!comm)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &site, "comm is NULL");
    made = comm_new(&site);
    if (made)
        *comm = made;
    return made ? ACS_OK : ACS_ERR_MEMORY;
}

void acs_nccl_comm_destroy(acs_nccl_comm *comm)
{
    if (!comm)
        return;
    acs_nccl_cuda_destroy(comm);
    (void)pthread_mutex_destroy(&comm->lock);
    free(comm);
}

/* ----------------------------------------------------------------------------------------------------------- arguments */

/* What an operation touches: bytes sent from `send` and received at `receive`. */
typedef struct extent {
    uint64_t sent, received;
} extent;

static extent extent_of(const acs_nccl_comm *comm, const acs_nccl_part *p)
{
    const uint64_t n = p->count * acs_nccl_size(p->type), all = n * (uint64_t)comm->ranks;

    switch (p->kind) {
    case ACS_NCCL_ALL_REDUCE: return (extent){n, n};
    case ACS_NCCL_BROADCAST: return (extent){p->peer == comm->rank ? n : 0, n};
    case ACS_NCCL_REDUCE_SCATTER: return (extent){all, n};
    case ACS_NCCL_ALL_GATHER: return (extent){n, all};
    case ACS_NCCL_SEND: return (extent){n, 0};
    case ACS_NCCL_RECEIVE: return (extent){0, n};
    }
    return (extent){0, 0};
}

static acs_status check_values(const acs_nccl_comm *comm, const acs_nccl_part *p, size_t i, const acs_site *site)
{
    const bool has_peer = p->kind == ACS_NCCL_BROADCAST || p->kind == ACS_NCCL_SEND || p->kind == ACS_NCCL_RECEIVE;

    if ((unsigned)p->kind > ACS_NCCL_RECEIVE)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "part %zu: kind is %d; it must be 0 to 5", i, (int)p->kind);
    if ((unsigned)p->type > ACS_NCCL_BF16)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "part %zu: type is %d; it must be 0 to 9", i, (int)p->type);
    if ((unsigned)p->reduction > ACS_NCCL_AVERAGE)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "part %zu: reduction is %d; it must be 0 to 4", i,
                             (int)p->reduction);
    if (has_peer && (p->peer < 0 || p->peer >= comm->ranks))
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "part %zu: peer is %d; it must be 0 to %d", i, p->peer,
                             comm->ranks - 1);
    if (p->count > SIZE_MAX / 2 / 8 / (size_t)comm->ranks)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "part %zu: count is %llu; memory cannot have so many", i,
                             (unsigned long long)p->count);
    return ACS_OK;
}

static acs_status check_part(const acs_nccl_comm *comm, const acs_nccl_part *p, size_t i, const acs_site *site)
{
    if (check_values(comm, p, i, site) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    const extent e = extent_of(comm, p);
    if ((e.sent && !p->send) || (e.received && !p->receive))
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "part %zu: %s is NULL", i,
                             e.sent && !p->send ? "send" : "receive");
    return ACS_OK;
}

/* The next part behind `at` of this kind whose peer is the rank itself, or `count`. */
static size_t next_to_self(const acs_nccl_comm *comm, const acs_nccl_part *parts, size_t count, size_t at,
                           acs_nccl_kind kind)
{
    while (at < count && (parts[at].kind != kind || parts[at].peer != comm->rank))
        at++;
    return at;
}

/* A send to oneself without its receive would never end. */
static acs_status check_self(const acs_nccl_comm *comm, const acs_nccl_part *parts, size_t count, const acs_site *site)
{
    size_t s = 0, r = 0;

    for (;; s++, r++) {
        s = next_to_self(comm, parts, count, s, ACS_NCCL_SEND);
        r = next_to_self(comm, parts, count, r, ACS_NCCL_RECEIVE);
        if (s == count && r == count)
            return ACS_OK;
        if (s == count || r == count)
            return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "part %zu: the rank's %s itself has no partner in the group",
                                 s == count ? r : s, s == count ? "receive from" : "send to");
        if (parts[s].count * acs_nccl_size(parts[s].type) != parts[r].count * acs_nccl_size(parts[r].type))
            return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "parts %zu and %zu: the rank sends itself another size than it "
                                 "receives", s, r);
    }
}

static acs_status check(const acs_nccl_comm *comm, const acs_nccl_part *parts, size_t count, const acs_site *site)
{
    if (!comm || !parts)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "%s is NULL", comm ? "parts" : "comm");
    if (count < 1 || count > ACS_NCCL_PARTS_MAX)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "count is %zu; it must be 1 to %d", count, ACS_NCCL_PARTS_MAX);
    for (size_t i = 0; i < count; i++)
        if (check_part(comm, &parts[i], i, site) != ACS_OK)
            return ACS_ERR_ARGUMENT;
    return check_self(comm, parts, count, site);
}

/* ----------------------------------------------------------------------------------------------------------- footprints */

/* In place, the larger side has the other in it: one segment, since it is read and written. @return how many segments */
static size_t name_part(const acs_nccl_comm *comm, const acs_nccl_part *p, acs_segment *s)
{
    const extent e = extent_of(comm, p);
    const uint64_t from = (uint64_t)(uintptr_t)p->send, to = (uint64_t)(uintptr_t)p->receive;
    size_t count = 0;

    if (e.sent && e.received && from <= to && to + e.received <= from + e.sent)
        s[count++] = ACS_INOUT(p->send, e.sent);
    else if (e.sent && e.received && to <= from && from + e.sent <= to + e.received)
        s[count++] = ACS_INOUT(p->receive, e.received);
    else {
        if (e.sent)
            s[count++] = ACS_IN(p->send, e.sent);
        if (e.received)
            s[count++] = ACS_OUT(p->receive, e.received);
    }
    return count;
}

static int run(const acs_call_env *env, void *closure)
{
    const acs_nccl_args *const args = closure;

    if (env->device >= 0)
        return acs_nccl_cuda_run(env, args);
    acs_nccl_host_run(args);
    return 0;
}

/* An op as acs_call takes it: closure and segments in one block. */
typedef struct draft {
    acs_call_params params;
    acs_nccl_args *args;
    acs_segment *segments;
} draft;

static acs_status prepare(draft *d, acs_nccl_comm *comm, const acs_nccl_part *parts, size_t count, const acs_site *site)
{
    size_t named = 1;

    if (check(comm, parts, count, site) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    const size_t bytes = sizeof *d->args + count * sizeof *parts;
    d->args = malloc(bytes);
    d->segments = malloc((1 + 2 * count) * sizeof *d->segments);
    if (!d->args || !d->segments)
        return acs_wrap_fail(ACS_ERR_MEMORY, site, "no memory for a group of %zu", count);
    d->args->comm = comm;
    d->args->count = count;
    memcpy(d->args->parts, parts, count * sizeof *parts);
    d->segments[0] = ACS_TOKEN(comm);
    for (size_t i = 0; i < count; i++)
        named += name_part(comm, &parts[i], d->segments + named);
    d->params = (acs_call_params){.size = sizeof d->params, .function = run, .closure = d->args, .closure_bytes = bytes,
                                  .uses = {d->segments, named, NULL, NULL, 0}, .site = site};
    return ACS_OK;
}

static acs_op queue(acs_context *context, acs_nccl_comm *comm, const acs_nccl_part *parts, size_t count,
                    const acs_site *site)
{
    draft d = {.args = NULL, .segments = NULL};
    const acs_status prepared = prepare(&d, comm, parts, count, site);
    const acs_op op = acs_wrap_queue(context, &d.params, site, prepared, acs_nccl_cuda_load);

    free(d.args);
    free(d.segments);
    return op;
}

/* ---------------------------------------------------------------------------------------------------- public functions */

acs_op acs_nccl_group(acs_context *context, acs_nccl_comm *comm, const acs_nccl_part *parts, size_t count)
{
    static const acs_site site = {"acs_nccl_group", NULL, 0};
    return queue(context, comm, parts, count, &site);
}

acs_op acs_nccl_all_reduce(acs_context *context, acs_nccl_comm *comm, acs_nccl_type type, acs_nccl_reduction reduction,
                           const void *send, void *receive, uint64_t count)
{
    static const acs_site site = {"acs_nccl_all_reduce", NULL, 0};
    const acs_nccl_part part = {ACS_NCCL_ALL_REDUCE, type, reduction, 0, send, receive, count};
    return queue(context, comm, &part, 1, &site);
}

acs_op acs_nccl_broadcast(acs_context *context, acs_nccl_comm *comm, acs_nccl_type type, int root, const void *send,
                          void *receive, uint64_t count)
{
    static const acs_site site = {"acs_nccl_broadcast", NULL, 0};
    const acs_nccl_part part = {ACS_NCCL_BROADCAST, type, ACS_NCCL_SUM, root, send, receive, count};
    return queue(context, comm, &part, 1, &site);
}

acs_op acs_nccl_reduce_scatter(acs_context *context, acs_nccl_comm *comm, acs_nccl_type type,
                               acs_nccl_reduction reduction, const void *send, void *receive, uint64_t receive_count)
{
    static const acs_site site = {"acs_nccl_reduce_scatter", NULL, 0};
    const acs_nccl_part part = {ACS_NCCL_REDUCE_SCATTER, type, reduction, 0, send, receive, receive_count};
    return queue(context, comm, &part, 1, &site);
}

acs_op acs_nccl_all_gather(acs_context *context, acs_nccl_comm *comm, acs_nccl_type type, const void *send, void *receive,
                           uint64_t send_count)
{
    static const acs_site site = {"acs_nccl_all_gather", NULL, 0};
    const acs_nccl_part part = {ACS_NCCL_ALL_GATHER, type, ACS_NCCL_SUM, 0, send, receive, send_count};
    return queue(context, comm, &part, 1, &site);
}

acs_op acs_nccl_send(acs_context *context, acs_nccl_comm *comm, acs_nccl_type type, int peer, const void *send,
                     uint64_t count)
{
    static const acs_site site = {"acs_nccl_send", NULL, 0};
    const acs_nccl_part part = {ACS_NCCL_SEND, type, ACS_NCCL_SUM, peer, send, NULL, count};
    return queue(context, comm, &part, 1, &site);
}

acs_op acs_nccl_receive(acs_context *context, acs_nccl_comm *comm, acs_nccl_type type, int peer, void *receive,
                        uint64_t count)
{
    static const acs_site site = {"acs_nccl_receive", NULL, 0};
    const acs_nccl_part part = {ACS_NCCL_RECEIVE, type, ACS_NCCL_SUM, peer, NULL, receive, count};
    return queue(context, comm, &part, 1, &site);
}

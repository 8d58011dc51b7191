/*
 * Who watches launches: a profiler, which gets ranges of NVTX that show it the contents of bundles and replays, and the
 * trace of the context, for which CUPTI tells when they ran (cupti.h). Called by the paths of ops around each launch while
 * either watches. It never fails an op.
 * base/nvtx.c has the domain and the messages, graphs/method.c decides how a profiler changes the choice of issue
 * methods.
 *
 * A tool sees a graph as one item unless it is asked for nodes, and does not see the GPU's own launches at all. Ranges
 * lie around the host's launch, on the thread that makes it, so that tools can find the launch's work on the GPU.
 */
#include "cuda/internal.h"

#include "base/options.h"
#include "window/nvtx_op.h"
#include "window/replay.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------- tools */

/* Whether the driver loads a tool into the process. Profilers that take no ranges come in that way. */
static bool driver_is_injected(void)
{
    const char *tool = acs_environment("CUDA_INJECTION64_PATH");
    return tool && *tool;
}

void acs_cuda_profiler_init(acs_cuda *self)
{
    acs_nvtx_open(); /* the backend may be open without a context */
    self->profiled = acs_nvtx_taken || driver_is_injected();
    if (self->profiled)
        acs_log(ACS_LOG_INFO,
                "cuda: a profiler is attached: ACS_ISSUE=auto does without resident executors, whose ops it could not "
                "see; ops, bundles and waits are %s",
                acs_nvtx_taken ? "ranges of NVTX" : "no ranges: it takes none");
}

/* ---------------------------------------------------------------------------------------------------- messages */

enum {
    NAME_BYTES = 80,
    REST_BYTES = 32 /* bytes for the number of further kernels */
};

typedef struct named {
    const char *name;
    uint32_t count;
} named;

typedef struct contents {
    acs_issue_method method;
    uint32_t ops, used;
    named kernels[ACS_BATCH_ITEMS];
} contents;

static void count_op(contents *all, const acs_record *op)
{
    const char *name = acs_label_name((acs_label){op->site, op->u.launch.kernel.name});
    uint32_t i = 0;
    while (i < all->used && all->kernels[i].name != name && strcmp(all->kernels[i].name, name) != 0)
        i++;
    if (i == all->used)
        all->kernels[all->used++] = (named){name, 0};
    all->kernels[i].count++;
    all->ops++;
}

/* Append text up to a bound. False: it did not fit, and nothing was appended. */
static bool __attribute__((format(printf, 3, 4))) add_text(char *message, size_t bound, const char *format, ...)
{
    size_t used = strlen(message);
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(message + used, bound - used, format, arguments);
    va_end(arguments);
    if (bytes >= 0 && (size_t)bytes < bound - used)
        return true;
    message[used] = 0;
    return false;
}

static const char *const g_methods[ACS_METHOD_COUNT] = {"auto", "launch", "replay", "resident"};

/* Write "gpu: 41 ops: motor x20, joint x21". Of many kernels it has the first ones, and the number of the others. */
static void write_message(const void *all_contents, char *message)
{
    const contents *all = all_contents;
    uint32_t i = 0;
    *message = 0;
    (void)add_text(message, ACS_NVTX_TEXT_BYTES, "%s: %u ops", g_methods[all->method], all->ops);
    while (i < all->used && add_text(message, ACS_NVTX_TEXT_BYTES - REST_BYTES, "%s%.*s x%u", i ? ", " : ": ",
                                     NAME_BYTES, all->kernels[i].name, all->kernels[i].count))
        i++;
    if (i < all->used)
        (void)add_text(message, ACS_NVTX_TEXT_BYTES, ", and %u more", all->used - i);
}

static uint64_t key_of(const contents *all)
{
    uint64_t key = acs_nvtx_key(ACS_NVTX_BUNDLE, all->method);
    for (uint32_t i = 0; i < all->used; i++)
        key = acs_nvtx_key(acs_nvtx_key_text(key, all->kernels[i].name), all->kernels[i].count);
    return key;
}

static void push(const contents *all, acs_nvtx_kind kind, acs_nvtx_bundle payload)
{
    payload.ops = all->ops;
    (void)snprintf(payload.method, sizeof payload.method, "%s", g_methods[all->method]);
    const acs_nvtx_range range = {.kind = kind, .key = key_of(all), .write = write_message, .contents = all,
                             .payload.bundle = payload};
    acs_nvtx_push(&range);
}

static void push_batch(const acs_batch *batch, acs_issue_method method)
{
    contents all = {.method = method};
    for (uint32_t i = 0; i < batch->items_used; i++)
        if (batch->items[i].op)
            count_op(&all, batch->items[i].op);
    push(&all, ACS_NVTX_BUNDLE, (acs_nvtx_bundle){.op = batch->items[0].op->seq, .slot = batch->items[0].slot,
                                                    .device = batch->device});
}

static void push_replay(const acs_item *item)
{
    const acs_replay *replay = item->op->u.replay.replay;
    contents all = {.method = ACS_METHOD_REPLAY};
    for (uint32_t at = 0; at < replay->shape->ops; at++)
        if (acs_replay_has(replay, at))
            count_op(&all, replay->shape->op[at]);
    push(&all, ACS_NVTX_REPLAY,
         (acs_nvtx_bundle){.op = item->op->seq, .slot = item->slot, .device = item->op->device});
}

/* ------------------------------------------------------------------------------------------------------ launches */

/* What acs_cuda_watch_end ends. */
typedef enum watching { WATCHING_NONE, WATCHING_RANGE, WATCHING_TIMES, WATCHING_BOTH } watching;

static unsigned watch_times(const acs_cuda *self, acs_op op)
{
    if (self->times == ACS_CUPTI_OFF)
        return 0;
    acs_cupti_push(self->serial, op);
    return WATCHING_TIMES;
}

unsigned acs_cuda_watch_op(const acs_cuda *self, const acs_record *op, int slot)
{
    return watch_times(self, op->seq) | (acs_nvtx_taken && acs_nvtx_op_push(op, slot) ? WATCHING_RANGE : 0);
}

unsigned acs_cuda_watch_bundle(const acs_cuda *self, const acs_batch *batch, acs_issue_method method)
{
    const unsigned watched = watch_times(self, batch->items[0].op->seq);
    if (!acs_nvtx_taken)
        return watched;
    push_batch(batch, method);
    return watched | WATCHING_RANGE;
}

unsigned acs_cuda_watch_replay(const acs_cuda *self, const acs_item *item)
{
    const unsigned watched = watch_times(self, item->op->seq);
    if (!acs_nvtx_taken)
        return watched;
    push_replay(item);
    return watched | WATCHING_RANGE;
}

void acs_cuda_watch_end(unsigned watched)
{
    if (watched & WATCHING_RANGE)
        acs_nvtx_pop();
    if (watched & WATCHING_TIMES)
        acs_cupti_pop();
}

/* --------------------------------------------------------------------------------------------------------- times */

acs_status acs_cuda_device_times_begin(acs_backend *backend, const acs_options *options)
{
    acs_cuda *self = (acs_cuda *)backend;
    if (acs_cupti_wanted(options) == ACS_CUPTI_OFF)
        return ACS_OK;
    const char *why = acs_cupti_start(options);
    const acs_cupti_detail detail = acs_cupti_started();
    if (why && options->trace_times != ACS_TRACE_TIMES_AUTO)
        return acs_options_cannot(options, "ACS_TRACE_TIMES", 0, why);
    if (why)
        acs_log(ACS_LOG_INFO, "cuda: times of ops in traces are estimates, by polls: %s", why);
    for (uint32_t i = 0; i < backend->devices && !why; i++) {
        self->members[i]->times = detail;
        self->members[i]->profiled |= detail == ACS_CUPTI_KERNELS; /* nothing is left to executors, which hide it */
    }
    return ACS_OK;
}

acs_status acs_cuda_device_times_take(acs_backend *backend, acs_device_times *times)
{
    const acs_cuda *self = (const acs_cuda *)backend;
    *times = (acs_device_times){.way = "polls"};
    if (self->times == ACS_CUPTI_OFF)
        return ACS_OK;
    for (uint32_t i = 0; i < backend->devices; i++) {
        ACS_CUDA_SCOPE(self->members[i]);
        if (scope.entered == CUDA_SUCCESS)
            acs_cuda_stream_wait_all(self->members[i]);
    }
    return acs_cupti_take(self->serial, times);
}

/*
 * Profilers: whether one is attached, and NVTX ranges that show it the contents of bundles. Opened with the device;
 * called by the issue methods around each launch of a graph. It costs a branch if no tool takes ranges, and never
 * fails. Without NVTX's headers, a part of the toolkit, there are no ranges. graphs/method.c decides how a profiler
 * changes the choice of issue methods.
 *
 * A tool sees a graph as one item unless it is asked for nodes, and does not see the GPU's own launches at all. Ranges
 * lie around the host's launch, on the thread that makes it, so that tools can find the launch's work on the GPU.
 */
#include "cuda/internal.h"

#include "base/options.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#define ACS_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif
#endif

/* ------------------------------------------------------------------------------------------------------- tools */

#ifdef ACS_HAVE_NVTX
static pthread_once_t g_domain_once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t g_domain; /* one per process: tools would show each domain apart */

/*
 * NVTX's first call, which looks for a tool. pthread_once guards it, since a thread sanitizer does not know NVTX's own
 * guard.
 */
static void make_domain(void)
{
    g_domain = nvtxDomainCreateA("ACS");
}
#endif

/* The domain; NULL: no tool takes ranges. */
static void *domain(void)
{
#ifdef ACS_HAVE_NVTX
    (void)pthread_once(&g_domain_once, make_domain);
    return g_domain;
#else
    return NULL;
#endif
}

/* Whether the driver loads a tool into the process. Profilers that take no ranges come in that way. */
static bool driver_is_injected(void)
{
    const char *tool = acs_environment("CUDA_INJECTION64_PATH");
    return tool && *tool;
}

void acs_cuda_profiler_init(acs_cuda *self)
{
    self->ranges = domain();
    self->profiled = self->ranges || driver_is_injected();
    if (self->profiled)
        acs_log(ACS_LOG_INFO,
                "cuda: a profiler is attached: ACS_ISSUE=auto does without kernels that the GPU launches by "
                "itself and without resident executors, which it could not see; bundles are %s",
                self->ranges ? "ranges of NVTX" : "no ranges: it takes none");
}

/* ---------------------------------------------------------------------------------------------------- messages */

enum {
    MESSAGE_BYTES = 512,
    NAME_BYTES = 80,
    REST_BYTES = 32 /* bytes for the number of further kernels */
};

typedef struct named {
    const char *name;
    uint32_t count;
} named;

typedef struct contents {
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

/* Write "gpu: 41 ops: motor x20, joint x21". Of many kernels it has the first ones, and the number of the others. */
static void write_message(const contents *all, acs_issue_method method, char *message)
{
    static const char *const methods[ACS_METHOD_COUNT] = {"auto", "launch", "replay", "layers", "gpu",
                                                        "resident"};
    uint32_t i = 0;
    *message = 0;
    (void)add_text(message, MESSAGE_BYTES, "%s: %u ops", methods[method], all->ops);
    while (i < all->used && add_text(message, MESSAGE_BYTES - REST_BYTES, "%s%.*s x%u", i ? ", " : ": ", NAME_BYTES,
                                all->kernels[i].name, all->kernels[i].count))
        i++;
    if (i < all->used)
        (void)add_text(message, MESSAGE_BYTES, ", and %u more", all->used - i);
}

static void push(const acs_cuda *self, const contents *all, acs_issue_method method)
{
    char message[MESSAGE_BYTES];
    write_message(all, method, message);
#ifdef ACS_HAVE_NVTX
    nvtxEventAttributes_t range = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_ASCII, .message = {.ascii = message}};
    (void)nvtxDomainRangePushEx(self->ranges, &range);
#else
    (void)self;
#endif
}

void acs_cuda_range_push(const acs_cuda *self, const acs_batch *batch, acs_issue_method method)
{
    contents all = {.used = 0};
    for (uint32_t i = 0; i < batch->items_used; i++)
        if (batch->items[i].op)
            count_op(&all, batch->items[i].op);
    push(self, &all, method);
}

void acs_cuda_range_push_replay(const acs_cuda *self, const acs_replay *replay)
{
    contents all = {.used = 0};
    for (uint32_t at = 0; at < replay->shape->ops; at++)
        if (acs_replay_has(replay, at))
            count_op(&all, replay->shape->op[at]);
    push(self, &all, ACS_METHOD_REPLAY);
}

void acs_cuda_range_pop(const acs_cuda *self)
{
#ifdef ACS_HAVE_NVTX
    (void)nvtxDomainRangePop(self->ranges);
#else
    (void)self;
#endif
}

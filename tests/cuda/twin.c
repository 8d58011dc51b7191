/*
 * The twin's control: reset, seed, failures on demand, the first breach, counts and the log. Every driver function of the
 * other twin*.c files begins with twin_enter and ends with twin_leave, which are here. It never touches a stream.
 */
#include "twin_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

twin_state g_twin = {.lock = PTHREAD_MUTEX_INITIALIZER, .strategy = TWIN_HELD, .first_handle = 0x7a00000010};

static _Thread_local twin_thread tl_self;
static uint64_t g_threads; /* under the lock */

void *twin_memory(size_t bytes)
{
    /* Not calloc, which tests make fail for the library. */
    size_t rounded = (bytes + 16) / 16 * 16;
    void *memory = aligned_alloc(16, rounded);
    if (!memory) {
        fprintf(stderr, "twin: out of memory\n");
        abort();
    }
    return memset(memory, 0, rounded);
}

twin_thread *twin_self_locked(void)
{
    if (tl_self.number == 0)
        tl_self.number = ++g_threads;
    if (tl_self.generation != g_twin.generation) {
        tl_self = (twin_thread){.generation = g_twin.generation, .number = tl_self.number, .spared = tl_self.spared};
        tl_self.mode = CU_STREAM_CAPTURE_MODE_GLOBAL; /* CUDA's default */
    }
    return &tl_self;
}

/* ------------------------------------------------------------------------------------------------------------- choices */

uint64_t twin_random_locked(uint64_t below)
{
    uint64_t x = g_twin.random += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return below ? (x ^ (x >> 31)) % below : 0;
}

static void reset_locked(void)
{
    uint64_t generation = g_twin.generation + 1;
    uintptr_t next = g_twin.first_handle + 16 * (uintptr_t)g_twin.object_count;
    twin_objects_free();
    /* Field by field, since the lock is held. */
    size_t from = offsetof(twin_state, call);
    memset((char *)&g_twin + from, 0, sizeof g_twin - from);
    g_twin.generation = generation;
    g_twin.first_handle = next;
    g_twin.strategy = TWIN_HELD;
}

void twin_reset(void)
{
    pthread_mutex_lock(&g_twin.lock);
    reset_locked();
    pthread_mutex_unlock(&g_twin.lock);
}

void twin_seed(uint64_t seed)
{
    pthread_mutex_lock(&g_twin.lock);
    reset_locked();
    g_twin.random = seed;
    g_twin.strategy = (twin_strategy)twin_random_locked(TWIN_HELD);
    g_twin.victim = (uint32_t)twin_random_locked(64);
    pthread_mutex_unlock(&g_twin.lock);
}

void twin_set_strategy(twin_strategy strategy)
{
    pthread_mutex_lock(&g_twin.lock);
    g_twin.strategy = strategy;
    pthread_mutex_unlock(&g_twin.lock);
}

/* ------------------------------------------------------------------------------------------------------------ breaches */

void twin_breach_locked(const char *format, ...)
{
    if (g_twin.breaches++)
        return;
    int used = snprintf(g_twin.breach, sizeof g_twin.breach, "%s: ", g_twin.call ? g_twin.call : "twin");
    va_list list;
    va_start(list, format);
    vsnprintf(g_twin.breach + used, sizeof g_twin.breach - (size_t)used, format, list);
    va_end(list);
}

const char *twin_breach(void)
{
    pthread_mutex_lock(&g_twin.lock);
    bool any = g_twin.breaches > 0;
    pthread_mutex_unlock(&g_twin.lock);
    return any ? g_twin.breach : NULL; /* written once */
}

uint64_t twin_breaches(void)
{
    pthread_mutex_lock(&g_twin.lock);
    uint64_t count = g_twin.breaches;
    pthread_mutex_unlock(&g_twin.lock);
    return count;
}

void twin_forget_breaches(void)
{
    pthread_mutex_lock(&g_twin.lock);
    g_twin.breaches = 0;
    pthread_mutex_unlock(&g_twin.lock);
}

/*
 * A lost device whose context cannot be made current keeps what it has: nobody can give it back. Green contexts stay until
 * the process ends (share.c).
 */
void twin_audit(void)
{
    pthread_mutex_lock(&g_twin.lock);
    bool gone = g_twin.lost != CUDA_SUCCESS && !g_twin.lost_context;
    g_twin.call = "audit";
    for (uint32_t i = 0; !gone && i < g_twin.object_count; i++) {
        const twin_object *o = g_twin.objects[i];
        bool counts = o->kind == TWIN_EVENT || o->kind == TWIN_GRAPH || o->kind == TWIN_EXEC || o->kind == TWIN_LIBRARY ||
                      o->kind == TWIN_PIECE || (o->kind == TWIN_STREAM && !((const twin_stream *)o)->builtin);
        if (counts && o->alive && !o->forgiven)
            twin_breach_locked("%s %u was not destroyed", twin_kind_name(o->kind), o->number);
    }
    for (uint32_t i = 0; !gone && i < g_twin.block_count; i++)
        if (!g_twin.blocks[i].forgiven)
            twin_breach_locked("%llu bytes at %#llx were not freed", (unsigned long long)g_twin.blocks[i].bytes,
                               (unsigned long long)g_twin.blocks[i].base);
    for (uint32_t i = 0; !gone && i < g_twin.span_count; i++)
        if (!g_twin.spans[i].forgiven)
            twin_breach_locked("the addresses at %#llx were not given back", (unsigned long long)g_twin.spans[i].base);
    for (int d = 0; d < TWIN_DEVICES; d++)
        if (g_twin.retained[d])
            twin_breach_locked("the context of device %d is retained %u times", d, g_twin.retained[d]);
    pthread_mutex_unlock(&g_twin.lock);
}

/* ------------------------------------------------------------------------------------------------------------ failures */

void twin_lose_locked(CUresult result)
{
    if (g_twin.lost == CUDA_SUCCESS)
        g_twin.lost = result;
    g_twin.lost_context = twin_random_locked(2) != 0;
    g_twin.lose_calls = g_twin.lose_kernels = 0;
}

static void plan(int which, const char *function, CUresult result, uint64_t after, uint64_t count)
{
    pthread_mutex_lock(&g_twin.lock);
    g_twin.failures[which] = (twin_failure){function, result, after, count};
    pthread_mutex_unlock(&g_twin.lock);
}

void twin_fail(const char *function, CUresult result, uint64_t after, uint64_t count)
{
    plan(0, function, result, after, count);
}

void twin_fail_also(const char *function, CUresult result, uint64_t after, uint64_t count)
{
    plan(1, function, result, after, count);
}

void twin_fail_rate(uint32_t per_mille)
{
    pthread_mutex_lock(&g_twin.lock);
    g_twin.rate = per_mille;
    pthread_mutex_unlock(&g_twin.lock);
}

static void plan_loss(CUresult result, uint64_t calls, uint64_t kernels, bool work)
{
    pthread_mutex_lock(&g_twin.lock);
    g_twin.lose_work = work;
    g_twin.lose_result = result;
    g_twin.lose_calls = calls;
    g_twin.lose_kernels = kernels;
    pthread_mutex_unlock(&g_twin.lock);
}

void twin_lose_after_calls(CUresult result, uint64_t calls)
{
    plan_loss(result, calls + 1, 0, false);
}

void twin_lose_after_work(CUresult result, uint64_t calls)
{
    plan_loss(result, calls + 1, 0, true);
}

void twin_lose_after_kernels(CUresult result, uint64_t kernels)
{
    plan_loss(result, 0, kernels + 1, false);
}

void twin_lose_never(void)
{
    plan_loss(CUDA_SUCCESS, 0, 0, false);
}

bool twin_lost(void)
{
    pthread_mutex_lock(&g_twin.lock);
    bool lost = g_twin.lost != CUDA_SUCCESS;
    pthread_mutex_unlock(&g_twin.lock);
    return lost;
}

void twin_device_error(cudaError_t error)
{
    pthread_mutex_lock(&g_twin.lock);
    g_twin.device_error = error;
    pthread_mutex_unlock(&g_twin.lock);
}

void twin_without(const char *function)
{
    pthread_mutex_lock(&g_twin.lock);
    g_twin.missing = function;
    pthread_mutex_unlock(&g_twin.lock);
}

void twin_plain_devices(void)
{
    pthread_mutex_lock(&g_twin.lock);
    g_twin.plain = true;
    pthread_mutex_unlock(&g_twin.lock);
}

void twin_spare_thread(bool spare)
{
    tl_self.spared = spare;
}

CUresult twin_chance_locked(const twin_stream *stream)
{
    static const CUresult codes[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                                     CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_VALUE};
    if (!g_twin.rate || stream->builtin || twin_self_locked()->spared || twin_random_locked(1000) >= g_twin.rate)
        return CUDA_SUCCESS;
    g_twin.failures_made++;
    return codes[twin_random_locked(sizeof codes / sizeof codes[0])];
}

static bool among(const char *call, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(call, names[i]) == 0)
            return true;
    return false;
}

/* What the thread keeps for itself is answered by the driver's library alone, whatever became of the device. */
static bool is_of_thread(const char *call)
{
    static const char *const names[] = {"cuCtxPopCurrent", "cuCtxGetCurrent", "cuCtxGetId",
                                        "cuThreadExchangeStreamCaptureMode"};
    return among(call, names, sizeof names / sizeof names[0]);
}

static bool is_of_context(const char *call)
{
    static const char *const names[] = {"cuCtxPushCurrent", "cuCtxSetCurrent"};
    return among(call, names, sizeof names / sizeof names[0]);
}

static bool survives_loss(const char *call)
{
    return is_of_thread(call) || (is_of_context(call) && g_twin.lost_context);
}

static CUresult planned_failure(const char *call)
{
    for (int i = 0; i < TWIN_FAILURES; i++) {
        twin_failure *f = &g_twin.failures[i];
        bool any = f->function && strcmp(f->function, "*") == 0;
        if (!f->function || (!any && strcmp(f->function, call) != 0))
            continue;
        if (f->after) {
            f->after--;
        } else if (f->count) {
            f->count--;
            g_twin.failures_made++;
            g_twin.last_failed = call;
            return f->result;
        }
    }
    return CUDA_SUCCESS;
}

static void count_call(const char *call)
{
    uint32_t i = 0;
    g_twin.calls++;
    while (i < TWIN_NAMES - 1 && g_twin.counts[i].name && strcmp(g_twin.counts[i].name, call) != 0)
        i++;
    g_twin.counts[i].name = call;
    g_twin.counts[i].count++;
}

/* Calls that a step makes for ops that are under way, or to put them under way. */
static bool is_work(const char *call)
{
    static const char *const work[] = {"cuLaunch", "cuMemcpy", "cuMemset", "cuEventQuery", "cuEventSynchronize",
                                       "cuStreamWaitEvent", "cuStreamSynchronize"};
    for (size_t i = 0; i < sizeof work / sizeof work[0]; i++)
        if (strncmp(call, work[i], strlen(work[i])) == 0)
            return true;
    return false;
}

CUresult twin_enter(const char *call)
{
    pthread_mutex_lock(&g_twin.lock);
    g_twin.call = call;
    count_call(call);
    bool counts = g_twin.lose_work ? is_work(call) && !twin_self_locked()->spared
                                   : !is_of_thread(call) && !is_of_context(call);
    if (g_twin.lost == CUDA_SUCCESS && counts && g_twin.lose_calls && --g_twin.lose_calls == 0)
        twin_lose_locked(g_twin.lose_result);
    if (g_twin.lost != CUDA_SUCCESS && !survives_loss(call))
        return g_twin.lost;
    return planned_failure(call);
}

void twin_leave(void)
{
    pthread_mutex_unlock(&g_twin.lock);
}

/* --------------------------------------------------------------------------------------------------------- observation */

void twin_note_locked(const char *what, const twin_stream *stream, const twin_event *event)
{
    char text[64];
    int number = stream && !stream->builtin ? (int)stream->base.number : -1;
    int used = snprintf(text, sizeof text, "%s %d", what, number);
    if (event)
        used += snprintf(text + used, sizeof text - (size_t)used, " e%u", event->base.number);
    if (g_twin.log_used + (size_t)used + 2 > sizeof g_twin.log)
        return; /* who reads the log clears it */
    memcpy(g_twin.log + g_twin.log_used, text, (size_t)used);
    g_twin.log_used += (size_t)used;
    g_twin.log[g_twin.log_used++] = ';';
    g_twin.log[g_twin.log_used] = 0;
}

const char *twin_log(void)
{
    return g_twin.log;
}

void twin_log_clear(void)
{
    pthread_mutex_lock(&g_twin.lock);
    g_twin.log_used = 0;
    g_twin.log[0] = 0;
    pthread_mutex_unlock(&g_twin.lock);
}

uint64_t twin_count(const char *function)
{
    uint64_t count = 0;
    pthread_mutex_lock(&g_twin.lock);
    for (uint32_t i = 0; i < TWIN_NAMES && g_twin.counts[i].name; i++)
        if (strcmp(g_twin.counts[i].name, function) == 0)
            count = g_twin.counts[i].count;
    pthread_mutex_unlock(&g_twin.lock);
    return count;
}

static uint64_t read_locked(const uint64_t *value)
{
    pthread_mutex_lock(&g_twin.lock);
    uint64_t read = *value;
    pthread_mutex_unlock(&g_twin.lock);
    return read;
}

uint64_t twin_calls(void)
{
    return read_locked(&g_twin.calls);
}

uint64_t twin_kernels_run(void)
{
    return read_locked(&g_twin.kernels_run);
}

const char *twin_last_failed(void)
{
    pthread_mutex_lock(&g_twin.lock);
    const char *call = g_twin.last_failed;
    pthread_mutex_unlock(&g_twin.lock);
    return call;
}

uint64_t twin_failures(void)
{
    return read_locked(&g_twin.failures_made);
}

uint32_t twin_events_made(void)
{
    pthread_mutex_lock(&g_twin.lock);
    uint32_t made = g_twin.made[TWIN_EVENT];
    pthread_mutex_unlock(&g_twin.lock);
    return made;
}

/*
 * The thread that builds graphs of replays, so that the thread that issues need not: an instantiation takes as long as
 * hundreds of launches. Called by wanted.c. It builds one graph after another, in the order in which they were
 * wanted, and sleeps while none is. It never launches a graph.
 */
#include "cuda/graphs/graphs.h"

#include "base/thread.h"
#include "base/tuning.h"

#include <stdlib.h>
#include <utlist.h>

struct acs_cuda_builder {
    acs_cuda *self;
    CUstream stream; /* of uploads */
    acs_lock lock;   /* rank BACKEND, taken without another one; guards the fields below */
    acs_cond wake;
    pthread_t thread;
    bool started, refused, stopping;
    acs_cuda_build *builds; /* the first one is being built */
    uint32_t count;
    bool (*call)(acs_cuda *self); /* what it is to call next; NULL: nothing */
};

/* The next graph; NULL: the thread is to end. */
static acs_cuda_build *next(acs_cuda_builder *b)
{
    ACS_HOLD(&b->lock);
    while (!b->builds && !b->stopping && !b->call)
        acs_cond_wait(&b->wake, &b->lock);
    return b->stopping ? NULL : b->builds;
}

/* Call what was asked for, if anything. False: nothing was. */
static bool make_call(acs_cuda_builder *b)
{
    acs_lock_acquire(&b->lock);
    bool (*const call)(acs_cuda *) = b->call;
    b->call = NULL;
    acs_lock_release(&b->lock);
    if (call)
        (void)call(b->self);
    return call != NULL;
}

static void forget_first(acs_cuda_builder *b)
{
    acs_lock_acquire(&b->lock);
    acs_cuda_build *build = b->builds;
    LL_DELETE(b->builds, build);
    b->count--;
    acs_lock_release(&b->lock);
    free(build);
}

static void *builder_main(void *builder)
{
    acs_cuda_builder *b = builder;
    acs_cuda *self = b->self;
    acs_cuda_build *build;
    acs_thread_pin(self->cpu_next ? self->cpu_next(self->cpu_user) : -1);
    acs_cuda_thread_enter(&self->base);
    while ((build = next(b)) != NULL || make_call(b)) {
        if (!build)
            continue;
        /* It waits for the upload, since a launch may be in any stream. */
        acs_cuda_exec *exec = acs_cuda_exec_finish(self, build, b->stream, true);
        if (exec)
            acs_cuda_exec_give(self, exec);
        forget_first(b);
    }
    return NULL;
}

acs_cuda_builder *acs_cuda_builder_create(acs_cuda *self)
{
    acs_cuda_builder *b = calloc(1, sizeof *b);
    if (!b || acs_lock_init(&b->lock, ACS_RANK_BACKEND) != 0) {
        free(b);
        return NULL;
    }
    b->self = self;
    if (acs_cond_init(&b->wake) == 0)
        return b;
    acs_lock_fini(&b->lock);
    free(b);
    return NULL;
}

void acs_cuda_builder_destroy(acs_cuda_builder *b)
{
    if (!b)
        return;
    acs_lock_acquire(&b->lock);
    b->stopping = true;
    acs_cond_signal(&b->wake);
    acs_lock_release(&b->lock);
    if (b->started)
        (void)pthread_join(b->thread, NULL);
    while (b->builds) {
        acs_cuda_exec_destroy(b->self, b->builds->exec);
        forget_first(b);
    }
    CUresult result = b->stream ? b->self->cu.cuStreamDestroy(b->stream) : CUDA_SUCCESS;
    acs_cuda_close_note(b->self, "the stream of graphs", result);
    acs_cond_fini(&b->wake);
    acs_lock_fini(&b->lock);
    free(b);
}

bool acs_cuda_builder_has(acs_cuda_builder *b, uint64_t key)
{
    const acs_cuda_build *build;
    ACS_HOLD(&b->lock);
    bool has = b->count >= TUNE_GRAPH_BUILDS_MOST; /* it asks again later */
    LL_FOREACH (b->builds, build)
        has = has || build->key == key;
    return has;
}

/* Start the thread when it is first needed. */
static bool start(acs_cuda_builder *b)
{
    if (b->started || b->refused)
        return b->started;
    b->refused = b->self->cu.cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
    b->started = !b->refused && acs_thread_create(&b->thread, builder_main, b) == 0;
    b->refused = !b->started;
    if (b->refused)
        acs_log(ACS_LOG_INFO, "cuda: no thread for graphs can be had; the thread that issues builds them");
    return b->started;
}

bool acs_cuda_builder_call(acs_cuda_builder *b, bool (*call)(acs_cuda *self))
{
    ACS_HOLD(&b->lock);
    b->call = call;
    acs_cond_signal(&b->wake);
    return start(b);
}

bool acs_cuda_builder_add(acs_cuda_builder *b, acs_cuda_build *build)
{
    ACS_HOLD(&b->lock);
    const bool starts = start(b);
    if (starts) {
        LL_APPEND(b->builds, build);
        b->count++;
        acs_cond_signal(&b->wake);
    }
    return starts;
}

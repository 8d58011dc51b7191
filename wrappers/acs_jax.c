/*
 * The functions that XLA calls for ops of the Python module acs.jax, which loads this as libacs_jax.so. They call on to
 * Python, where the work is done. Here are the two cases that Python cannot answer: a call at the interpreter's end, and
 * an exception before the first line of a function of Python (Ctrl-C). Both become errors of XLA. Never calls Python
 * after acs_jax_end.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

enum { XLA_CANCELLED = 1 }; /* kind of an error */

/* The beginnings of XLA's structures, as xla/ffi/api/c_api.h of jaxlib has them. python/tests/test_jax.py compares. */
typedef struct xla_error_create {
    size_t struct_size;
    void *extension;
    const char *text;
    int code;
} xla_error_create;

typedef struct xla_api {
    size_t struct_size;
    void *extension;
    size_t version[3];
    const void *internal;
    void *(*error_create)(xla_error_create *args);
} xla_api;

typedef struct xla_frame {
    size_t struct_size;
    void *extension;
    const xla_api *api;
} xla_frame;

/* What Python says of a call. */
typedef struct acs_jax_answer {
    void *error;       /* of XLA, which takes it; NULL: none */
    uint32_t answered; /* 1: Python has set `error`; 0: an exception came before it could */
} acs_jax_answer;

/* `handler`: number of the function below that XLA called. */
typedef void (*acs_jax_call)(int handler, xla_frame *frame, acs_jax_answer *answer);

static struct {
    pthread_mutex_t lock; /* guards all fields */
    pthread_cond_t left;  /* signalled when the last call has left */
    acs_jax_call call;    /* NULL: before acs_jax_begin, and after acs_jax_end */
    uint64_t under_way;   /* calls of Python that have not returned */
} g_calls = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

/* NULL where XLA asks for metadata without giving its functions. It gets none, and refuses the handler. */
static void *error_of(const xla_api *api, const char *text)
{
    if (!api)
        return NULL;
    xla_error_create args = {offsetof(xla_error_create, code) + sizeof(int), NULL, text, XLA_CANCELLED};
    return api->error_create(&args);
}

/* The function of Python to call; NULL: it is too late. */
static acs_jax_call enter(void)
{
    pthread_mutex_lock(&g_calls.lock);
    acs_jax_call call = g_calls.call;
    g_calls.under_way += call != NULL;
    pthread_mutex_unlock(&g_calls.lock);
    return call;
}

static void leave(void)
{
    pthread_mutex_lock(&g_calls.lock);
    if (--g_calls.under_way == 0)
        pthread_cond_broadcast(&g_calls.left);
    pthread_mutex_unlock(&g_calls.lock);
}

static void *handle(int handler, xla_frame *frame)
{
    acs_jax_answer answer = {NULL, 0};
    acs_jax_call call = enter();
    if (!call)
        return error_of(frame->api, "acs.jax: an op is called while the interpreter ends");
    call(handler, frame, &answer);
    leave();
    if (!answer.answered)
        return error_of(frame->api, "acs.jax: an exception came before the op began (KeyboardInterrupt, for example)");
    return answer.error;
}

/* The functions that XLA calls. Any thread, several at once. */
EXPORTED void *acs_jax_cpu(xla_frame *frame);
EXPORTED void *acs_jax_cpu_uncaptured(xla_frame *frame);
EXPORTED void *acs_jax_cuda(xla_frame *frame);
EXPORTED void *acs_jax_cuda_uncaptured(xla_frame *frame);

void *acs_jax_cpu(xla_frame *frame)
{
    return handle(0, frame);
}

void *acs_jax_cpu_uncaptured(xla_frame *frame)
{
    return handle(1, frame);
}

void *acs_jax_cuda(xla_frame *frame)
{
    return handle(2, frame);
}

void *acs_jax_cuda_uncaptured(xla_frame *frame)
{
    return handle(3, frame);
}

/* From now on calls go to `call`, until acs_jax_end. */
EXPORTED void acs_jax_begin(acs_jax_call call);

void acs_jax_begin(acs_jax_call call)
{
    pthread_mutex_lock(&g_calls.lock);
    g_calls.call = call;
    pthread_mutex_unlock(&g_calls.lock);
}

/* Refuse calls from now on, and wait for those under way. The caller must let other threads run Python meanwhile. */
EXPORTED void acs_jax_end(void);

void acs_jax_end(void)
{
    pthread_mutex_lock(&g_calls.lock);
    g_calls.call = NULL;
    while (g_calls.under_way)
        pthread_cond_wait(&g_calls.left, &g_calls.lock);
    pthread_mutex_unlock(&g_calls.lock);
}

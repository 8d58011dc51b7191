/*
 * Transforms on a GPU: cuFFT, found at run time. Called by the thread that issues an op, with the slot's stream and scratch
 * memory. A plan has one handle of cuFFT for each device. Its stream and its work area are set anew for each transform,
 * under a lock, as cuFFT's manual says for plans whose transforms overlap. Never synchronises, but for what cuFFT does when
 * a handle is made. Built without CUDA's headers it only says so.
 */
#include "fft/fft.h"

#if ACS_FFT_HAVE_CUDA

#include <cufft.h>

#include <pthread.h>
#include <stdlib.h>

#define FUNCTIONS(X)                                                                                                   \
    X(cufftCreate) X(cufftDestroy) X(cufftSetAutoAllocation) X(cufftMakePlanMany64) X(cufftSetStream)                  \
    X(cufftSetWorkArea) X(cufftExecC2C) X(cufftExecR2C) X(cufftExecC2R) X(cufftExecZ2Z) X(cufftExecD2Z) X(cufftExecZ2D)

static struct {
    FUNCTIONS(ACS_WRAP_MEMBER)
} g;
static const acs_wrap_function g_functions[] = {FUNCTIONS(ACS_WRAP_ROW)};
static const acs_wrap_library g_library = {"libcufft.so." ACS_WRAP_TEXT(CUFFT_VER_MAJOR), g_functions,
                                           sizeof g_functions / sizeof g_functions[0]};
static acs_wrap_loader g_loader = {&g_library, 1, 0, ""};

bool acs_fft_cuda_load(const char **why)
{
    return acs_wrap_load(&g_loader, why);
}

/* ------------------------------------------------------------------------------------------------------------- handles */

/* A handle, and the work area that cuFFT wants for it. */
typedef struct entry {
    cufftHandle handle;
    size_t work_bytes;
    bool made;
} entry;

typedef struct machine {
    pthread_mutex_t lock; /* guards the entries, and the state of their handles from set to exec */
    entry devices[ACS_FFT_DEVICES_MAX];
} machine;

static int code_of(cufftResult result)
{
    return result == CUFFT_SUCCESS ? 0 : ACS_WRAP_CODE_BASE + (int)result;
}

static cufftType type_of(const acs_fft_params *p)
{
    static const cufftType types[3][2] = {{CUFFT_C2C, CUFFT_Z2Z}, {CUFFT_R2C, CUFFT_D2Z}, {CUFFT_C2R, CUFFT_Z2D}};
    return types[p->kind][p->precise];
}

/* Dense data. @return elements of one transform; `n`: the dimensions on this side */
static long long dense(const acs_fft_params *p, bool half, long long n[ACS_FFT_RANK_MAX])
{
    long long elements = 1;

    for (int i = 0; i < p->rank; i++) {
        n[i] = i == p->rank - 1 && half ? (long long)acs_fft_half(p) : p->n[i];
        elements *= n[i];
    }
    return elements;
}

static cufftResult make_plan(const acs_fft_params *p, cufftHandle handle, size_t *work_bytes)
{
    long long n[ACS_FFT_RANK_MAX], in[ACS_FFT_RANK_MAX], out[ACS_FFT_RANK_MAX];
    const long long in_distance = dense(p, p->kind == ACS_FFT_C2R, in);
    const long long out_distance = dense(p, p->kind == ACS_FFT_R2C, out);

    (void)dense(p, false, n);
    return g.cufftMakePlanMany64(handle, p->rank, n, in, 1, in_distance, out, 1, out_distance, type_of(p), p->batch,
                                 work_bytes);
}

static int make_entry(const acs_fft_params *p, entry *e)
{
    cufftResult result = g.cufftCreate(&e->handle);

    if (result != CUFFT_SUCCESS)
        return code_of(result);
    result = g.cufftSetAutoAllocation(e->handle, 0);
    if (result == CUFFT_SUCCESS)
        result = make_plan(p, e->handle, &e->work_bytes);
    if (result != CUFFT_SUCCESS)
        (void)g.cufftDestroy(e->handle); /* the first error is reported */
    e->made = result == CUFFT_SUCCESS;
    return code_of(result);
}

/* The entry of a device; made by its first user, with the lock held. */
static int entry_locked(machine *m, const acs_fft_params *p, int device, entry **found)
{
    if (device >= ACS_FFT_DEVICES_MAX)
        return ACS_FFT_CODE_DEVICE;
    *found = &m->devices[device];
    return (*found)->made ? 0 : make_entry(p, *found);
}

int acs_fft_cuda_make(const acs_call_env *env, acs_fft_plan *plan)
{
    machine *const m = calloc(1, sizeof *m);
    entry *e = NULL;
    int code;

    if (!m)
        return ACS_WRAP_CODE_MEMORY;
    (void)pthread_mutex_init(&m->lock, NULL); /* cannot fail on Linux without attributes */
    plan->machine = m;
    code = entry_locked(m, &plan->params, env->device, &e);
    plan->work_bytes = code ? 0 : e->work_bytes;
    return code;
}

void acs_fft_cuda_destroy(acs_fft_plan *plan)
{
    machine *const m = plan->machine;

    for (int i = 0; i < ACS_FFT_DEVICES_MAX; i++)
        if (m->devices[i].made)
            (void)g.cufftDestroy(m->devices[i].handle); /* there is nobody to tell of a failure */
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
}

/* ----------------------------------------------------------------------------------------------------------- transforms */

/* cuFFT's inputs are not const; it writes to those of C2R alone. */
static cufftResult exec(const acs_fft_params *p, cufftHandle h, const acs_fft_args *args)
{
    void *const in = (void *)(uintptr_t)args->in, *const out = args->out;
    const int direction = args->direction == ACS_FFT_FORWARD ? CUFFT_FORWARD : CUFFT_INVERSE;

    switch (type_of(p)) {
    case CUFFT_C2C: return g.cufftExecC2C(h, in, out, direction);
    case CUFFT_Z2Z: return g.cufftExecZ2Z(h, in, out, direction);
    case CUFFT_R2C: return g.cufftExecR2C(h, in, out);
    case CUFFT_D2Z: return g.cufftExecD2Z(h, in, out);
    case CUFFT_C2R: return g.cufftExecC2R(h, in, out);
    case CUFFT_Z2D: return g.cufftExecZ2D(h, in, out);
    }
    return CUFFT_INVALID_TYPE;
}

static int run_locked(const acs_call_env *env, const acs_fft_args *args)
{
    machine *const m = args->plan->machine;
    entry *e;
    int code = entry_locked(m, &args->plan->params, env->device, &e);

    if (code)
        return code;
    if (e->work_bytes > env->scratch_bytes)
        return ACS_WRAP_CODE_SCRATCH;
    code = code_of(g.cufftSetStream(e->handle, env->stream));
    if (!code)
        code = code_of(g.cufftSetWorkArea(e->handle, env->scratch));
    return code ? code : code_of(exec(&args->plan->params, e->handle, args));
}

int acs_fft_cuda_run(const acs_call_env *env, const acs_fft_args *args)
{
    machine *const m = args->plan->machine;
    int code;

    if (!m)
        return ACS_FFT_CODE_BACKEND;
    (void)pthread_mutex_lock(&m->lock); /* cannot fail: the mutex is valid and not held by this thread */
    code = run_locked(env, args);
    (void)pthread_mutex_unlock(&m->lock);
    return code;
}

#else /* no CUDA */

bool acs_fft_cuda_load(const char **why)
{
    *why = "this build of acs_fft has no cuFFT: CUDA's headers were not there, or were not wanted";
    return false;
}

int acs_fft_cuda_make(const acs_call_env *env, acs_fft_plan *plan)
{
    (void)env;
    (void)plan;
    return ACS_WRAP_CODE_LIBRARY;
}

int acs_fft_cuda_run(const acs_call_env *env, const acs_fft_args *args)
{
    (void)env;
    (void)args;
    return ACS_WRAP_CODE_LIBRARY;
}

void acs_fft_cuda_destroy(acs_fft_plan *plan)
{
    (void)plan; /* none has a machine */
}

#endif

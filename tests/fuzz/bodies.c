/*
 * What the library calls back: bodies of kernels, host functions and library calls, retire callbacks, footprint functions.
 * They check what they are given, note when they ran, try calls that must be refused inside, and work on memory. May run on
 * threads of the host backend, so what they note is atomic.
 */
#include "calls.h"

#include <string.h>

/* ----------------------------------------------------------------------------------------------- calls from anywhere */

static int host_nothing(void *closure)
{
    (void)closure;
    return 0;
}

static int call_nothing(const acs_call_env *env, void *closure)
{
    (void)env;
    (void)closure;
    return 0;
}

static void retire_nothing(void *user, acs_op op, acs_status status)
{
    (void)user;
    (void)op;
    (void)status;
}

static void kernel_nothing(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}

static acs_status of_op(acs_op op)
{
    return op ? ACS_OK : acs_last_error(NULL);
}

static acs_status launch_nothing(acs_context *context)
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("nothing", kernel_nothing);
    return of_op(ACS_LAUNCH_ON(context, &kernel, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE));
}

static acs_status queue_nothing(acs_context *context, unsigned which)
{
    static char bytes[8];
    acs_call_params call = {.size = sizeof call, .function = call_nothing};
    switch (which) {
    case 0: return launch_nothing(context);
    case 1: return of_op(acs_memcpy(context, bytes, bytes + 4, 4));
    case 2: return of_op(acs_memset(context, bytes, 0, 8));
    case 3: return of_op(acs_host(context, host_nothing, NULL, 0, ACS_USES_NONE));
    case 4: return of_op(acs_call(context, &call));
    case 5: return of_op(acs_free(context, bytes));
    case 6: return of_op(acs_on_retire(context, 1, retire_nothing, NULL));
    default: return of_op(acs_after_stream(context, NULL, ACS_USES_NONE));
    }
}

acs_status fuzz_any_call(acs_context *context, unsigned which)
{
    static char bytes[8];
    acs_error error = {.size = sizeof error};
    acs_statistics stats = {.size = sizeof stats};
    void *block = NULL;
    which %= FUZZ_ANY_CALLS;
    if (which < 8)
        return queue_nothing(context, which);
    switch (which) {
    case 8: return acs_malloc(context, 8, ACS_MEMORY_HOST, &block);
    case 9: return acs_sync(context);
    case 10: return acs_wait(context, 1);
    case 11: return acs_query(context, 1);
    case 12: return acs_wait_range(context, bytes, 8, ACS_READ);
    case 13: return acs_step(context);
    case 14: return acs_stream_after(context, NULL, ACS_USES_NONE);
    case 15: return acs_context_error(context, &error);
    case 16: return acs_op_error(context, 1, &error);
    case 17: return acs_clear(context);
    case 18: return acs_stats(context, &stats);
    case 19: return acs_context_backend(context) == -1 ? acs_last_error(NULL) : ACS_OK;
    default: return context ? acs_close(context) : ACS_ERR_OPTION; /* closing NULL is allowed */
    }
}

/* Whether fuzz_any_call tries to queue an op. */
static bool queues_op(unsigned which)
{
    return which % FUZZ_ANY_CALLS < 8 || which % FUZZ_ANY_CALLS == 14;
}

/* Inside, every call that takes a context is refused, whichever context it names. */
static void call_inside(const fuzz_event *e)
{
    acs_context *none = NULL;
    unsigned which = e->step->a ^ e->step->index;
    acs_status status = which % 8 ? fuzz_any_call(e->session->context, which) : acs_open(NULL, &none);
    if (status != ACS_ERR_STATE)
        fuzz_fail("step %u: call %u from inside returned %s", e->step->index, which, acs_status_name(status));
    if (which % 8 && queues_op(which))
        atomic_fetch_or(&e->session->refused, 1u << ACS_ERR_STATE); /* the context tells of it */
}

/* ------------------------------------------------------------------------------------------------------------ bodies */

int fuzz_body(fuzz_event *e)
{
    atomic_store(&e->began, atomic_fetch_add(&e->session->sequence, 1) + 1);
    if (atomic_fetch_add(&e->times, 1))
        fuzz_fail("step %u (%s) ran twice", e->step->index, fuzz_kind_name(e->step->kind));
    if (e->step->calls_inside)
        call_inside(e);
    if (!e->step->fail)
        fuzz_work(e, false);
    atomic_store(&e->ended, atomic_fetch_add(&e->session->sequence, 1) + 1);
    return e->step->fail;
}

uint8_t fuzz_arg_byte(const fuzz_event *e, uint32_t arg, uint32_t k)
{
    return (uint8_t)(e->step->index * 31u + arg * 7u + k * 13u + (k >> 8));
}

static void check_args(const fuzz_event *e, void *const *args, bool aligned)
{
    for (uint32_t i = 0; i < e->step->arg_count; i++) {
        uint32_t bytes = e->step->arg_bytes[i];
        const uint8_t *at = args[i + 1];
        if (aligned && (bytes == 8 || bytes == 4 || bytes == 2) && (uintptr_t)at % bytes)
            fuzz_fail("step %u: argument %u is misaligned", e->step->index, i);
        for (uint32_t k = 0; k < bytes; k++)
            if (at[k] != fuzz_arg_byte(e, i, k))
                fuzz_fail("step %u: byte %u of argument %u is %02x", e->step->index, k, i, at[k]);
    }
}

void fuzz_kernel_body(const acs_grid *grid, void *const *args)
{
    fuzz_event *e;
    memcpy(&e, args[0], sizeof e);
    check_args(e, args, true);
    if (grid->shared_bytes != e->step->a || !grid->shared != !e->step->a)
        fuzz_fail("step %u: %u bytes of shared memory became %u", e->step->index, e->step->a, (unsigned)grid->shared_bytes);
    for (uint32_t i = 0; i < grid->shared_bytes; i++)
        if (((uint8_t *)grid->shared)[i]++)
            fuzz_fail("step %u: shared memory is not zeroed", e->step->index);
    (void)fuzz_body(e);
}

static fuzz_event *closure_event(void *closure, fuzz_event *borrowed)
{
    fuzz_closure *c = closure;
    fuzz_event *e = borrowed ? borrowed : c->event;
    if (e->step->borrowed)
        return e;
    for (uint32_t i = 0; i < e->closure; i++)
        if (c->words[i] != fuzz_mix(e->step->index + i))
            fuzz_fail("step %u: word %u of the closure is wrong", e->step->index, i);
    return e;
}

int fuzz_host_body(void *closure)
{
    return fuzz_body(closure_event(closure, NULL));
}

int fuzz_host_borrowed(void *closure)
{
    return fuzz_body(closure_event(NULL, closure));
}

void fuzz_place_destroy(void *place)
{
    atomic_fetch_add(&((fuzz_session *)place)->destroyed, 1);
}

int fuzz_call_body(const acs_call_env *env, void *closure)
{
    fuzz_event *e = closure_event(closure, NULL);
    uint32_t scratch = e->step->a & 0xf0u;
    if (env->stream || env->device != -1 || env->slot < 0 || env->scratch_bytes != scratch || !env->scratch != !scratch)
        fuzz_fail("step %u: a call was given the wrong environment", e->step->index);
    if (scratch)
        memset(env->scratch, e->step->index, scratch);
    if (!env->place != !(e->step->a & 3))
        fuzz_fail("step %u: a place was asked for and not given, or the reverse", e->step->index);
    if (env->place && *env->place && *env->place != (void *)e->session)
        fuzz_fail("step %u: the place of another context", e->step->index);
    if (env->place && !*env->place) {
        *env->place = e->session;
        atomic_fetch_add(&e->session->places, 1);
    }
    return fuzz_body(e);
}

void fuzz_retire_body(void *user, acs_op op, acs_status status)
{
    fuzz_event *e = user;
    e->told_op = op;
    e->told = status;
    (void)fuzz_body(e);
}

/* -------------------------------------------------------------------------------------------------------- footprints */

enum { LONG_LIST = 40 }; /* more than the library guesses */

size_t fuzz_footprint(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    fuzz_event *e = (fuzz_event *)(uintptr_t)in->user;
    const fuzz_step *s = e->step;
    size_t wanted = s->many || s->wrong == FUZZ_IMPURE ? LONG_LIST : s->computed;
    if (s->kind == FUZZ_KERNEL && in->arg_count == s->arg_count + 1u)
        check_args(e, in->args, false);
    if (s->calls_inside)
        call_inside(e);
    if (s->wrong == FUZZ_COUNTLESS)
        return SIZE_MAX - s->a;
    if (s->wrong == FUZZ_IMPURE && e->asked++)
        return wanted + 1;
    if (capacity < wanted)
        return wanted;
    memset(out, 0, wanted * sizeof *out);
    for (size_t i = 0; i < wanted; i++) /* those behind the step's own are empty */
        out[i].access = ACS_READ;
    memcpy(out, e->segments + s->segment_count - s->computed, s->computed * sizeof *out);
    return wanted;
}

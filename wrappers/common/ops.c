/*
 * How wrappers queue their ops: parameters of acs_call, refusals, and questions to a library that are asked on the device.
 * Called by the public functions of every wrapper. It uses nothing of ACS but acs.h, and computes nothing.
 */
#include "common/wrap.h"

#include <stdlib.h>
#include <string.h>

/*
 * Program order has a hole where a call was refused, and acs_sync must say so. Only ACS can keep an error in a context, and
 * a call without a function is the one that it refuses with this site.
 */
static acs_op refused(acs_context *context, const acs_site *site)
{
    const acs_call_params nothing = {.size = sizeof nothing, .site = site};
    (void)acs_call(context, &nothing);
    return 0;
}

void acs_wrap_fill(acs_wrap_call *call, const acs_wrap_kind *kind, const acs_site *site, const void *closure,
                   size_t closure_bytes, size_t count, size_t scratch_bytes)
{
    memcpy(call->closure, closure, closure_bytes);
    call->params = (acs_call_params){
        .size = sizeof call->params,
        .function = kind->run,
        .closure = call->closure,
        .closure_bytes = closure_bytes,
        .scratch_bytes = scratch_bytes,
        .place_key = kind->place_key,
        .place_destroy = kind->place_destroy,
        .uses = {call->segments, count, NULL, NULL, 0},
        .site = site,
    };
}

acs_status acs_wrap_load_status(bool (*load)(const char **why), const acs_site *site)
{
    const char *why;
    return load(&why) ? ACS_OK : acs_wrap_fail(ACS_ERR_UNSUPPORTED, site, "%s", why);
}

acs_op acs_wrap_queue(acs_context *context, acs_call_params *params, const acs_site *site, acs_status prepared,
                      bool (*load)(const char **why))
{
    const int backend = acs_context_backend(context);
    acs_op op;

    if (backend < 0)
        return acs_wrap_refused_by_acs();
    if (prepared != ACS_OK || (backend == ACS_BACKEND_CUDA && acs_wrap_load_status(load, site) != ACS_OK))
        return refused(context, site);
    if (backend != ACS_BACKEND_CUDA)
        params->scratch_bytes = 0; /* the CPU's loops need none */
    op = acs_call(context, params);
    return op ? op : acs_wrap_refused_by_acs();
}

/* What an op asks: a function with its copy of the argument. */
typedef struct question {
    acs_call_fn function;
    void *copy;
} question;

/* In a capture nothing is asked: the library might do there what captures forbid, and the capture would be lost. */
static int run_question(const acs_call_env *env, void *closure)
{
    question *const q = closure;
    return env->slot < 0 ? 0 : q->function(env, &q->copy);
}

/* @return the status of an op that asked, or why it cannot ask. `lasting`: the op may still run later */
static acs_status finish_question(acs_context *context, acs_op op, const acs_site *site, bool *lasting)
{
    acs_status status;

    *lasting = false;
    if (!op)
        return acs_wrap_last_error(NULL);
    if (op & ACS_OP_CAPTURED)
        return acs_wrap_fail(ACS_ERR_STATE, site, "it cannot be called inside a capture; call it before");
    *lasting = op & ACS_OP_HELD;
    if (*lasting)
        return acs_wrap_fail(ACS_ERR_STATE, site, "it cannot be called inside a group; cancel the group");
    status = acs_wait(context, op);
    *lasting = status != ACS_OK;
    if (status != ACS_OK)
        (void)acs_wrap_refused_by_acs();
    return status;
}

/* Where the op may run after the call has returned, the copy stays behind: the op may use it. */
static acs_status ask(acs_context *context, const acs_site *site, acs_call_fn function, void *argument, size_t bytes,
                      bool (*load)(const char **why))
{
    question q = {function, malloc(bytes)};
    acs_call_params params = {.size = sizeof params, .function = run_question, .closure = &q, .closure_bytes = sizeof q,
                              .site = site};
    acs_status status;
    bool lasting;

    if (!q.copy)
        return acs_wrap_fail(ACS_ERR_MEMORY, site, "no memory to ask the library");
    memcpy(q.copy, argument, bytes);
    status = finish_question(context, acs_wrap_queue(context, &params, site, ACS_OK, load), site, &lasting);
    if (!lasting) {
        memcpy(argument, q.copy, bytes);
        free(q.copy);
    }
    return status;
}

acs_status acs_wrap_ask(acs_context *context, const acs_site *site, acs_call_fn function, void *argument, size_t bytes,
                        bool (*load)(const char **why))
{
    const int backend = acs_context_backend(context);

    if (backend < 0) {
        (void)acs_wrap_refused_by_acs();
        return acs_wrap_last_error(NULL);
    }
    return backend == ACS_BACKEND_CUDA ? ask(context, site, function, argument, bytes, load) : ACS_OK;
}

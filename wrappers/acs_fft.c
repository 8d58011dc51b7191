/*
 * The calls of acs_fft.h: plans are made, arguments checked, footprints made from them, and ops queued. Called by programs
 * from any thread. Computes nothing: fft/host.c and fft/cuda.c do, when the op runs.
 */
#include "acs_fft.h"
#include "fft/fft.h"

#include <stdlib.h>

ACS_WRAP_ROOM(acs_fft_args);

static const char *const g_own_codes[] = {
    "the plan has no room for another device",
    "the plan was made for the host backends",
    NULL,
};
static const acs_wrap_codes g_codes = {"cuFFT", "cufftResult", acs_fft_cuda_load, NULL, g_own_codes};

size_t acs_fft_code_text(int code, char *text, size_t bytes)
{
    return acs_wrap_code_text(&g_codes, code, text, bytes);
}

acs_status acs_fft_load(void)
{
    static const acs_site site = {"acs_fft_load", NULL, 0};
    return acs_wrap_load_status(acs_fft_cuda_load, &site);
}

/* --------------------------------------------------------------------------------------------------------------- plans */

static const acs_site g_create_site = {"acs_fft_plan_create", NULL, 0};

static acs_status check_fields(const acs_fft_params *p)
{
    const acs_site *const site = &g_create_site;

    if (p->size != sizeof *p)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "params.size is %zu; it must be %zu", p->size, sizeof *p);
    if (p->kind != ACS_FFT_C2C && p->kind != ACS_FFT_R2C && p->kind != ACS_FFT_C2R)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "kind is %d; it must be 0, 1 or 2", (int)p->kind);
    if (p->precise != 0 && p->precise != 1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "precise is %d; it must be 0 or 1", p->precise);
    if (p->rank < 1 || p->rank > ACS_FFT_RANK_MAX)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "rank is %d; it must be 1 to %d", p->rank, ACS_FFT_RANK_MAX);
    for (int i = 0; i < p->rank; i++)
        if (p->n[i] < 1)
            return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "n[%d] is %d; it must be at least 1", i, p->n[i]);
    if (p->batch < 1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "batch is %d; it must be at least 1", p->batch);
    return ACS_OK;
}

/* Bytes of one side of the batch: `complex`: of pairs; `half`: with n / 2 + 1 in the last dimension. 0: too many. */
static size_t side_bytes(const acs_fft_params *p, bool complex, bool half)
{
    size_t bytes = (p->precise ? sizeof(double) : sizeof(float)) * (complex ? 2u : 1u) * (size_t)p->batch;

    for (int i = 0; i < p->rank; i++)
        if (__builtin_mul_overflow(bytes, i == p->rank - 1 && half ? acs_fft_half(p) : (size_t)p->n[i], &bytes))
            return 0;
    return bytes <= SIZE_MAX / 2 ? bytes : 0;
}

/* A question to cuFFT, for acs_wrap_ask. */
typedef struct asked {
    acs_fft_plan *plan;
    int code;
} asked;

static int make_plan(const acs_call_env *env, void *closure)
{
    asked *const a = *(asked **)closure;
    a->code = acs_fft_cuda_make(env, a->plan);
    return 0;
}

/* After ACS_ERR_STATE the plan stays behind: in a group its op may run later, and uses it. */
static acs_status make_or_release(acs_context *context, acs_fft_plan *plan)
{
    asked a = {plan, 0};
    acs_status status = acs_wrap_ask(context, &g_create_site, make_plan, &a, sizeof a, acs_fft_cuda_load);
    char text[200];

    if (status == ACS_OK && a.code) {
        (void)acs_fft_code_text(a.code, text, sizeof text);
        status = acs_wrap_fail(ACS_ERR_HOST, &g_create_site, "%s", text);
    }
    if (status != ACS_OK && status != ACS_ERR_STATE)
        acs_fft_plan_destroy(plan);
    return status;
}

acs_status acs_fft_plan_create(acs_context *context, const acs_fft_params *params, acs_fft_plan **plan)
{
    acs_fft_plan *made;

    if (!params || !plan)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_create_site, "%s is NULL", params ? "plan" : "params");
    if (check_fields(params) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    made = calloc(1, sizeof *made);
    if (!made)
        return acs_wrap_fail(ACS_ERR_MEMORY, &g_create_site, "no memory for a plan");
    made->params = *params;
    made->in_bytes = side_bytes(params, params->kind != ACS_FFT_R2C, params->kind == ACS_FFT_C2R);
    made->out_bytes = side_bytes(params, params->kind != ACS_FFT_C2R, params->kind == ACS_FFT_R2C);
    if (!made->in_bytes || !made->out_bytes) {
        free(made);
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_create_site, "the transforms have more bytes than memory can have");
    }
    const acs_status status = make_or_release(context, made);
    if (status == ACS_OK)
        *plan = made;
    return status;
}

void acs_fft_plan_destroy(acs_fft_plan *plan)
{
    if (plan && plan->machine)
        acs_fft_cuda_destroy(plan);
    free(plan);
}

/* ---------------------------------------------------------------------------------------------------------- transforms */

static const acs_site g_exec_site = {"acs_fft_exec", NULL, 0};

static int run(const acs_call_env *env, void *closure)
{
    const acs_fft_args *const args = closure;
    return env->device >= 0 ? acs_fft_cuda_run(env, args) : acs_fft_host_run(args);
}

static acs_status check_exec(const acs_fft_plan *plan, const void *in, const void *out, acs_fft_direction direction)
{
    static const int wanted[] = {[ACS_FFT_R2C] = ACS_FFT_FORWARD, [ACS_FFT_C2R] = ACS_FFT_INVERSE};
    const acs_site *const site = &g_exec_site;

    if (!plan || !in || !out)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "%s is NULL", !plan ? "plan" : !in ? "in" : "out");
    if (direction != ACS_FFT_FORWARD && direction != ACS_FFT_INVERSE)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "direction is %d; it must be -1 or 1", (int)direction);
    if (plan->params.kind != ACS_FFT_C2C && (int)direction != wanted[plan->params.kind])
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "direction is %d; this plan's kind needs %d", (int)direction,
                             wanted[plan->params.kind]);
    if (plan->params.kind != ACS_FFT_C2C && in == out)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "in equals out; real transforms need separate memory");
    return ACS_OK;
}

acs_status acs_fft_exec_prepare(acs_wrap_call *call, acs_fft_plan *plan, const void *in, void *out,
                                acs_fft_direction direction)
{
    static const acs_wrap_kind kind = {acs_fft_cuda_load, run, NULL, NULL};
    const acs_fft_args args = {plan, in, out, (int64_t)direction};
    size_t count = 0;

    if (!call)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_exec_site, "call is NULL");
    if (check_exec(plan, in, out, direction) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    if (in == out)
        call->segments[count++] = ACS_INOUT(out, plan->out_bytes);
    else {
        call->segments[count++] = plan->params.kind == ACS_FFT_C2R ? ACS_INOUT(in, plan->in_bytes)
                                                                   : ACS_IN(in, plan->in_bytes);
        call->segments[count++] = ACS_OUT(out, plan->out_bytes);
    }
    acs_wrap_fill(call, &kind, &g_exec_site, &args, sizeof args, count,
                  acs_wrap_scratch(plan->work_bytes));
    return ACS_OK;
}

acs_op acs_fft_exec(acs_context *context, acs_fft_plan *plan, const void *in, void *out, acs_fft_direction direction)
{
    acs_wrap_call call;
    const acs_status prepared = acs_fft_exec_prepare(&call, plan, in, out, direction);
    return acs_wrap_queue(context, &call.params, &g_exec_site, prepared, acs_fft_cuda_load);
}

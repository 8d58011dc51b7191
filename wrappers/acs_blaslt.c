/*
 * The calls of acs_blaslt.h: arguments are checked, footprints made from them, and ops queued. Called by programs from any
 * thread. Computes nothing: blaslt/host.c and blaslt/cuda.c do, when the op runs.
 */
#include "acs_blaslt.h"
#include "blaslt/blaslt.h"

ACS_WRAP_ROOM(acs_blaslt_args);

static const char *const g_own_codes[] = {"cuBLASLt has no algorithm for this product", NULL};
static const acs_wrap_codes g_codes = {"cuBLASLt", "cublasStatus_t", acs_blaslt_cuda_load, NULL, g_own_codes};
static const acs_site g_site = {"acs_blaslt_matmul", NULL, 0};

size_t acs_blaslt_code_text(int code, char *text, size_t bytes)
{
    return acs_wrap_code_text(&g_codes, code, text, bytes);
}

acs_status acs_blaslt_load(void)
{
    static const acs_site site = {"acs_blaslt_load", NULL, 0};
    return acs_wrap_load_status(acs_blaslt_cuda_load, &site);
}

/* ----------------------------------------------------------------------------------------------------------- arguments */

static acs_status check_fields(const acs_blaslt_matmul_params *p)
{
    if (p->size != sizeof *p)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_site, "params.size is %zu; it must be %zu", p->size, sizeof *p);
    if (p->type != ACS_BLASLT_F32 && p->type != ACS_BLASLT_F16 && p->type != ACS_BLASLT_BF16)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_site, "type is %d; it must be 0, 1 or 2", (int)p->type);
    if ((p->transa | p->transb) & ~1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_site, "transa is %d and transb %d; they must be 0 or 1", p->transa,
                             p->transb);
    if (p->activation != ACS_BLASLT_NONE && p->activation != ACS_BLASLT_RELU && p->activation != ACS_BLASLT_GELU)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_site, "activation is %d; it must be 0, 1 or 2", (int)p->activation);
    if (p->m < 0 || p->n < 0 || p->k < 1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_site, "m, n, k are %d, %d, %d; they must be at least 0, 0, 1", p->m,
                             p->n, p->k);
    return ACS_OK;
}

/* A matrix as the program named it. */
typedef struct operand {
    const char *name;
    const void *p;
    int rows, columns, distance;
    acs_access access;
} operand;

/* C and D where C is read from other memory; the last one is D. @return how many */
static size_t operands_of(const acs_blaslt_matmul_params *p, operand list[4])
{
    const bool reads_c = p->beta != 0, in_place = reads_c && p->c == p->d;
    size_t count = 2;

    list[0] = (operand){"a", p->a, p->transa ? p->k : p->m, p->transa ? p->m : p->k, p->lda, ACS_READ};
    list[1] = (operand){"b", p->b, p->transb ? p->n : p->k, p->transb ? p->k : p->n, p->ldb, ACS_READ};
    if (reads_c && !in_place)
        list[count++] = (operand){"c", p->c, p->m, p->n, p->ldc, ACS_READ};
    list[count++] = (operand){"d", p->d, p->m, p->n, p->ldd, in_place ? ACS_UPDATE : ACS_WRITE};
    return count;
}

static bool touches_nothing(int m, int n)
{
    return m == 0 || n == 0;
}

static acs_status check_operand(const operand *o)
{
    if (o->distance < o->rows || o->distance < 1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_site, "ld%s is %d; it must be at least %d, the rows of %s", o->name,
                             o->distance, o->rows > 1 ? o->rows : 1, o->name);
    if (!o->p && o->rows && o->columns)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_site, "%s is NULL", o->name);
    return ACS_OK;
}

static acs_status check_places(const acs_blaslt_matmul_params *p)
{
    if (p->beta != 0 && p->c == p->d && p->ldc != p->ldd)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_site, "ldc is %d and ldd %d; they must be equal where c is d", p->ldc,
                             p->ldd);
    return ACS_OK;
}

/* ---------------------------------------------------------------------------------------------------- prepare and queue */

static int run(const acs_call_env *env, void *closure)
{
    const acs_blaslt_args *const args = closure;

    if (touches_nothing(args->shape.m, args->shape.n))
        return 0;
    if (env->device >= 0)
        return acs_blaslt_cuda_run(env, args);
    acs_blaslt_host_run(args);
    return 0;
}

/* Where C is not read, D stands for it: cuBLASLt wants an address and a layout. */
static acs_blaslt_args args_of(const acs_blaslt_matmul_params *p)
{
    const bool reads_c = p->beta != 0;
    return (acs_blaslt_args){
        p->a, p->b, reads_c ? p->c : p->d, p->bias, p->d, p->alpha, p->beta,
        {(int)p->type, p->transa, p->transb, p->m, p->n, p->k, p->lda, p->ldb, reads_c ? p->ldc : p->ldd, p->ldd,
         (int)p->activation, p->bias != NULL}};
}

static size_t name_segments(const acs_blaslt_matmul_params *p, const operand *list, size_t count, acs_segment *s)
{
    const uint64_t size = p->type == ACS_BLASLT_F32 ? 4 : 2;

    if (touches_nothing(p->m, p->n))
        return 0;
    for (size_t i = 0; i < count; i++)
        s[i] = ACS_TILE_(list[i].access, list[i].p, (uint64_t)list[i].rows * size, list[i].columns,
                         (uint64_t)list[i].distance * size);
    if (p->bias)
        s[count++] = ACS_IN(p->bias, (uint64_t)p->m * size);
    return count;
}

acs_status acs_blaslt_matmul_prepare(acs_wrap_call *call, const acs_blaslt_matmul_params *params)
{
    static const char place_key = 0; /* names the places that hold the handles */
    static const acs_wrap_kind kind = {acs_blaslt_cuda_load, run, &place_key, acs_wrap_handles_destroy};
    operand list[4];
    size_t count;

    if (!call || !params)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_site, "%s is NULL", call ? "params" : "call");
    if (check_fields(params) != ACS_OK || check_places(params) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    count = operands_of(params, list);
    for (size_t i = 0; i < count; i++)
        if (check_operand(&list[i]) != ACS_OK)
            return ACS_ERR_ARGUMENT;
    const acs_blaslt_args args = args_of(params);
    acs_wrap_fill(call, &kind, &g_site, &args, sizeof args, name_segments(params, list, count, call->segments),
                  ACS_BLASLT_WORKSPACE_BYTES);
    call->params.repeatable = 1;
    call->params.pointers = (1u << ACS_BLASLT_POINTERS) - 1;
    return ACS_OK;
}

acs_op acs_blaslt_matmul(acs_context *context, const acs_blaslt_matmul_params *params)
{
    acs_wrap_call call;
    const acs_status prepared = acs_blaslt_matmul_prepare(&call, params);
    return acs_wrap_queue(context, &call.params, &g_site, prepared, acs_blaslt_cuda_load);
}

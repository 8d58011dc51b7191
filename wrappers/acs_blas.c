/*
 * The calls of acs_blas.h: arguments are checked, footprints made from them, and the op is queued by acs_call. Called by
 * programs from any thread. Computes nothing: blas/host.c and blas/cuda.c do, when the op runs. Uses nothing of ACS but
 * acs.h.
 */
#include "acs_blas.h"
#include "blas/blas.h"
#include "common/wrap.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(acs_blas_args) <= ACS_BLAS_CLOSURE_WORDS * sizeof(uint64_t), "room for the arguments");

/* ------------------------------------------------------------------------------------------------------------- errors */

acs_status acs_blas_last_error(acs_error *error)
{
    return acs_wrap_last_error(error);
}

size_t acs_blas_code_text(int code, char *text, size_t bytes)
{
    const char *why = NULL;
    int length;

    if (code == ACS_BLAS_CODE_LIBRARY)
        length = snprintf(text, bytes, "%s", acs_blas_cuda_load(&why) ? "a library was not found" : why);
    else if (code == ACS_BLAS_CODE_MEMORY)
        length = snprintf(text, bytes, "no memory for the handles of a slot");
    else if (code == ACS_BLAS_CODE_SCRATCH)
        length = snprintf(text, bytes, "cuSOLVER asks for more memory than the op's scratch_bytes");
    else if (code >= ACS_BLAS_CODE_CUSOLVER)
        length = snprintf(text, bytes, "cuSOLVER returned cusolverStatus_t %d", code - ACS_BLAS_CODE_CUSOLVER);
    else if (code >= ACS_BLAS_CODE_CUBLAS)
        length = snprintf(text, bytes, "cuBLAS returned cublasStatus_t %d: %s", code - ACS_BLAS_CODE_CUBLAS,
                          (why = acs_blas_cuda_text(code - ACS_BLAS_CODE_CUBLAS)) ? why : "no text");
    else
        length = snprintf(text, bytes, "%d is no code of acs_blas", code);
    return length > 0 ? (size_t)length : 0;
}

/* ----------------------------------------------------------------------------------------------------------- arguments */

/* Arguments that choose one of two, by the name that the operation gives them. */
typedef struct choice {
    const char *name;
    size_t offset; /* in acs_blas_args */
    int one, other;
} choice;

enum { CHOICE_TRANS = 1, CHOICE_TRANSA = 2, CHOICE_TRANSB = 4, CHOICE_SIDE = 8, CHOICE_UPLO = 16, CHOICE_DIAG = 32 };

static const choice g_choices[] = {
    {"trans", offsetof(acs_blas_args, transa), ACS_BLAS_N, ACS_BLAS_T},
    {"transa", offsetof(acs_blas_args, transa), ACS_BLAS_N, ACS_BLAS_T},
    {"transb", offsetof(acs_blas_args, transb), ACS_BLAS_N, ACS_BLAS_T},
    {"side", offsetof(acs_blas_args, side), ACS_BLAS_LEFT, ACS_BLAS_RIGHT},
    {"uplo", offsetof(acs_blas_args, uplo), ACS_BLAS_UPPER, ACS_BLAS_LOWER},
    {"diag", offsetof(acs_blas_args, diag), ACS_BLAS_NON_UNIT, ACS_BLAS_UNIT},
};

static const unsigned g_choices_of[ACS_BLAS_KINDS] = {
    [ACS_BLAS_GEMM] = CHOICE_TRANSA | CHOICE_TRANSB,
    [ACS_BLAS_SYRK] = CHOICE_UPLO | CHOICE_TRANS,
    [ACS_BLAS_TRSM] = CHOICE_SIDE | CHOICE_UPLO | CHOICE_TRANSA | CHOICE_DIAG,
    [ACS_BLAS_GEMV] = CHOICE_TRANS,
    [ACS_BLAS_POTRF] = CHOICE_UPLO,
};

static acs_status check_choices(const acs_blas_args *args, const acs_site *site)
{
    for (size_t i = 0; i < sizeof g_choices / sizeof g_choices[0]; i++) {
        const choice *c = &g_choices[i];
        int value;
        if (!(g_choices_of[args->kind] & 1u << i))
            continue;
        memcpy(&value, (const char *)args + c->offset, sizeof value);
        if (value != c->one && value != c->other)
            return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "%s is %d; it must be %d or %d", c->name, value, c->one,
                                 c->other);
    }
    return ACS_OK;
}

/* n is looked at first: operations that have no m were given a copy of n for it. */
static acs_status check_sizes(const acs_blas_args *args, const acs_site *site)
{
    const bool factorization = args->kind == ACS_BLAS_POTRF || args->kind == ACS_BLAS_GETRF;
    const struct {
        char name;
        int value;
    } sizes[] = {{'n', args->n}, {'m', args->m}, {'k', args->k}};

    for (int i = 0; i < 3; i++) {
        if (sizes[i].value < 0)
            return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "%c is %d; it must not be negative", sizes[i].name,
                                 sizes[i].value);
        if (factorization && sizes[i].value == 0 && sizes[i].name != 'k')
            return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "%c is 0; there is nothing to factor", sizes[i].name);
    }
    return ACS_OK;
}

/* ----------------------------------------------------------------------------------------------------------- operands */

/* What an operation is given to work on, as the program named it. */
typedef struct operand {
    const char *name, *distance_name;
    const void *p;
    int rows, columns; /* of a vector: 1 and its elements */
    int distance;      /* lda and the like, or incx and the like */
    acs_access access;
} operand;

/* A dimension pair of a matrix that `trans` turns round. */
static operand matrix(const char *name, const char *distance_name, const void *p, bool turned, int rows, int columns,
                      int distance, acs_access access)
{
    return (operand){name, distance_name, p, turned ? columns : rows, turned ? rows : columns, distance, access};
}

static acs_access output_of(const acs_blas_args *args)
{
    return args->beta == 0 ? ACS_WRITE : ACS_UPDATE;
}

/* Fills in what the operation works on, in the order of its arguments. */
static size_t operands_of(const acs_blas_args *a, operand *list)
{
    const bool turned = a->transa == ACS_BLAS_T;
    const int order = a->side == ACS_BLAS_LEFT ? a->m : a->n; /* of trsm's A */

    switch ((acs_blas_kind)a->kind) {
    case ACS_BLAS_GEMM:
        list[0] = matrix("a", "lda", a->a, turned, a->m, a->k, a->lda, ACS_READ);
        list[1] = matrix("b", "ldb", a->b, a->transb == ACS_BLAS_T, a->k, a->n, a->ldb, ACS_READ);
        list[2] = matrix("c", "ldc", a->c, false, a->m, a->n, a->ldc, output_of(a));
        return 3;
    case ACS_BLAS_SYRK: /* only a triangle of C is written: never `out` */
        list[0] = matrix("a", "lda", a->a, turned, a->n, a->k, a->lda, ACS_READ);
        list[1] = matrix("c", "ldc", a->c, false, a->n, a->n, a->ldc, ACS_UPDATE);
        return 2;
    case ACS_BLAS_TRSM:
        list[0] = matrix("a", "lda", a->a, false, order, order, a->lda, ACS_READ);
        list[1] = matrix("b", "ldb", a->c, false, a->m, a->n, a->ldc, ACS_UPDATE);
        return 2;
    case ACS_BLAS_GEMV:
        list[0] = matrix("a", "lda", a->a, false, a->m, a->n, a->lda, ACS_READ);
        list[1] = (operand){"x", "incx", a->b, 1, turned ? a->m : a->n, a->ldb, ACS_READ};
        list[2] = (operand){"y", "incy", a->c, 1, turned ? a->n : a->m, a->ldc, output_of(a)};
        return 3;
    case ACS_BLAS_AXPY:
        list[0] = (operand){"x", "incx", a->b, 1, a->n, a->ldb, ACS_READ};
        list[1] = (operand){"y", "incy", a->c, 1, a->n, a->ldc, ACS_UPDATE};
        return 2;
    case ACS_BLAS_POTRF:
    case ACS_BLAS_GETRF:
        list[0] = matrix("a", "lda", a->c, false, a->m, a->n, a->ldc, ACS_UPDATE);
        return 1;
    case ACS_BLAS_KINDS:
        break;
    }
    return 0;
}

static bool touches_nothing(const acs_blas_args *args)
{
    return args->m == 0 || args->n == 0;
}

static bool is_vector(const operand *o)
{
    return o->distance_name[0] == 'i'; /* incx, incy */
}

static acs_status check_operand(const operand *o, bool touched, const acs_site *site)
{
    if (is_vector(o) && o->distance == 0)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "%s is 0; elements of %s must be apart", o->distance_name,
                             o->name);
    if (!is_vector(o) && (o->distance < o->rows || o->distance < 1))
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "%s is %d; it must be at least %d, the rows of %s", o->distance_name,
                             o->distance, o->rows > 1 ? o->rows : 1, o->name);
    if (!o->p && touched && o->rows && o->columns)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "%s is NULL", o->name);
    return ACS_OK;
}

/* The bytes of an operand: its columns are the rows of a tile; elements of a vector that are apart are one row each. */
static acs_segment segment_of(const operand *o, size_t size)
{
    const uint64_t distance = (uint64_t)(o->distance < 0 ? -(int64_t)o->distance : o->distance);

    if (is_vector(o) && distance == 1)
        return ACS_BYTES_(o->access, o->p, (uint64_t)o->columns * size);
    return ACS_TILE_(o->access, o->p, (uint64_t)o->rows * size, o->columns, distance * size);
}

/* ---------------------------------------------------------------------------------------------------- prepare and queue */

/* The op's function. A device of -1 is the host backends' word for the CPU. */
static int run(const acs_call_env *env, void *closure)
{
    acs_blas_args args;

    memcpy(&args, closure, sizeof args); /* where the copy lies is of another type */
    if (touches_nothing(&args))
        return 0;
    if (env->device >= 0)
        return acs_blas_cuda_run(env, &args);
    acs_blas_host_run(&args);
    return 0;
}

/* Names the places that hold the handles. */
static const char g_place_key = 0;

/*
 * cuSOLVER tells what it needs only on the device. Twice the matrix and a little more is ample; smaller factorizations ask
 * what all ops ask, so that a slot's scratch is allocated once.
 */
static size_t scratch_of(const acs_blas_args *args)
{
    const bool factorization = args->kind == ACS_BLAS_POTRF || args->kind == ACS_BLAS_GETRF;
    const size_t matrix_bytes = (size_t)args->m * (size_t)args->n * (args->precise ? sizeof(double) : sizeof(float));
    const size_t wanted = factorization ? ACS_BLAS_INFO_BYTES + 2 * matrix_bytes + (1u << 20) : 0;
    return wanted > ACS_BLAS_WORKSPACE_BYTES ? wanted : ACS_BLAS_WORKSPACE_BYTES;
}

static uint64_t pointer_at(size_t offset)
{
    return UINT64_C(1) << offset / 8;
}

static acs_status prepare(acs_blas_call *call, const acs_site *site, const acs_blas_args *args)
{
    operand operands[ACS_BLAS_SEGMENTS_MAX];
    const size_t size = args->precise ? sizeof(double) : sizeof(float);
    size_t count;

    if (!call)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "call is NULL");
    if (check_choices(args, site) != ACS_OK || check_sizes(args, site) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    count = operands_of(args, operands);
    for (size_t i = 0; i < count; i++) {
        if (check_operand(&operands[i], !touches_nothing(args), site) != ACS_OK)
            return ACS_ERR_ARGUMENT;
        call->segments[i] = segment_of(&operands[i], size);
    }
    if (args->info)
        call->segments[count++] = ACS_OUT(args->info, sizeof *args->info);
    memcpy(call->closure, args, sizeof *args);
    call->params = (acs_call_params){
        .size = sizeof call->params,
        .function = run,
        .closure = call->closure,
        .closure_bytes = sizeof *args,
        .scratch_bytes = scratch_of(args),
        .place_key = &g_place_key,
        .place_destroy = acs_blas_cuda_place_destroy,
        .uses = {call->segments, touches_nothing(args) ? 0 : count, NULL, NULL, 0},
        .site = site,
        .repeatable = 1,
        .pointers = pointer_at(offsetof(acs_blas_args, a)) | pointer_at(offsetof(acs_blas_args, b)) |
                    pointer_at(offsetof(acs_blas_args, c)) | pointer_at(offsetof(acs_blas_args, info)),
    };
    return ACS_OK;
}

acs_status acs_blas_load(void)
{
    static const acs_site site = {"acs_blas_load", NULL, 0};
    return acs_wrap_load_status(acs_blas_cuda_load, &site);
}

/*
 * The public functions. An entry is: the operation, its parameters, their names, and the members of acs_blas_args that
 * they become.
 */
#define UNWRAP(...) __VA_ARGS__
#define ENTRY(operation, parameters, names, ...)                                                                       \
    static const acs_site SITE(operation) = {NAME_TEXT(operation), NULL, 0};                                           \
    acs_status NAME(operation##_prepare)(acs_blas_call *call, UNWRAP parameters)                                       \
    {                                                                                                                  \
        const acs_blas_args args = {.precise = PRECISE, __VA_ARGS__};                                                  \
        return prepare(call, &SITE(operation), &args);                                                                 \
    }                                                                                                                  \
    acs_op NAME(operation)(acs_context *context, UNWRAP parameters)                                                    \
    {                                                                                                                  \
        acs_blas_call call;                                                                                            \
        const acs_status prepared = NAME(operation##_prepare)(&call, UNWRAP names);                                    \
        return acs_wrap_queue(context, &call.params, &SITE(operation), prepared, acs_blas_cuda_load);                  \
    }

#define REAL float
#define PRECISE 0
#define NAME(operation) acs_blas_s##operation
#define NAME_TEXT(operation) "acs_blas_s" #operation
#define SITE(operation) g_site_s##operation
#include "blas/entry_real.h"
#undef REAL
#undef PRECISE
#undef NAME
#undef NAME_TEXT
#undef SITE

#define REAL double
#define PRECISE 1
#define NAME(operation) acs_blas_d##operation
#define NAME_TEXT(operation) "acs_blas_d" #operation
#define SITE(operation) g_site_d##operation
#include "blas/entry_real.h"

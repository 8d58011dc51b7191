/*
 * The operations on a GPU: cuBLAS and cuSOLVER, found at run time, so that programs start where they are missing. Called
 * by the thread that issues an op, with the slot's stream, scratch and place. Never synchronises, but for what the
 * libraries do when a slot's handles are made. Built without CUDA's headers it only says so.
 */
#include "blas/blas.h"
#include "common/wrap.h"

#if ACS_BLAS_HAVE_CUDA

#include <cublas_v2.h>
#include <cusolverDn.h>

#include <stdlib.h>

/* ---------------------------------------------------------------------------------------------------------- libraries */

/* Every function under its own name, filled by acs_wrap_load. */
static struct {
#define CUBLAS(function) __typeof__(&function) function;
#define CUSOLVER(function) __typeof__(&function) function;
#include "blas/cuda.def"
#undef CUBLAS
#undef CUSOLVER
} g;

static const acs_wrap_function g_cublas[] = {
#define CUBLAS(function) {#function, &g.function},
#define CUSOLVER(function)
#include "blas/cuda.def"
#undef CUBLAS
#undef CUSOLVER
};

static const acs_wrap_function g_cusolver[] = {
#define CUBLAS(function)
#define CUSOLVER(function) {#function, &g.function},
#include "blas/cuda.def"
#undef CUBLAS
#undef CUSOLVER
};

static const acs_wrap_library g_libraries[] = {
    {"libcublas.so." ACS_WRAP_TEXT(CUBLAS_VER_MAJOR), g_cublas, sizeof g_cublas / sizeof g_cublas[0]},
    {"libcusolver.so." ACS_WRAP_TEXT(CUSOLVER_VER_MAJOR), g_cusolver, sizeof g_cusolver / sizeof g_cusolver[0]},
};
static acs_wrap_loader g_loader = {g_libraries, 2, 0, ""};

bool acs_blas_cuda_load(const char **why)
{
    return acs_wrap_load(&g_loader, why);
}

const char *acs_blas_cuda_text(int cublas_status)
{
    const char *why;
    return acs_blas_cuda_load(&why) ? g.cublasGetStatusString((cublasStatus_t)cublas_status) : NULL;
}

/* ------------------------------------------------------------------------------------------------------------- handles */

typedef struct place {
    cublasHandle_t blas;
    cusolverDnHandle_t solver; /* made by the first factorization */
} place;

static int cublas_code(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? 0 : ACS_BLAS_CODE_CUBLAS + (int)status;
}

static int cusolver_code(cusolverStatus_t status)
{
    return status == CUSOLVER_STATUS_SUCCESS ? 0 : ACS_BLAS_CODE_CUSOLVER + (int)status;
}

void acs_blas_cuda_place_destroy(void *pointer)
{
    place *const p = pointer;

    /* The context closes: there is nobody left to tell of a failure. */
    if (p->solver)
        (void)g.cusolverDnDestroy(p->solver);
    if (p->blas)
        (void)g.cublasDestroy_v2(p->blas);
    free(p);
}

/* The slot's place with the handle that the operation needs; each is made once. */
static int place_of(const acs_call_env *env, bool solver, place **found)
{
    place *p = *env->place;

    if (!p) {
        p = calloc(1, sizeof *p);
        if (!p)
            return ACS_BLAS_CODE_MEMORY;
        *env->place = p;
    }
    *found = p;
    if (solver)
        return p->solver ? 0 : cusolver_code(g.cusolverDnCreate(&p->solver));
    return p->blas ? 0 : cublas_code(g.cublasCreate_v2(&p->blas));
}

/* -------------------------------------------------------------------------------------------------------------- cuBLAS */

static cublasOperation_t operation(int trans)
{
    return trans == ACS_BLAS_T ? CUBLAS_OP_T : CUBLAS_OP_N;
}

static cublasFillMode_t fill_mode(int uplo)
{
    return uplo == ACS_BLAS_LOWER ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
}

/* Each takes its scalars from the host while it is called: the handle's pointer mode is the default one. */
static cublasStatus_t gemm(cublasHandle_t h, const acs_blas_args *x)
{
    const cublasOperation_t ta = operation(x->transa), tb = operation(x->transb);
    const float alpha = (float)x->alpha, beta = (float)x->beta;
    return x->precise ? g.cublasDgemm_v2(h, ta, tb, x->m, x->n, x->k, &x->alpha, x->a, x->lda, x->b, x->ldb, &x->beta,
                                         x->c, x->ldc)
                      : g.cublasSgemm_v2(h, ta, tb, x->m, x->n, x->k, &alpha, x->a, x->lda, x->b, x->ldb, &beta, x->c,
                                         x->ldc);
}

static cublasStatus_t syrk(cublasHandle_t h, const acs_blas_args *x)
{
    const cublasFillMode_t uplo = fill_mode(x->uplo);
    const cublasOperation_t trans = operation(x->transa);
    const float alpha = (float)x->alpha, beta = (float)x->beta;
    return x->precise
               ? g.cublasDsyrk_v2(h, uplo, trans, x->n, x->k, &x->alpha, x->a, x->lda, &x->beta, x->c, x->ldc)
               : g.cublasSsyrk_v2(h, uplo, trans, x->n, x->k, &alpha, x->a, x->lda, &beta, x->c, x->ldc);
}

static cublasStatus_t trsm(cublasHandle_t h, const acs_blas_args *x)
{
    const cublasSideMode_t side = x->side == ACS_BLAS_LEFT ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
    const cublasFillMode_t uplo = fill_mode(x->uplo);
    const cublasOperation_t trans = operation(x->transa);
    const cublasDiagType_t diag = x->diag == ACS_BLAS_UNIT ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
    const float alpha = (float)x->alpha;
    return x->precise ? g.cublasDtrsm_v2(h, side, uplo, trans, diag, x->m, x->n, &x->alpha, x->a, x->lda, x->c, x->ldc)
                      : g.cublasStrsm_v2(h, side, uplo, trans, diag, x->m, x->n, &alpha, x->a, x->lda, x->c, x->ldc);
}

static cublasStatus_t gemv(cublasHandle_t h, const acs_blas_args *x)
{
    const cublasOperation_t trans = operation(x->transa);
    const float alpha = (float)x->alpha, beta = (float)x->beta;
    return x->precise ? g.cublasDgemv_v2(h, trans, x->m, x->n, &x->alpha, x->a, x->lda, x->b, x->ldb, &x->beta, x->c,
                                         x->ldc)
                      : g.cublasSgemv_v2(h, trans, x->m, x->n, &alpha, x->a, x->lda, x->b, x->ldb, &beta, x->c, x->ldc);
}

static cublasStatus_t axpy(cublasHandle_t h, const acs_blas_args *x)
{
    const float alpha = (float)x->alpha;
    return x->precise ? g.cublasDaxpy_v2(h, x->n, &x->alpha, x->b, x->ldb, x->c, x->ldc)
                      : g.cublasSaxpy_v2(h, x->n, &alpha, x->b, x->ldb, x->c, x->ldc);
}

/* A new stream takes the handle's workspace away, so it is given again; always of one size, for the choice of kernels. */
static int run_cublas(const acs_call_env *env, const acs_blas_args *args,
                      cublasStatus_t (*operation_of)(cublasHandle_t, const acs_blas_args *))
{
    place *p;
    int code = place_of(env, false, &p);

    if (code)
        return code;
    if (env->scratch_bytes < ACS_BLAS_WORKSPACE_BYTES)
        return ACS_BLAS_CODE_SCRATCH;
    code = cublas_code(g.cublasSetStream_v2(p->blas, env->stream));
    if (!code)
        code = cublas_code(g.cublasSetWorkspace_v2(p->blas, env->scratch, ACS_BLAS_WORKSPACE_BYTES));
    return code ? code : cublas_code(operation_of(p->blas, args));
}

/* ------------------------------------------------------------------------------------------------------------ cuSOLVER */

static cusolverStatus_t elements_wanted(cusolverDnHandle_t h, const acs_blas_args *x, int *elements)
{
    if (x->kind == ACS_BLAS_POTRF)
        return x->precise ? g.cusolverDnDpotrf_bufferSize(h, fill_mode(x->uplo), x->n, x->c, x->ldc, elements)
                          : g.cusolverDnSpotrf_bufferSize(h, fill_mode(x->uplo), x->n, x->c, x->ldc, elements);
    return x->precise ? g.cusolverDnDgetrf_bufferSize(h, x->m, x->n, x->c, x->ldc, elements)
                      : g.cusolverDnSgetrf_bufferSize(h, x->m, x->n, x->c, x->ldc, elements);
}

/* Without a place for pivots getrf exchanges no rows. */
static cusolverStatus_t factor(cusolverDnHandle_t h, const acs_blas_args *x, void *work, int elements, int *info)
{
    if (x->kind == ACS_BLAS_POTRF)
        return x->precise ? g.cusolverDnDpotrf(h, fill_mode(x->uplo), x->n, x->c, x->ldc, work, elements, info)
                          : g.cusolverDnSpotrf(h, fill_mode(x->uplo), x->n, x->c, x->ldc, work, elements, info);
    return x->precise ? g.cusolverDnDgetrf(h, x->m, x->n, x->c, x->ldc, work, NULL, info)
                      : g.cusolverDnSgetrf(h, x->m, x->n, x->c, x->ldc, work, NULL, info);
}

static int run_cusolver(const acs_call_env *env, const acs_blas_args *args)
{
    const size_t size = args->precise ? sizeof(double) : sizeof(float);
    place *p;
    int elements = 0, code = place_of(env, true, &p);

    if (!code)
        code = cusolver_code(g.cusolverDnSetStream(p->solver, env->stream));
    if (!code)
        code = cusolver_code(elements_wanted(p->solver, args, &elements));
    if (code)
        return code;
    if (ACS_BLAS_INFO_BYTES + (size_t)elements * size > env->scratch_bytes)
        return ACS_BLAS_CODE_SCRATCH;
    return cusolver_code(factor(p->solver, args, (char *)env->scratch + ACS_BLAS_INFO_BYTES, elements,
                                args->info ? args->info : env->scratch));
}

int acs_blas_cuda_run(const acs_call_env *env, const acs_blas_args *args)
{
    const char *why;

    if (!acs_blas_cuda_load(&why))
        return ACS_BLAS_CODE_LIBRARY;
    switch ((acs_blas_kind)args->kind) {
    case ACS_BLAS_GEMM: return run_cublas(env, args, gemm);
    case ACS_BLAS_SYRK: return run_cublas(env, args, syrk);
    case ACS_BLAS_TRSM: return run_cublas(env, args, trsm);
    case ACS_BLAS_GEMV: return run_cublas(env, args, gemv);
    case ACS_BLAS_AXPY: return run_cublas(env, args, axpy);
    case ACS_BLAS_POTRF:
    case ACS_BLAS_GETRF: return run_cusolver(env, args);
    case ACS_BLAS_KINDS: break;
    }
    return ACS_BLAS_CODE_LIBRARY;
}

#else /* no CUDA */

bool acs_blas_cuda_load(const char **why)
{
    *why = "this build of acs_blas has no cuBLAS: CUDA's headers were not there, or were not wanted";
    return false;
}

const char *acs_blas_cuda_text(int cublas_status)
{
    (void)cublas_status;
    return NULL;
}

void acs_blas_cuda_place_destroy(void *place)
{
    (void)place; /* none is ever made */
}

int acs_blas_cuda_run(const acs_call_env *env, const acs_blas_args *args)
{
    (void)env;
    (void)args;
    return ACS_BLAS_CODE_LIBRARY;
}

#endif

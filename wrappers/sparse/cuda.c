/*
 * Sparse products on a GPU: cuSPARSE, found at run time. Called by the thread that issues an op, with the slot's stream,
 * scratch memory and handle. Descriptors are made for each call; they are host memory alone. Never synchronises, but for
 * what cuSPARSE does when a handle is made. Built without CUDA's headers it only says so.
 */
#include "sparse/sparse.h"

#if ACS_SPARSE_HAVE_CUDA

#include <cusparse.h>

#include <stdlib.h>

#define FUNCTIONS(X)                                                                                                   \
    X(cusparseCreate) X(cusparseDestroy) X(cusparseSetStream) X(cusparseGetErrorString) X(cusparseCreateConstCsr)      \
    X(cusparseDestroySpMat) X(cusparseCreateConstDnVec) X(cusparseCreateDnVec) X(cusparseDestroyDnVec)                 \
    X(cusparseCreateConstDnMat) X(cusparseCreateDnMat) X(cusparseDestroyDnMat) X(cusparseSpMV)                         \
    X(cusparseSpMV_bufferSize) X(cusparseSpMM) X(cusparseSpMM_bufferSize)

static struct {
    FUNCTIONS(ACS_WRAP_MEMBER)
} g;
static const acs_wrap_function g_functions[] = {FUNCTIONS(ACS_WRAP_ROW)};
static const acs_wrap_library g_library = {"libcusparse.so." ACS_WRAP_TEXT(CUSPARSE_VER_MAJOR), g_functions,
                                           sizeof g_functions / sizeof g_functions[0]};
static acs_wrap_loader g_loader = {&g_library, 1, 0, ""};

bool acs_sparse_cuda_load(const char **why)
{
    return acs_wrap_load(&g_loader, why);
}

const char *acs_sparse_cuda_text(int status)
{
    return g.cusparseGetErrorString((cusparseStatus_t)status);
}

static int code_of(cusparseStatus_t status)
{
    return status == CUSPARSE_STATUS_SUCCESS ? 0 : ACS_WRAP_CODE_BASE + (int)status;
}

static int create(void **handle)
{
    cusparseHandle_t made = NULL;
    const int code = code_of(g.cusparseCreate(&made));
    *handle = made;
    return code;
}

static void destroy(void *handle)
{
    (void)g.cusparseDestroy(handle); /* the context closes: there is nobody to tell of a failure */
}

/* --------------------------------------------------------------------------------------------------------- descriptors */

/* The operands of one product: a vector or a matrix of each. What was not made is NULL. */
typedef struct operands {
    cusparseConstSpMatDescr_t a;
    cusparseConstDnVecDescr_t x;
    cusparseDnVecDescr_t y;
    cusparseConstDnMatDescr_t b;
    cusparseDnMatDescr_t c;
} operands;

static cudaDataType type_of(const acs_sparse_matrix *a)
{
    return a->precise ? CUDA_R_64F : CUDA_R_32F;
}

static cusparseStatus_t make_dense(const acs_sparse_args *x, operands *o)
{
    const cudaDataType type = type_of(&x->a);
    cusparseStatus_t status;

    if (x->n) {
        status = g.cusparseCreateConstDnMat(&o->b, x->a.columns, x->n, x->ldb, x->b, type, CUSPARSE_ORDER_COL);
        return status != CUSPARSE_STATUS_SUCCESS
                   ? status
                   : g.cusparseCreateDnMat(&o->c, x->a.rows, x->n, x->ldc, x->c, type, CUSPARSE_ORDER_COL);
    }
    status = g.cusparseCreateConstDnVec(&o->x, x->a.columns, x->b, type);
    return status != CUSPARSE_STATUS_SUCCESS ? status : g.cusparseCreateDnVec(&o->y, x->a.rows, x->c, type);
}

static cusparseStatus_t make_operands(const acs_sparse_args *x, operands *o)
{
    const acs_sparse_matrix *const a = &x->a;
    const cusparseStatus_t status =
        g.cusparseCreateConstCsr(&o->a, a->rows, a->columns, a->nonzeros, a->row_offsets, a->column_indices, a->values,
                                 CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type_of(a));
    return status != CUSPARSE_STATUS_SUCCESS ? status : make_dense(x, o);
}

/* Host memory alone: failures leave nothing to do. */
static void release_operands(const operands *o)
{
    if (o->a)
        (void)g.cusparseDestroySpMat(o->a);
    if (o->x)
        (void)g.cusparseDestroyDnVec(o->x);
    if (o->y)
        (void)g.cusparseDestroyDnVec(o->y);
    if (o->b)
        (void)g.cusparseDestroyDnMat(o->b);
    if (o->c)
        (void)g.cusparseDestroyDnMat(o->c);
}

/* ------------------------------------------------------------------------------------------------------------ products */

static const cusparseOperation_t g_none = CUSPARSE_OPERATION_NON_TRANSPOSE;

/* A scalar in the precision of the product. cuSPARSE reads it while it is called. */
typedef union scalar {
    float narrow;
    double wide;
} scalar;

static scalar scalar_of(const acs_sparse_args *x, double value)
{
    return x->a.precise ? (scalar){.wide = value} : (scalar){.narrow = (float)value};
}

static cusparseStatus_t buffer_size(cusparseHandle_t h, const acs_sparse_args *x, const operands *o, size_t *bytes)
{
    const scalar alpha = scalar_of(x, x->alpha), beta = scalar_of(x, x->beta);
    const cudaDataType type = type_of(&x->a);

    return x->n ? g.cusparseSpMM_bufferSize(h, g_none, g_none, &alpha, o->a, o->b, &beta, o->c, type,
                                            CUSPARSE_SPMM_CSR_ALG3, bytes)
                : g.cusparseSpMV_bufferSize(h, g_none, &alpha, o->a, o->x, &beta, o->y, type, CUSPARSE_SPMV_CSR_ALG2, bytes);
}

static cusparseStatus_t product(cusparseHandle_t h, const acs_sparse_args *x, const operands *o, void *buffer)
{
    const scalar alpha = scalar_of(x, x->alpha), beta = scalar_of(x, x->beta);
    const cudaDataType type = type_of(&x->a);

    return x->n ? g.cusparseSpMM(h, g_none, g_none, &alpha, o->a, o->b, &beta, o->c, type, CUSPARSE_SPMM_CSR_ALG3, buffer)
                : g.cusparseSpMV(h, g_none, &alpha, o->a, o->x, &beta, o->y, type, CUSPARSE_SPMV_CSR_ALG2, buffer);
}

/* The buffer's size is asked for again: it costs the host little, and a wrong size would be written beyond. */
static int issue(const acs_call_env *env, cusparseHandle_t h, const acs_sparse_args *x, const operands *o)
{
    size_t bytes = 0;
    int code = code_of(buffer_size(h, x, o, &bytes));

    if (code)
        return code;
    return bytes > env->scratch_bytes ? ACS_WRAP_CODE_SCRATCH : code_of(product(h, x, o, env->scratch));
}

int acs_sparse_cuda_run(const acs_call_env *env, const acs_sparse_args *args)
{
    static const acs_wrap_handle_type type = {create, destroy};
    operands o = {NULL, NULL, NULL, NULL, NULL};
    const char *why;
    void *handle;
    int code;

    if (!acs_sparse_cuda_load(&why))
        return ACS_WRAP_CODE_LIBRARY;
    code = acs_wrap_handle(env, &type, &handle);
    if (!code)
        code = code_of(g.cusparseSetStream(handle, env->stream));
    if (!code)
        code = code_of(make_operands(args, &o));
    if (!code)
        code = issue(env, handle, args, &o);
    release_operands(&o);
    return code;
}

/* Of the dense operands only the sizes matter here: the arrays of the matrix stand for their addresses. */
static int ask_size(cusparseHandle_t handle, const acs_sparse_matrix *a, int n, size_t *bytes)
{
    void *const somewhere = (void *)(uintptr_t)a->row_offsets;
    const int ldb = a->columns > 1 ? a->columns : 1, ldc = a->rows > 1 ? a->rows : 1;
    const acs_sparse_args x = {*a, somewhere, somewhere, n, ldb, ldc, 1, 1};
    operands o = {NULL, NULL, NULL, NULL, NULL};
    int code = code_of(make_operands(&x, &o));

    if (!code)
        code = code_of(buffer_size(handle, &x, &o, bytes));
    release_operands(&o);
    return code;
}

int acs_sparse_cuda_sizes(const acs_call_env *env, acs_sparse_matrix *a)
{
    void *handle = NULL;
    int code;

    if (a->rows == 0)
        return 0;
    code = create(&handle);
    if (code)
        return code;
    code = code_of(g.cusparseSetStream(handle, env->stream));
    if (!code)
        code = ask_size(handle, a, 0, &a->spmv_bytes);
    if (!code && a->columns_of_b)
        code = ask_size(handle, a, a->columns_of_b, &a->spmm_bytes);
    destroy(handle);
    return code;
}

#else /* no CUDA */

bool acs_sparse_cuda_load(const char **why)
{
    *why = "this build of acs_sparse has no cuSPARSE: CUDA's headers were not there, or were not wanted";
    return false;
}

const char *acs_sparse_cuda_text(int status)
{
    (void)status;
    return NULL;
}

int acs_sparse_cuda_run(const acs_call_env *env, const acs_sparse_args *args)
{
    (void)env;
    (void)args;
    return ACS_WRAP_CODE_LIBRARY;
}

int acs_sparse_cuda_sizes(const acs_call_env *env, acs_sparse_matrix *a)
{
    (void)env;
    (void)a;
    return ACS_WRAP_CODE_LIBRARY;
}

#endif

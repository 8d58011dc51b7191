/*
 * The calls of acs_sparse.h: arguments are checked, footprints made from them, and ops queued. Called by programs from any
 * thread. Computes nothing: sparse/host.c and sparse/cuda.c do, when the op runs.
 */
#include "acs_sparse.h"
#include "sparse/sparse.h"

ACS_WRAP_ROOM(acs_sparse_args);

static const acs_wrap_codes g_codes = {"cuSPARSE", "cusparseStatus_t", acs_sparse_cuda_load, acs_sparse_cuda_text, NULL};

size_t acs_sparse_code_text(int code, char *text, size_t bytes)
{
    return acs_wrap_code_text(&g_codes, code, text, bytes);
}

acs_status acs_sparse_load(void)
{
    static const acs_site site = {"acs_sparse_load", NULL, 0};
    return acs_wrap_load_status(acs_sparse_cuda_load, &site);
}

/* ------------------------------------------------------------------------------------------------------------ matrices */

static acs_status check_matrix(const acs_sparse_matrix *a, const acs_site *site)
{
    const struct {
        const char *name;
        int value;
    } sizes[] = {{"rows", a->rows}, {"columns", a->columns}, {"nonzeros", a->nonzeros}, {"columns_of_b", a->columns_of_b}};

    if (a->size != sizeof *a)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "a.size is %zu; it must be %zu", a->size, sizeof *a);
    if (a->precise != 0 && a->precise != 1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "a.precise is %d; it must be 0 or 1", a->precise);
    for (int i = 0; i < 4; i++)
        if (sizes[i].value < 0)
            return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "a.%s is %d; it must not be negative", sizes[i].name,
                                 sizes[i].value);
    if (!a->row_offsets)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "a.row_offsets is NULL");
    if (a->nonzeros && (!a->column_indices || !a->values))
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "a.%s is NULL", a->column_indices ? "values" : "column_indices");
    return ACS_OK;
}

static int ask(const acs_call_env *env, void *closure)
{
    acs_sparse_question *const q = *(acs_sparse_question **)closure;
    q->code = acs_sparse_cuda_sizes(env, &q->a);
    return 0;
}

acs_status acs_sparse_prepare(acs_context *context, acs_sparse_matrix *a)
{
    static const acs_site site = {"acs_sparse_prepare", NULL, 0};
    acs_sparse_question q = {.code = 0};
    acs_status status;
    char text[200];

    if (!a)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &site, "a is NULL");
    a->prepared = 0;
    if (check_matrix(a, &site) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    q.a = *a;
    q.a.spmv_bytes = q.a.spmm_bytes = 0;
    status = acs_wrap_ask(context, &site, ask, &q, sizeof q, acs_sparse_cuda_load);
    if (status == ACS_OK && q.code) {
        (void)acs_sparse_code_text(q.code, text, sizeof text);
        status = acs_wrap_fail(ACS_ERR_HOST, &site, "%s", text);
    }
    if (status == ACS_OK) {
        *a = q.a;
        a->prepared = 1;
    }
    return status;
}

/* ------------------------------------------------------------------------------------------------------------ products */

static const acs_site g_spmv_site = {"acs_sparse_spmv", NULL, 0}, g_spmm_site = {"acs_sparse_spmm", NULL, 0};

static bool touches_nothing(const acs_sparse_args *args)
{
    return args->a.rows == 0;
}

static int run(const acs_call_env *env, void *closure)
{
    const acs_sparse_args *const args = closure;

    if (touches_nothing(args))
        return 0;
    if (env->device >= 0)
        return acs_sparse_cuda_run(env, args);
    acs_sparse_host_run(args);
    return 0;
}

static size_t size_of(const acs_sparse_matrix *a)
{
    return a->precise ? sizeof(double) : sizeof(float);
}

/* The segments of a product. Of a dense matrix, each column is a row of the segment. */
static size_t name_segments(const acs_sparse_args *x, acs_segment *s)
{
    const size_t size = size_of(&x->a);
    const uint64_t n = x->n ? (uint64_t)x->n : 1;
    const acs_access access = x->beta == 0 ? ACS_WRITE : ACS_UPDATE;

    if (touches_nothing(x))
        return 0;
    s[0] = ACS_IN(x->a.row_offsets, ((uint64_t)x->a.rows + 1) * sizeof(int));
    s[1] = ACS_IN(x->a.column_indices, (uint64_t)x->a.nonzeros * sizeof(int));
    s[2] = ACS_IN(x->a.values, (uint64_t)x->a.nonzeros * size);
    s[3] = ACS_TILE_IN(x->b, (uint64_t)x->a.columns * size, n, (uint64_t)x->ldb * size);
    s[4] = ACS_TILE_(access, x->c, (uint64_t)x->a.rows * size, n, (uint64_t)x->ldc * size);
    return 5;
}

/* Names the places that hold the handles. */
static const char g_place_key = 0;

static acs_status prepare(acs_wrap_call *call, const acs_site *site, const acs_sparse_args *args, const char *in,
                          const char *out)
{
    static const acs_wrap_kind kind = {acs_sparse_cuda_load, run, &g_place_key, acs_wrap_handles_destroy};
    const size_t asked = args->n ? args->a.spmm_bytes : args->a.spmv_bytes;

    if (check_matrix(&args->a, site) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    if (!args->a.prepared)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "a is not prepared; call acs_sparse_prepare before");
    if ((!args->b && args->a.columns) || (!args->c && args->a.rows))
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "%s is NULL", args->c || !args->a.rows ? in : out);
    acs_wrap_fill(call, &kind, site, args, sizeof *args, name_segments(args, call->segments),
                  acs_wrap_scratch(asked));
    return ACS_OK;
}

acs_status acs_sparse_spmv_prepare(acs_wrap_call *call, double alpha, const acs_sparse_matrix *a, const void *x,
                                   double beta, void *y)
{
    if (!call || !a)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_spmv_site, "%s is NULL", call ? "a" : "call");
    const acs_sparse_args args = {*a, x, y, 0, a->columns, a->rows, alpha, beta};
    return prepare(call, &g_spmv_site, &args, "x", "y");
}

acs_op acs_sparse_spmv(acs_context *context, double alpha, const acs_sparse_matrix *a, const void *x, double beta, void *y)
{
    acs_wrap_call call;
    const acs_status prepared = acs_sparse_spmv_prepare(&call, alpha, a, x, beta, y);
    return acs_wrap_queue(context, &call.params, &g_spmv_site, prepared, acs_sparse_cuda_load);
}

acs_status acs_sparse_spmm_prepare(acs_wrap_call *call, int n, double alpha, const acs_sparse_matrix *a, const void *b,
                                   int ldb, double beta, void *c, int ldc)
{
    const acs_site *const site = &g_spmm_site;

    if (!call || !a)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "%s is NULL", call ? "a" : "call");
    if (n < 1 || n > a->columns_of_b)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "n is %d; it must be 1 to a.columns_of_b, %d", n, a->columns_of_b);
    if (ldb < a->columns || ldb < 1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "ldb is %d; it must be at least %d", ldb,
                             a->columns > 1 ? a->columns : 1);
    if (ldc < a->rows || ldc < 1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "ldc is %d; it must be at least %d", ldc, a->rows > 1 ? a->rows : 1);
    const acs_sparse_args args = {*a, b, c, n, ldb, ldc, alpha, beta};
    return prepare(call, site, &args, "b", "c");
}

acs_op acs_sparse_spmm(acs_context *context, int n, double alpha, const acs_sparse_matrix *a, const void *b, int ldb,
                       double beta, void *c, int ldc)
{
    acs_wrap_call call;
    const acs_status prepared = acs_sparse_spmm_prepare(&call, n, alpha, a, b, ldb, beta, c, ldc);
    return acs_wrap_queue(context, &call.params, &g_spmm_site, prepared, acs_sparse_cuda_load);
}

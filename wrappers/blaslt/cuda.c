/*
 * Products on a GPU: cuBLASLt, found at run time. Called by the thread that issues an op, with the slot's stream, scratch
 * memory and handle. A slot keeps the algorithm of each shape that it has seen. Descriptors are made for each call; they are
 * host memory alone. Never synchronises, but for what cuBLASLt does when a handle is made. Built without CUDA's headers it
 * only says so.
 */
#include "blaslt/blaslt.h"

#if ACS_BLASLT_HAVE_CUDA

#include <cublasLt.h>

#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(X)                                                                                                   \
    X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtMatmul) X(cublasLtMatmulAlgoGetHeuristic)                           \
    X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute)                         \
    X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy) X(cublasLtMatmulPreferenceCreate)                     \
    X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulPreferenceSetAttribute)

static struct {
    FUNCTIONS(ACS_WRAP_MEMBER)
} g;
static const acs_wrap_function g_functions[] = {FUNCTIONS(ACS_WRAP_ROW)};
static const acs_wrap_library g_library = {"libcublasLt.so." ACS_WRAP_TEXT(CUBLAS_VER_MAJOR), g_functions,
                                           sizeof g_functions / sizeof g_functions[0]};
static acs_wrap_loader g_loader = {&g_library, 1, 0, ""};

bool acs_blaslt_cuda_load(const char **why)
{
    return acs_wrap_load(&g_loader, why);
}

static int code_of(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? 0 : ACS_WRAP_CODE_BASE + (int)status;
}

/* ------------------------------------------------------------------------------------------------------------- handles */

/* What an algorithm is chosen by. No padding: it is compared by its bytes. */
typedef struct key {
    acs_blaslt_shape shape;
    uint32_t alignment[ACS_BLASLT_POINTERS]; /* of a, b, c, bias, d in bytes, 256 at most */
} key;

typedef struct choice {
    struct choice *next;
    key key;
    cublasLtMatmulAlgo_t algorithm;
} choice;

/* A handle, and what has been chosen with it. */
typedef struct handle {
    cublasLtHandle_t lt;
    choice *choices;
} handle;

static int create(void **made)
{
    handle *const h = calloc(1, sizeof *h);
    int code;

    if (!h)
        return ACS_WRAP_CODE_MEMORY;
    code = code_of(g.cublasLtCreate(&h->lt));
    if (code) {
        free(h);
        return code;
    }
    *made = h;
    return 0;
}

static void destroy(void *pointer)
{
    handle *const h = pointer;

    while (h->choices) {
        choice *const c = h->choices;
        h->choices = c->next;
        free(c);
    }
    (void)g.cublasLtDestroy(h->lt); /* the context closes: there is nobody to tell of a failure */
    free(h);
}

/* --------------------------------------------------------------------------------------------------------- descriptors */

/* What was not made is NULL. */
typedef struct descriptors {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c, d;
} descriptors;

static cudaDataType type_of(const acs_blaslt_shape *s)
{
    static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF};
    return types[s->type];
}

static uint32_t epilogue_of(const acs_blaslt_shape *s)
{
    static const uint32_t epilogues[3][2] = {{CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS},
                                             {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS},
                                             {CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS}};
    return epilogues[s->activation][s->has_bias];
}

static cublasStatus_t set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes)
{
    return g.cublasLtMatmulDescSetAttribute(d, attribute, value, bytes);
}

static cublasStatus_t make_product(const acs_blaslt_args *x, cublasLtMatmulDesc_t *made)
{
    const acs_blaslt_shape *const s = &x->shape;
    const int32_t ta = s->transa ? CUBLAS_OP_T : CUBLAS_OP_N, tb = s->transb ? CUBLAS_OP_T : CUBLAS_OP_N;
    const uint32_t epilogue = epilogue_of(s);
    cublasStatus_t status = g.cublasLtMatmulDescCreate(made, CUBLAS_COMPUTE_32F, CUDA_R_32F);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(*made, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(*made, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(*made, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (status == CUBLAS_STATUS_SUCCESS && s->has_bias)
        status = set(*made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &x->bias, sizeof x->bias);
    return status;
}

static cublasStatus_t make_layout(const acs_blaslt_shape *s, int rows, int columns, int distance, bool turned,
                                  cublasLtMatrixLayout_t *made)
{
    return g.cublasLtMatrixLayoutCreate(made, type_of(s), (uint64_t)(turned ? columns : rows),
                                        (uint64_t)(turned ? rows : columns), distance);
}

static cublasStatus_t make_descriptors(const acs_blaslt_args *x, descriptors *d)
{
    const acs_blaslt_shape *const s = &x->shape;
    cublasStatus_t status = make_product(x, &d->product);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = make_layout(s, s->m, s->k, s->lda, s->transa, &d->a);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = make_layout(s, s->k, s->n, s->ldb, s->transb, &d->b);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = make_layout(s, s->m, s->n, s->ldc, false, &d->c);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = make_layout(s, s->m, s->n, s->ldd, false, &d->d);
    return status;
}

/* Host memory alone: failures leave nothing to do. */
static void release_descriptors(const descriptors *d)
{
    const cublasLtMatrixLayout_t layouts[] = {d->a, d->b, d->c, d->d};

    for (int i = 0; i < 4; i++)
        if (layouts[i])
            (void)g.cublasLtMatrixLayoutDestroy(layouts[i]);
    if (d->product)
        (void)g.cublasLtMatmulDescDestroy(d->product);
}

/* ---------------------------------------------------------------------------------------------------------- algorithms */

static uint32_t alignment_of(const void *p)
{
    const uintptr_t bits = (uintptr_t)p | 256;
    return (uint32_t)(bits & (0 - bits));
}

static key key_of(const acs_blaslt_args *x)
{
    return (key){x->shape, {alignment_of(x->a), alignment_of(x->b), alignment_of(x->c), alignment_of(x->bias),
                            alignment_of(x->d)}};
}

static cublasStatus_t set_preferences(cublasLtMatmulPreference_t p, const uint32_t *alignment)
{
    const uint64_t workspace = ACS_BLASLT_WORKSPACE_BYTES;
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        uint32_t value;
    } least[] = {{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment[0]},
                 {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment[1]},
                 {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment[2]},
                 {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment[4]}};
    cublasStatus_t status = g.cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                                   &workspace, sizeof workspace);

    for (int i = 0; i < 4 && status == CUBLAS_STATUS_SUCCESS; i++)
        status = g.cublasLtMatmulPreferenceSetAttribute(p, least[i].attribute, &least[i].value, sizeof least[i].value);
    return status;
}

/* cuBLASLt's first choice. */
static int choose(cublasLtHandle_t lt, const descriptors *d, const uint32_t *alignment, cublasLtMatmulAlgo_t *chosen)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result = {.state = CUBLAS_STATUS_NOT_SUPPORTED};
    cublasStatus_t status = g.cublasLtMatmulPreferenceCreate(&preference);
    int found = 0;

    if (status == CUBLAS_STATUS_SUCCESS)
        status = set_preferences(preference, alignment);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = g.cublasLtMatmulAlgoGetHeuristic(lt, d->product, d->a, d->b, d->c, d->d, preference, 1, &result, &found);
    if (preference)
        (void)g.cublasLtMatmulPreferenceDestroy(preference); /* host memory alone */
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0))
        return ACS_BLASLT_CODE_ALGORITHM;
    *chosen = result.algo;
    return code_of(status != CUBLAS_STATUS_SUCCESS ? status : result.state);
}

static int algorithm_of(handle *h, const acs_blaslt_args *x, const descriptors *d, const cublasLtMatmulAlgo_t **found)
{
    const key wanted = key_of(x);
    choice *made;
    int code;

    for (const choice *c = h->choices; c; c = c->next)
        if (!memcmp(&c->key, &wanted, sizeof wanted)) {
            *found = &c->algorithm;
            return 0;
        }
    made = calloc(1, sizeof *made);
    if (!made)
        return ACS_WRAP_CODE_MEMORY;
    code = choose(h->lt, d, wanted.alignment, &made->algorithm);
    if (code) {
        free(made);
        return code;
    }
    made->key = wanted;
    made->next = h->choices;
    h->choices = made;
    *found = &made->algorithm;
    return 0;
}

static int issue(const acs_call_env *env, handle *h, const acs_blaslt_args *x, const descriptors *d)
{
    const float alpha = (float)x->alpha, beta = (float)x->beta;
    const cublasLtMatmulAlgo_t *algorithm;
    const int code = algorithm_of(h, x, d, &algorithm);

    return code ? code
                : code_of(g.cublasLtMatmul(h->lt, d->product, &alpha, x->a, d->a, x->b, d->b, &beta, x->c, d->c, x->d, d->d,
                                           algorithm, env->scratch, ACS_BLASLT_WORKSPACE_BYTES, env->stream));
}

int acs_blaslt_cuda_run(const acs_call_env *env, const acs_blaslt_args *args)
{
    static const acs_wrap_handle_type type = {create, destroy};
    descriptors d = {NULL, NULL, NULL, NULL, NULL};
    const char *why;
    void *h;
    int code;

    if (!acs_blaslt_cuda_load(&why))
        return ACS_WRAP_CODE_LIBRARY;
    if (env->scratch_bytes < ACS_BLASLT_WORKSPACE_BYTES)
        return ACS_WRAP_CODE_SCRATCH;
    code = acs_wrap_handle(env, &type, &h);
    if (!code)
        code = code_of(make_descriptors(args, &d));
    if (!code)
        code = issue(env, h, args, &d);
    release_descriptors(&d);
    return code;
}

#else /* no CUDA */

bool acs_blaslt_cuda_load(const char **why)
{
    *why = "this build of acs_blaslt has no cuBLASLt: CUDA's headers were not there, or were not wanted";
    return false;
}

int acs_blaslt_cuda_run(const acs_call_env *env, const acs_blaslt_args *args)
{
    (void)env;
    (void)args;
    return ACS_WRAP_CODE_LIBRARY;
}

#endif

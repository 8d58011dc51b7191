/**
 * @file acs_blaslt.h
 * Matrix products with what neural networks do behind them, as ops of ACS: D = activation(alpha op(A) op(B) + beta C +
 * bias). On a GPU by cuBLASLt, which is opened at run time. On the host backends by plain loops.
 *
 *     acs_blaslt_matmul_params p = {.size = sizeof p, .type = ACS_BLASLT_F16, .m = m, .n = n, .k = k, .alpha = 1,
 *                                   .a = w, .lda = m, .b = x, .ldb = k, .d = y, .ldd = m, .bias = bias,
 *                                   .activation = ACS_BLASLT_RELU};
 *     acs_blaslt_matmul(context, &p);
 *
 * **Matrices** are stored by columns, as in acs_blas.h: op(A) is m x k, op(B) k x n, C and D m x n. Products are summed in
 * float for every type (no TF32).
 *
 * **Footprint.** A, B and bias are `in`. C is `in` where beta is not 0, else it is not looked at. D is `out`. If C is D and
 * beta is not 0, D is `inout`. Bytes between columns are not named and not touched. With m or n 0 the op touches nothing.
 *
 * **State and order.** Each slot has a handle. cuBLASLt chooses an algorithm for each shape, once in each slot, by its own
 * heuristics. The choice follows from types, sizes, distances, activation and the alignment of the pointers, and so is the
 * same in each slot. The workspace is the slot's scratch memory, of one size. So no call depends on earlier ones.
 *
 * **Repeatable.** Ops keep the contract of repeatable calls (acs_call_fn): known products go without the library.
 *
 * Errors and threads: acs_wrap.h. What fails while an op runs is ACS_ERR_HOST with a code for acs_blaslt_code_text(). One is
 * that cuBLASLt has no algorithm: half precision often needs distances that are multiples of 8 elements.
 */
#ifndef ACS_BLASLT_H
#define ACS_BLASLT_H

#include "acs_wrap.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Device memory that an op asks of its slot, in bytes. */
#define ACS_BLASLT_WORKSPACE_BYTES (32u << 20)

/** The type of all operands. */
typedef enum acs_blaslt_type { ACS_BLASLT_F32 = 0, ACS_BLASLT_F16 = 1, ACS_BLASLT_BF16 = 2 } acs_blaslt_type;

/** GELU is the approximation by the hyperbolic tangent, as in cuBLASLt. */
typedef enum acs_blaslt_activation {
    ACS_BLASLT_NONE = 0,
    ACS_BLASLT_RELU = 1,
    ACS_BLASLT_GELU = 2
} acs_blaslt_activation;

/** A product. Copied by the calls. */
typedef struct acs_blaslt_matmul_params {
    size_t size;          /**< sizeof(acs_blaslt_matmul_params) */
    acs_blaslt_type type;
    int transa, transb;   /**< 1: op transposes */
    int m, n, k;          /**< m and n not negative, k at least 1 */
    double alpha, beta;
    const void *a, *b, *c; /**< c: NULL is allowed where beta is 0 */
    void *d;              /**< may be c, with the same distance; may not overlap a, b, bias, or c otherwise */
    const void *bias;     /**< m elements, added to each column; NULL: none */
    int lda, ldb, ldc, ldd; /**< distances of columns in elements */
    acs_blaslt_activation activation;
} acs_blaslt_matmul_params;

/** Queue a product. @param context  NULL: the default context. */
acs_op acs_blaslt_matmul(acs_context *context, const acs_blaslt_matmul_params *params);
/** Prepare it and do not queue it: see acs_wrap_call. */
acs_status acs_blaslt_matmul_prepare(acs_wrap_call *call, const acs_blaslt_matmul_params *params);

/**
 * Find cuBLASLt now; the first op on a CUDA context does so otherwise.
 * @retval ACS_ERR_UNSUPPORTED  it was not found, or the wrapper was built without CUDA; acs_wrap_last_error has the text.
 */
acs_status acs_blaslt_load(void);
/** What an op's code means (acs_error.native), in one sentence; as snprintf. */
size_t acs_blaslt_code_text(int code, char *text, size_t bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ACS_BLASLT_H */

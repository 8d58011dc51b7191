/**
 * @file acs_sparse.h
 * Products with sparse matrices as ops of ACS: matrix by vector and matrix by dense matrix, for CSR, float and double. On a
 * GPU by cuSPARSE, which is opened at run time. On the host backends by plain loops.
 *
 *     acs_sparse_matrix a = {.size = sizeof a, .rows = m, .columns = n, .nonzeros = count,
 *                            .row_offsets = offsets, .column_indices = indices, .values = values};
 *     acs_sparse_prepare(context, &a);
 *     acs_sparse_spmv(context, 1, &a, x, 0, y);
 *
 * **Matrices.** Row i of A has the elements row_offsets[i] to row_offsets[i + 1] - 1 of `column_indices` and `values`. All
 * indices are 32-bit and begin with 0. Dense matrices are stored by columns, as in acs_blas.h.
 *
 * **Footprint.** The three arrays of A and the dense operand are `in`. The result is `inout`, or `out` where beta is 0. If
 * the matrix has no rows, the op touches nothing.
 *
 * **State and order.** Each slot has a handle, and a call makes its descriptors, so no state lasts from call to call. The
 * buffer that cuSPARSE works in is the slot's scratch memory. Products that only read common memory run at the same time.
 *
 * **Repeatable.** The algorithms are those that cuSPARSE documents to give the same bits each time: CUSPARSE_SPMV_CSR_ALG2
 * and CUSPARSE_SPMM_CSR_ALG3. That is why there is no transposed A.
 *
 * Errors and threads: acs_wrap.h. What fails while an op runs is ACS_ERR_HOST with a code for acs_sparse_code_text().
 */
#ifndef ACS_SPARSE_H
#define ACS_SPARSE_H

#include "acs_wrap.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A matrix in CSR. It belongs to the program, and no op keeps a pointer to it. Values and indices may change between ops, by
 * ops that name them. Fields below the line are written by acs_sparse_prepare; begin with zeros.
 */
typedef struct acs_sparse_matrix {
    size_t size;                    /**< sizeof(acs_sparse_matrix) */
    int precise;                    /**< 0: float; 1: double. That of the dense operands, too */
    int rows, columns;              /**< of A, not negative */
    int nonzeros;                   /**< elements that are stored, not negative */
    const int *row_offsets;         /**< rows + 1 of them, in memory of the context's backend */
    const int *column_indices;      /**< `nonzeros` of them */
    const void *values;             /**< `nonzeros` of them */
    int columns_of_b;               /**< most columns of B and C in acs_sparse_spmm; 0: only acs_sparse_spmv is called */
    /* ------------------------------------------------------------------------------------------------------------- */
    int prepared;                   /**< 1: acs_sparse_prepare has returned ACS_OK */
    size_t spmv_bytes, spmm_bytes;  /**< scratch memory of the ops; may be raised */
} acs_sparse_matrix;

/**
 * Ask cuSPARSE how much memory the matrix's products need. Once for each matrix, and again if sizes change. On a GPU it
 * waits for an op of its own, and is refused with ACS_ERR_STATE inside captures and groups. The arrays are not looked at.
 * @param context  NULL: the default context.
 * @retval ACS_ERR_ARGUMENT     a field is out of its range, or an array is NULL.
 * @retval ACS_ERR_UNSUPPORTED  cuSPARSE was not found.
 * @retval ACS_ERR_HOST         cuSPARSE refused the matrix; the text has its code. The context keeps no error.
 * Other errors are those of acs_call and acs_wait. After an error `prepared` is 0.
 */
acs_status acs_sparse_prepare(acs_context *context, acs_sparse_matrix *a);

/*
 * Each operation has two functions: to queue (context NULL: the default one) and to prepare (acs_wrap_call). `a` is copied.
 */

/** y = alpha A x + beta y, for x with `columns` elements and y with `rows` elements. */
acs_op acs_sparse_spmv(acs_context *context, double alpha, const acs_sparse_matrix *a, const void *x, double beta, void *y);
acs_status acs_sparse_spmv_prepare(acs_wrap_call *call, double alpha, const acs_sparse_matrix *a, const void *x,
                                   double beta, void *y);

/** C = alpha A B + beta C; B is columns x n, C rows x n; ldb and ldc are distances of columns in elements. */
acs_op acs_sparse_spmm(acs_context *context, int n, double alpha, const acs_sparse_matrix *a, const void *b, int ldb,
                       double beta, void *c, int ldc);
acs_status acs_sparse_spmm_prepare(acs_wrap_call *call, int n, double alpha, const acs_sparse_matrix *a, const void *b,
                                   int ldb, double beta, void *c, int ldc);

/**
 * Find cuSPARSE now; the first acs_sparse_prepare on a CUDA context does so otherwise.
 * @retval ACS_ERR_UNSUPPORTED  it was not found, or the wrapper was built without CUDA; acs_wrap_last_error has the text.
 */
acs_status acs_sparse_load(void);
/** What an op's code means (acs_error.native), in one sentence; as snprintf. */
size_t acs_sparse_code_text(int code, char *text, size_t bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ACS_SPARSE_H */

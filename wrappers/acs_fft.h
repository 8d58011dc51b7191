/**
 * @file acs_fft.h
 * Fourier transforms as ops of ACS: one to three dimensions, batches, complex and real, float and double. On a GPU by
 * cuFFT, which is opened at run time. On the host backends by plain loops, for correctness and not for speed.
 *
 *     acs_fft_params params = {.size = sizeof params, .kind = ACS_FFT_C2C, .rank = 1, .n = {1024}, .batch = 16};
 *     acs_fft_plan *plan;
 *     acs_fft_plan_create(context, &params, &plan);
 *     acs_fft_exec(context, plan, x, y, ACS_FFT_FORWARD);
 *
 * **Transforms** are those of cuFFT: not scaled, so that forward and inverse multiply by the number of elements. Data are
 * dense: the last dimension is contiguous, and the transforms of a batch follow each other. A real transform has n / 2 + 1
 * complex elements in the last dimension.
 *
 * **Footprint.** The output is `out`. The input is `in`, but for ACS_FFT_C2R, where it is `inout`: cuFFT may overwrite it.
 * A complex transform in place (in == out) has one `inout`. Sizes are those of the whole batch.
 *
 * **State and order.** A plan of cuFFT writes to its work area while it runs, so two transforms of one plan must not share
 * one. Here each transform has its work area in its slot's scratch memory. Transforms of one plan that touch no common
 * memory run at the same time, and need no second plan.
 *
 * **Captures.** A transform becomes nodes with a work area of their own. Make the plan before the capture begins.
 *
 * Errors and threads: acs_wrap.h. What fails while an op runs is ACS_ERR_HOST with a code for acs_fft_code_text().
 */
#ifndef ACS_FFT_H
#define ACS_FFT_H

#include "acs_wrap.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a transform takes and gives. Complex elements are pairs of real ones. */
typedef enum acs_fft_kind {
    ACS_FFT_C2C = 0, /**< complex to complex, both directions */
    ACS_FFT_R2C = 1, /**< real to complex, forward */
    ACS_FFT_C2R = 2  /**< complex to real, inverse */
} acs_fft_kind;

typedef enum acs_fft_direction { ACS_FFT_FORWARD = -1, ACS_FFT_INVERSE = 1 } acs_fft_direction;

enum { ACS_FFT_RANK_MAX = 3 };

typedef struct acs_fft_params {
    size_t size;                /**< sizeof(acs_fft_params) */
    acs_fft_kind kind;
    int precise;                /**< 0: float; 1: double */
    int rank;                   /**< dimensions, 1 to ACS_FFT_RANK_MAX */
    int n[ACS_FFT_RANK_MAX];    /**< elements of each dimension, at least 1; the last is contiguous. For real kinds: reals */
    int batch;                  /**< transforms, at least 1 */
} acs_fft_params;

/** A plan. Opaque. */
typedef struct acs_fft_plan acs_fft_plan;

/**
 * Make a plan for the backend of a context. On a GPU cuFFT makes tables on the device, which takes milliseconds.
 * Waits for an op of its own there, and is refused with ACS_ERR_STATE inside captures and groups.
 * @param      context  NULL: the default context. The plan may be used with other contexts of the same backend.
 * @param      params   Copied.
 * @param[out] plan     Written only on ACS_OK; release with acs_fft_plan_destroy.
 * @retval ACS_ERR_ARGUMENT     a field is out of its range, or the data have too many bytes; nothing was made.
 * @retval ACS_ERR_UNSUPPORTED  cuFFT was not found; nothing was made.
 * @retval ACS_ERR_HOST         cuFFT made no plan; the text has its code. The context keeps no error.
 * @retval ACS_ERR_MEMORY       no host memory is left.
 * Other errors are those of acs_call and acs_wait. A group that got ACS_ERR_STATE should be cancelled.
 */
acs_status acs_fft_plan_create(acs_context *context, const acs_fft_params *params, acs_fft_plan **plan);

/**
 * Release a plan. Its ops must have retired, and graphs that captured them must not run any more. Does not wait for them.
 * @param plan  NULL is allowed.
 */
void acs_fft_plan_destroy(acs_fft_plan *plan);

/**
 * Transform `in` to `out`.
 * @param context    NULL: the default context.
 * @param plan       Borrowed until the op has retired.
 * @param in, out    Memory of the context's backend, each the whole batch. Equal for a complex transform in place.
 * @param direction  R2C: forward; C2R: inverse. Others are an error.
 */
acs_op acs_fft_exec(acs_context *context, acs_fft_plan *plan, const void *in, void *out, acs_fft_direction direction);
/** Prepare the op and do not queue it: see acs_wrap_call. */
acs_status acs_fft_exec_prepare(acs_wrap_call *call, acs_fft_plan *plan, const void *in, void *out,
                                acs_fft_direction direction);

/**
 * Find cuFFT now; the first plan on a GPU does so otherwise.
 * @retval ACS_ERR_UNSUPPORTED  it was not found, or the wrapper was built without CUDA; acs_wrap_last_error has the text.
 */
acs_status acs_fft_load(void);
/** What an op's code means (acs_error.native), in one sentence; as snprintf. */
size_t acs_fft_code_text(int code, char *text, size_t bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ACS_FFT_H */

/*
 * The operations on the CPU, for the host backends: loops as the definitions have them, in an order that does not depend on
 * who runs them, so that the same call gives the same bits. Called when an op runs, or by whoever issues it by other means;
 * checks nothing, since the arguments were checked when the call was made.
 */
#include "blas/blas.h"

#include <math.h>

#define REAL float
#define NAME(name) name##_float
#define SQUARE_ROOT sqrtf
#include "blas/host_real.h"
#undef REAL
#undef NAME
#undef SQUARE_ROOT

#define REAL double
#define NAME(name) name##_double
#define SQUARE_ROOT sqrt
#include "blas/host_real.h"
#undef REAL
#undef NAME
#undef SQUARE_ROOT

void acs_blas_host_run(const acs_blas_args *args)
{
    static void (*const run[ACS_BLAS_KINDS][2])(const acs_blas_args *) = {
        [ACS_BLAS_GEMM] = {gemm_float, gemm_double},    [ACS_BLAS_SYRK] = {syrk_float, syrk_double},
        [ACS_BLAS_TRSM] = {trsm_float, trsm_double},    [ACS_BLAS_GEMV] = {gemv_float, gemv_double},
        [ACS_BLAS_AXPY] = {axpy_float, axpy_double},    [ACS_BLAS_POTRF] = {potrf_float, potrf_double},
        [ACS_BLAS_GETRF] = {getrf_float, getrf_double},
    };

    run[args->kind][args->precise != 0](args);
}

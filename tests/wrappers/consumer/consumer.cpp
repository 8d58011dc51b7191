// The same as consumer.c in C++, by a prepared call; and a function of each other wrapper.
#include <acs_blas.h>
#include <acs_blaslt.h>
#include <acs_dnn.h>
#include <acs_fft.h>
#include <acs_nccl.h>
#include <acs_rand.h>
#include <acs_sparse.h>

static bool wrappers_answer()
{
    char text[200];
    return acs_blaslt_code_text(3, text, sizeof text) && acs_dnn_code_text(3, text, sizeof text) &&
           acs_fft_code_text(3, text, sizeof text) && acs_nccl_code_text(3, text, sizeof text) &&
           acs_rand_code_text(3, text, sizeof text) && acs_sparse_code_text(3, text, sizeof text);
}

int main()
{
    acs_context *const context = acs_default();
    void *memory = nullptr;
    if (acs_malloc(context, 4 * sizeof(float), ACS_MEMORY_HOST, &memory) != ACS_OK)
        return 1;
    float *const x = static_cast<float *>(memory), *const y = x + 2;
    x[0] = 1, x[1] = 2, y[0] = 10, y[1] = 20;
    acs_blas_call call;
    if (acs_blas_saxpy_prepare(&call, 2, 2, x, 1, y, 1) != ACS_OK || acs_call(context, &call.params) == 0 ||
        acs_sync(context) != ACS_OK)
        return 1;
    return y[0] == 12 && y[1] == 24 && wrappers_answer() ? 0 : 1;
}

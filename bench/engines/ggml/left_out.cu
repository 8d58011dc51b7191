/*
 * Stands for the kernels that build.sh leaves out to save time: flash attention, and matrix products of the types and
 * widths that bench.cpp does not use. Calling one ends the program.
 */
#include "fattn.cuh"

struct mmq_args;
struct mmf_ids_data;

template <ggml_type type> void mul_mat_q_case(ggml_backend_cuda_context &, const mmq_args &, cudaStream_t) {
    GGML_ABORT("left out: mul_mat_q of %s", ggml_type_name(type));
}

template <typename T, int rows, int columns>
void mul_mat_f_cuda(const T *, const float *, const int32_t *, float *, const int64_t, const int64_t, int64_t,
                    const int64_t, const int64_t, const int64_t, const int64_t, const int64_t, const int64_t,
                    const int64_t, const int64_t, const int64_t, const int64_t, const int64_t, const int64_t,
                    const int64_t, const int64_t, const int64_t, const int64_t, cudaStream_t, const mmf_ids_data *) {
    GGML_ABORT("left out: mul_mat_f of %d columns", columns);
}

#define MMQ(type) template void mul_mat_q_case<type>(ggml_backend_cuda_context &, const mmq_args &, cudaStream_t);
#define MMF(T, rows, columns)                                                                                          \
    template void mul_mat_f_cuda<T, rows, columns>(                                                                    \
        const T *, const float *, const int32_t *, float *, const int64_t, const int64_t, int64_t, const int64_t,      \
        const int64_t, const int64_t, const int64_t, const int64_t, const int64_t, const int64_t, const int64_t,       \
        const int64_t, const int64_t, const int64_t, const int64_t, const int64_t, const int64_t, const int64_t,       \
        const int64_t, cudaStream_t, const mmf_ids_data *);
#define MMF_ALL(columns)                                                                                               \
    MMF(float, 32, columns) MMF(half2, 32, columns) MMF(nv_bfloat162, 32, columns)                                     \
    MMF(float, 64, columns) MMF(half2, 64, columns) MMF(nv_bfloat162, 64, columns)

#include "left_out.inc" /* written by build.sh: MMQ(...) and MMF_ALL(...) for each file that it left out */

void ggml_cuda_flash_attn_ext(ggml_backend_cuda_context &, ggml_tensor *) {
    GGML_ABORT("left out: flash attention");
}

bool ggml_cuda_flash_attn_ext_supported(int, const ggml_tensor *) {
    return false;
}

size_t ggml_cuda_flash_attn_ext_get_alloc_size(int, const ggml_tensor * dst) {
    return ggml_nbytes(dst);
}

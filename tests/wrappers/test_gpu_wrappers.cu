/*
 * Wrappers on a GPU: for each library a few calls through ACS have the bits of the library's plain call, in captures and
 * outside, and independent ones overlap (gpu_wrapped.cuh). Libraries that are not there are skipped.
 */
#include "acs_blas.h"
#include "acs_blaslt.h"
#include "acs_fft.h"
#include "acs_rand.h"
#include "acs_sparse.h"

#include "gpu_wrapped.cuh"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cufft.h>
#include <curand.h>
#include <cusolverDn.h>
#include <cusparse.h>

#include <memory>

/* A status of a library: 0 is success in all of them. */
#define CHECK_ZERO_STATUS(call) CHECK_EQ(static_cast<int>(call), 0)

/* Device memory with contents that no op changes. */
template <class T> static std::shared_ptr<T> constant(const std::vector<T> &values)
{
    T *p = nullptr;
    CHECK_CUDA(cudaMalloc(&p, values.size() * sizeof(T)));
    CHECK_CUDA(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return std::shared_ptr<T>(p, [](T *memory) { CHECK_CUDA(cudaFree(memory)); });
}

/* ---------------------------------------------------------------------------------------------------------- acs::blas */

static void blas_products()
{
    enum { N = 256, BYTES = N * N * 4 };
    if (!wrapped_is_there("acs::blas", acs_blas_load()))
        return;
    const plain_library blas("libcublas.so." PLAIN_TEXT(CUBLAS_VER_MAJOR));
    cublasHandle_t handle = nullptr;
    void *workspace = nullptr;
    CHECK_CUDA(cudaMalloc(&workspace, ACS_BLAS_WORKSPACE_BYTES));
    CHECK_ZERO_STATUS(PLAIN(blas, cublasCreate_v2)(&handle));
    wrapped_check({"cublasSgemm", FILL_FLOATS, BYTES, BYTES,
                   [=](int, const void *in, void *out, cudaStream_t stream) {
                       const float one = 1, zero = 0, *const x = static_cast<const float *>(in);
                       CHECK_ZERO_STATUS(PLAIN(blas, cublasSetStream_v2)(handle, stream));
                       CHECK_ZERO_STATUS(PLAIN(blas, cublasSetWorkspace_v2)(handle, workspace,
                                                                            ACS_BLAS_WORKSPACE_BYTES));
                       CHECK_ZERO_STATUS(PLAIN(blas, cublasSgemm_v2)(handle, CUBLAS_OP_N, CUBLAS_OP_T, N, N, N, &one, x,
                                                                     N, x, N, &zero, static_cast<float *>(out), N));
                   },
                   [](acs_context *context, int, const void *in, void *out) {
                       const float *const x = static_cast<const float *>(in);
                       return acs_blas_sgemm(context, ACS_BLAS_N, ACS_BLAS_T, N, N, N, 1, x, N, x, N, 0,
                                             static_cast<float *>(out), N);
                   }});
    CHECK_ZERO_STATUS(PLAIN(blas, cublasDestroy_v2)(handle));
    CHECK_CUDA(cudaFree(workspace));
}

/* A plain Cholesky factorization over `a`, with a buffer of its own. */
static void plain_potrf(const plain_library &solver, cusolverDnHandle_t handle, int n, double *a, cudaStream_t stream)
{
    const auto lower = CUBLAS_FILL_MODE_LOWER;
    int elements = 0, *info = nullptr;
    double *buffer = nullptr;
    CHECK_ZERO_STATUS(PLAIN(solver, cusolverDnSetStream)(handle, stream));
    CHECK_ZERO_STATUS(PLAIN(solver, cusolverDnDpotrf_bufferSize)(handle, lower, n, a, n, &elements));
    CHECK_CUDA(cudaMalloc(&buffer, (elements + 1) * sizeof(double)));
    CHECK_CUDA(cudaMalloc(&info, sizeof *info));
    CHECK_ZERO_STATUS(PLAIN(solver, cusolverDnDpotrf)(handle, lower, n, a, n, buffer, elements, info));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaFree(buffer));
    CHECK_CUDA(cudaFree(info));
}

/* Each call copies a matrix, and factors the copy. */
static void solver_factorizations()
{
    enum { N = 512, BYTES = N * N * 8 };
    if (!wrapped_is_there("acs::blas", acs_blas_load()))
        return;
    const plain_library solver("libcusolver.so." PLAIN_TEXT(CUSOLVER_VER_MAJOR));
    cusolverDnHandle_t handle = nullptr;
    std::vector<double> host(N * N);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            host[i + j * N] = i == j ? 1.0 * N : static_cast<double>((i + j) * 37 % 101) / 101;
    const auto matrix = constant(host);
    CHECK_ZERO_STATUS(PLAIN(solver, cusolverDnCreate)(&handle));
    wrapped_check({"cusolverDnDpotrf", FILL_FLOATS, 0, BYTES,
                   [&](int, const void *, void *out, cudaStream_t stream) {
                       CHECK_CUDA(cudaMemcpyAsync(out, matrix.get(), BYTES, cudaMemcpyDeviceToDevice, stream));
                       plain_potrf(solver, handle, N, static_cast<double *>(out), stream);
                   },
                   [&](acs_context *context, int, const void *, void *out) {
                       CHECK(acs_memcpy(context, out, matrix.get(), BYTES) != 0);
                       return acs_blas_dpotrf(context, ACS_BLAS_LOWER, N, static_cast<double *>(out), N, nullptr);
                   }});
    CHECK_ZERO_STATUS(PLAIN(solver, cusolverDnDestroy)(handle));
}

/* -------------------------------------------------------------------------------------------------------- acs::blaslt */

/* A plain product of cuBLASLt: its first choice for memory of 256 bytes' alignment. */
struct plain_lt {
    const plain_library lt{"libcublasLt.so." PLAIN_TEXT(CUBLAS_VER_MAJOR)};
    cublasLtHandle_t handle = nullptr;
    void *workspace = nullptr;

    cublasLtMatmulDesc_t description(uint32_t epilogue, const void *bias) const
    {
        cublasLtMatmulDesc_t made = nullptr;
        const int32_t transposed = CUBLAS_OP_T;
        const auto set = PLAIN(lt, cublasLtMatmulDescSetAttribute);
        CHECK_ZERO_STATUS(PLAIN(lt, cublasLtMatmulDescCreate)(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
        CHECK_ZERO_STATUS(set(made, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
        CHECK_ZERO_STATUS(set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
        if (bias)
            CHECK_ZERO_STATUS(set(made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
        return made;
    }

    cublasLtMatmulAlgo_t choice(cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t layout) const
    {
        cublasLtMatmulPreference_t preference = nullptr;
        cublasLtMatmulHeuristicResult_t result = {};
        const uint64_t bytes = ACS_BLASLT_WORKSPACE_BYTES;
        int found = 0;
        CHECK_ZERO_STATUS(PLAIN(lt, cublasLtMatmulPreferenceCreate)(&preference));
        CHECK_ZERO_STATUS(PLAIN(lt, cublasLtMatmulPreferenceSetAttribute)(
            preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
        CHECK_ZERO_STATUS(PLAIN(lt, cublasLtMatmulAlgoGetHeuristic)(handle, product, layout, layout, layout, layout,
                                                                    preference, 1, &result, &found));
        CHECK_EQ(found, 1);
        CHECK_ZERO_STATUS(PLAIN(lt, cublasLtMatmulPreferenceDestroy)(preference));
        return result.algo;
    }

    /* D = epilogue(Aᵀ A), all n x n. */
    void run(cudaDataType type, int n, uint32_t epilogue, const void *bias, const void *a, void *d,
             cudaStream_t stream) const
    {
        const float one = 1, zero = 0;
        cublasLtMatrixLayout_t layout = nullptr;
        const cublasLtMatmulDesc_t product = description(epilogue, bias);
        CHECK_ZERO_STATUS(PLAIN(lt, cublasLtMatrixLayoutCreate)(&layout, type, n, n, n));
        const cublasLtMatmulAlgo_t algorithm = choice(product, layout);
        CHECK_ZERO_STATUS(PLAIN(lt, cublasLtMatmul)(handle, product, &one, a, layout, a, layout, &zero, d, layout, d,
                                                    layout, &algorithm, workspace, ACS_BLASLT_WORKSPACE_BYTES, stream));
        CHECK_ZERO_STATUS(PLAIN(lt, cublasLtMatrixLayoutDestroy)(layout));
        CHECK_ZERO_STATUS(PLAIN(lt, cublasLtMatmulDescDestroy)(product));
    }
};

static void check_blaslt(const plain_lt &lt, const char *name, acs_blaslt_type type, acs_blaslt_activation activation,
                         const void *bias)
{
    enum { N = 256 };
    const size_t bytes = static_cast<size_t>(N) * N * (type == ACS_BLASLT_F32 ? 4 : 2);
    const cudaDataType cuda_type = type == ACS_BLASLT_F32 ? CUDA_R_32F : CUDA_R_16F;
    const uint32_t epilogue = activation == ACS_BLASLT_RELU ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    wrapped_check({name, type == ACS_BLASLT_F32 ? FILL_FLOATS : FILL_HALVES, bytes, bytes,
                   [=, &lt](int, const void *in, void *out, cudaStream_t stream) {
                       lt.run(cuda_type, N, epilogue, bias, in, out, stream);
                   },
                   [=](acs_context *context, int, const void *in, void *out) {
                       acs_blaslt_matmul_params p = {};
                       p.size = sizeof p;
                       p.type = type;
                       p.transa = 1;
                       p.m = p.n = p.k = p.lda = p.ldb = p.ldd = N;
                       p.alpha = 1;
                       p.a = p.b = in;
                       p.d = out;
                       p.bias = bias;
                       p.activation = activation;
                       return acs_blaslt_matmul(context, &p);
                   }});
}

static void blaslt_products()
{
    if (!wrapped_is_there("acs::blaslt", acs_blaslt_load()))
        return;
    plain_lt lt;
    const auto bias = constant(std::vector<float>(256, 0.25f));
    CHECK_ZERO_STATUS(PLAIN(lt.lt, cublasLtCreate)(&lt.handle));
    CHECK_CUDA(cudaMalloc(&lt.workspace, ACS_BLASLT_WORKSPACE_BYTES));
    check_blaslt(lt, "cublasLtMatmul, float, bias and relu", ACS_BLASLT_F32, ACS_BLASLT_RELU, bias.get());
    check_blaslt(lt, "cublasLtMatmul, half, gelu", ACS_BLASLT_F16, ACS_BLASLT_GELU, nullptr);
    CHECK_CUDA(cudaFree(lt.workspace));
    CHECK_ZERO_STATUS(PLAIN(lt.lt, cublasLtDestroy)(lt.handle));
}

/* ----------------------------------------------------------------------------------------------------------- acs::fft */

static cufftResult plain_exec(const plain_library &fft, cufftType type, cufftHandle plan, const void *in, void *out)
{
    void *const from = const_cast<void *>(in);
    switch (type) {
    case CUFFT_C2C:
        return PLAIN(fft, cufftExecC2C)(plan, static_cast<cufftComplex *>(from), static_cast<cufftComplex *>(out),
                                        CUFFT_FORWARD);
    case CUFFT_D2Z:
        return PLAIN(fft, cufftExecD2Z)(plan, static_cast<double *>(from), static_cast<cufftDoubleComplex *>(out));
    default: return PLAIN(fft, cufftExecC2R)(plan, static_cast<cufftComplex *>(from), static_cast<float *>(out));
    }
}

/* One plan for both calls: they may overlap all the same. */
static void check_fft(const char *name, cufftType type, std::vector<int> n, int batch)
{
    const plain_library fft("libcufft.so." PLAIN_TEXT(CUFFT_VER_MAJOR));
    acs_fft_params p = {};
    p.size = sizeof p;
    p.kind = type == CUFFT_C2C ? ACS_FFT_C2C : type == CUFFT_D2Z ? ACS_FFT_R2C : ACS_FFT_C2R;
    p.precise = type == CUFFT_D2Z;
    p.rank = static_cast<int>(n.size());
    p.batch = batch;
    size_t elements = batch, half = batch;
    for (size_t i = 0; i < n.size(); i++) {
        p.n[i] = n[i];
        elements *= n[i];
        half *= i + 1 == n.size() ? n[i] / 2 + 1 : n[i];
    }
    const size_t real = p.precise ? 8 : 4;
    const size_t in_bytes = (type == CUFFT_C2C ? 2 * elements : type == CUFFT_D2Z ? elements : 2 * half) * real;
    const size_t out_bytes = (type == CUFFT_C2C ? 2 * elements : type == CUFFT_D2Z ? 2 * half : elements) * real;
    cufftHandle plain = 0;
    acs_fft_plan *plan = nullptr;
    acs_context *const context = check_open_default();
    const acs_status made = acs_fft_plan_create(context, &p, &plan);
    CHECK_STATUS(made, ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_ZERO_STATUS(PLAIN(fft, cufftPlanMany)(&plain, p.rank, n.data(), nullptr, 1, 0, nullptr, 1, 0, type, batch));
    if (made == ACS_OK)
        wrapped_check({name, p.precise ? FILL_DOUBLES : FILL_FLOATS, in_bytes, out_bytes,
                       [=](int, const void *in, void *out, cudaStream_t stream) {
                           CHECK_ZERO_STATUS(PLAIN(fft, cufftSetStream)(plain, stream));
                           CHECK_ZERO_STATUS(plain_exec(fft, type, plain, in, out));
                       },
                       [=](acs_context *used, int, const void *in, void *out) {
                           return acs_fft_exec(used, plan, in, out,
                                               p.kind == ACS_FFT_C2R ? ACS_FFT_INVERSE : ACS_FFT_FORWARD);
                       }});
    acs_fft_plan_destroy(plan);
    CHECK_ZERO_STATUS(PLAIN(fft, cufftDestroy)(plain));
}

/* 10007 is a prime: such a transform needs a work area. */
static void fourier_transforms()
{
    if (!wrapped_is_there("acs::fft", acs_fft_load()))
        return;
    check_fft("cufftExecC2C, 64 of 4096", CUFFT_C2C, {4096}, 64);
    check_fft("cufftExecC2C, 4 of 10007", CUFFT_C2C, {10007}, 4);
    check_fft("cufftExecD2Z, 2 of 300 x 128", CUFFT_D2Z, {300, 128}, 2);
    check_fft("cufftExecC2R, 8 of 1000", CUFFT_C2R, {1000}, 8);
}

/* It is refused, and the capture goes on. */
static void a_plan_is_not_made_in_a_capture()
{
    if (!wrapped_is_there("acs::fft", acs_fft_load()))
        return;
    acs_context *const context = check_open_default();
    acs_fft_params p = {};
    acs_fft_plan *plan = nullptr;
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    p.size = sizeof p;
    p.rank = p.batch = 1;
    p.n[0] = 64;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(acs_after_stream(context, stream, ACS_USES_ANY) != 0);
    CHECK_STATUS(acs_fft_plan_create(context, &p, &plan), ACS_ERR_STATE);
    CHECK(plan == nullptr);
    CHECK_STATUS(acs_stream_after(context, stream, ACS_USES_ANY), ACS_OK);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_STATUS(acs_fft_plan_create(context, &p, &plan), ACS_OK);
    acs_fft_plan_destroy(plan);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* ---------------------------------------------------------------------------------------------------------- acs::rand */

enum { DRAWN = 300002 }; /* more than a pass of cuRAND's order, and no multiple of four */

typedef acs_op (*draw_function)(acs_context *, acs_rand_generator *, void *);
typedef curandStatus_t (*plain_draw)(const plain_library &, curandGenerator_t, void *);

/* The plain calls are those of one generator, one after the other. Through ACS each begins where the one before ended. */
static void check_rand(const char *name, size_t size, draw_function draw, plain_draw plain)
{
    const plain_library rand("libcurand.so." PLAIN_TEXT(CURAND_VER_MAJOR));
    curandGenerator_t generator = nullptr;
    acs_rand_generator begins[2] = {acs_rand_begin(1234), acs_rand_begin(1234)};
    CHECK_ZERO_STATUS(PLAIN(rand, curandCreateGenerator)(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    CHECK_ZERO_STATUS(PLAIN(rand, curandSetPseudoRandomGeneratorSeed)(generator, 1234));
    begins[1].position = DRAWN / 262144 * (size == 8 ? 2 : 1) * 262144 + DRAWN % 262144;
    begins[1].wide = size == 8;
    wrapped_check({name, FILL_FLOATS, 0, DRAWN * size,
                   [=](int which, const void *, void *out, cudaStream_t stream) {
                       CHECK_ZERO_STATUS(PLAIN(rand, curandSetStream)(generator, stream));
                       if (which == 0)
                           CHECK_ZERO_STATUS(PLAIN(rand, curandSetGeneratorOffset)(generator, 0));
                       CHECK_ZERO_STATUS(plain(rand, generator, out));
                   },
                   [=](acs_context *context, int which, const void *, void *out) {
                       acs_rand_generator g = begins[which];
                       const acs_op op = draw(context, &g, out);
                       CHECK(which == 1 || (g.position == begins[1].position && g.wide == begins[1].wide));
                       return op;
                   }});
    CHECK_ZERO_STATUS(PLAIN(rand, curandDestroyGenerator)(generator));
}

static void random_numbers()
{
    if (!wrapped_is_there("acs::rand", acs_rand_load()))
        return;
    check_rand(
        "curandGenerate", 4,
        [](acs_context *c, acs_rand_generator *g, void *out) { return acs_rand_bits(c, g, (uint32_t *)out, DRAWN); },
        [](const plain_library &rand, curandGenerator_t g, void *out) {
            return PLAIN(rand, curandGenerate)(g, static_cast<unsigned *>(out), DRAWN);
        });
    check_rand(
        "curandGenerateUniform", 4,
        [](acs_context *c, acs_rand_generator *g, void *out) { return acs_rand_uniform(c, g, (float *)out, DRAWN); },
        [](const plain_library &rand, curandGenerator_t g, void *out) {
            return PLAIN(rand, curandGenerateUniform)(g, static_cast<float *>(out), DRAWN);
        });
    check_rand(
        "curandGenerateUniformDouble", 8,
        [](acs_context *c, acs_rand_generator *g, void *out) { return acs_rand_uniform_double(c, g, (double *)out, DRAWN); },
        [](const plain_library &rand, curandGenerator_t g, void *out) {
            return PLAIN(rand, curandGenerateUniformDouble)(g, static_cast<double *>(out), DRAWN);
        });
    check_rand(
        "curandGenerateNormal", 4,
        [](acs_context *c, acs_rand_generator *g, void *out) { return acs_rand_normal(c, g, (float *)out, DRAWN, 1, 2); },
        [](const plain_library &rand, curandGenerator_t g, void *out) {
            return PLAIN(rand, curandGenerateNormal)(g, static_cast<float *>(out), DRAWN, 1, 2);
        });
    check_rand(
        "curandGenerateNormalDouble", 8,
        [](acs_context *c, acs_rand_generator *g, void *out) {
            return acs_rand_normal_double(c, g, (double *)out, DRAWN, 1, 2);
        },
        [](const plain_library &rand, curandGenerator_t g, void *out) {
            return PLAIN(rand, curandGenerateNormalDouble)(g, static_cast<double *>(out), DRAWN, 1, 2);
        });
}

/* Draws of all lengths, one behind the other. `element` bytes each. */
static void draw_parts(acs_context *context, size_t element, void *out)
{
    static const size_t counts[] = {1, 6, 262139, 3, 2, 30001};
    acs_rand_generator g = acs_rand_begin(99);
    char *at = static_cast<char *>(out);
    for (size_t count : counts) {
        CHECK((element == 4 ? acs_rand_bits(context, &g, reinterpret_cast<uint32_t *>(at), count)
                            : acs_rand_uniform_double(context, &g, reinterpret_cast<double *>(at), count)) != 0);
        at += count * element;
    }
    CHECK_STATUS(acs_sync(context), ACS_OK);
}

/* Bits and uniform numbers are those of the CPU's generator, too. */
static void random_numbers_are_those_of_the_cpu()
{
    enum { ALL = 1 + 6 + 262139 + 3 + 2 + 30001 };
    static double gpu[ALL], cpu[ALL];
    acs_options options = check_options();
    acs_context *host = nullptr;
    void *out = nullptr;
    if (!wrapped_is_there("acs::rand", acs_rand_load()))
        return;
    acs_context *const context = check_open_default();
    options.backend = ACS_BACKEND_HOST;
    CHECK_STATUS(acs_open(&options, &host), ACS_OK);
    CHECK_CUDA(cudaMalloc(&out, sizeof gpu));
    for (size_t element = 4; element <= 8; element += 4) {
        draw_parts(context, element, out);
        draw_parts(host, element, cpu);
        CHECK_CUDA(cudaMemcpy(gpu, out, ALL * element, cudaMemcpyDeviceToHost));
        CHECK(memcmp(gpu, cpu, ALL * element) == 0);
    }
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_STATUS(acs_close(host), ACS_OK);
    CHECK_CUDA(cudaFree(out));
}

/* -------------------------------------------------------------------------------------------------------- acs::sparse */

enum { ROWS = 20000, COLUMNS = 15000, B_COLUMNS = 16 };

/* Rows of 0 to 40 elements, some hundreds in a few. */
struct csr {
    std::vector<int> offsets{0}, indices;
    std::vector<float> values;
    csr()
    {
        for (int i = 0; i < ROWS; i++) {
            const int count = i % 1000 == 7 ? 700 : i * 31 % 41;
            for (int k = 0; k < count; k++) {
                indices.push_back(static_cast<int>((i * 7ll + k * 19ll) % COLUMNS));
                values.push_back(static_cast<float>((i + k * 13) % 17 - 8) / 8);
            }
            offsets.push_back(static_cast<int>(indices.size()));
        }
    }
};

/* A plain product; n 0: by a vector. The buffer is made for each. */
struct plain_sparse {
    const plain_library sparse{"libcusparse.so." PLAIN_TEXT(CUSPARSE_VER_MAJOR)};
    cusparseHandle_t handle = nullptr;
    acs_sparse_matrix a = {};

    cusparseConstSpMatDescr_t matrix() const
    {
        cusparseConstSpMatDescr_t made = nullptr;
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseCreateConstCsr)(
            &made, ROWS, COLUMNS, a.nonzeros, a.row_offsets, a.column_indices, a.values, CUSPARSE_INDEX_32I,
            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
        return made;
    }

    void vector(const void *in, void *out, cudaStream_t stream) const
    {
        const float one = 1, zero = 0;
        const auto none = CUSPARSE_OPERATION_NON_TRANSPOSE;
        cusparseConstDnVecDescr_t x = nullptr;
        cusparseDnVecDescr_t y = nullptr;
        size_t bytes = 0;
        void *buffer = nullptr;
        const auto m = matrix();
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseSetStream)(handle, stream));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseCreateConstDnVec)(&x, COLUMNS, in, CUDA_R_32F));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseCreateDnVec)(&y, ROWS, out, CUDA_R_32F));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseSpMV_bufferSize)(handle, none, &one, m, x, &zero, y, CUDA_R_32F,
                                                                 CUSPARSE_SPMV_CSR_ALG2, &bytes));
        CHECK_CUDA(cudaMalloc(&buffer, bytes + 1));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseSpMV)(handle, none, &one, m, x, &zero, y, CUDA_R_32F,
                                                      CUSPARSE_SPMV_CSR_ALG2, buffer));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        CHECK_CUDA(cudaFree(buffer));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseDestroyDnVec)(x));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseDestroyDnVec)(y));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseDestroySpMat)(m));
    }

    void dense(const void *in, void *out, cudaStream_t stream) const
    {
        const float one = 1, zero = 0;
        const auto none = CUSPARSE_OPERATION_NON_TRANSPOSE;
        cusparseConstDnMatDescr_t b = nullptr;
        cusparseDnMatDescr_t c = nullptr;
        size_t bytes = 0;
        void *buffer = nullptr;
        const auto m = matrix();
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseSetStream)(handle, stream));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseCreateConstDnMat)(&b, COLUMNS, B_COLUMNS, COLUMNS, in, CUDA_R_32F,
                                                                  CUSPARSE_ORDER_COL));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseCreateDnMat)(&c, ROWS, B_COLUMNS, ROWS, out, CUDA_R_32F,
                                                             CUSPARSE_ORDER_COL));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseSpMM_bufferSize)(handle, none, none, &one, m, b, &zero, c, CUDA_R_32F,
                                                                 CUSPARSE_SPMM_CSR_ALG3, &bytes));
        CHECK_CUDA(cudaMalloc(&buffer, bytes + 1));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseSpMM)(handle, none, none, &one, m, b, &zero, c, CUDA_R_32F,
                                                      CUSPARSE_SPMM_CSR_ALG3, buffer));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        CHECK_CUDA(cudaFree(buffer));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseDestroyDnMat)(b));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseDestroyDnMat)(c));
        CHECK_ZERO_STATUS(PLAIN(sparse, cusparseDestroySpMat)(m));
    }
};

static void sparse_products()
{
    if (!wrapped_is_there("acs::sparse", acs_sparse_load()))
        return;
    const csr host;
    const auto offsets = constant(host.offsets);
    const auto indices = constant(host.indices);
    const auto values = constant(host.values);
    plain_sparse plain;
    acs_sparse_matrix &a = plain.a;
    a.size = sizeof a;
    a.rows = ROWS;
    a.columns = COLUMNS;
    a.nonzeros = static_cast<int>(host.indices.size());
    a.row_offsets = offsets.get();
    a.column_indices = indices.get();
    a.values = values.get();
    a.columns_of_b = B_COLUMNS;
    acs_context *const context = check_open_default();
    CHECK_STATUS(acs_sparse_prepare(context, &a), ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
    printf("cusparse: the buffers have %zu and %zu bytes for %d nonzeros\n", a.spmv_bytes, a.spmm_bytes, a.nonzeros);
    CHECK_ZERO_STATUS(PLAIN(plain.sparse, cusparseCreate)(&plain.handle));
    wrapped_check({"cusparseSpMV", FILL_FLOATS, COLUMNS * 4, ROWS * 4,
                   [&](int, const void *in, void *out, cudaStream_t stream) { plain.vector(in, out, stream); },
                   [&](acs_context *used, int, const void *in, void *out) {
                       return acs_sparse_spmv(used, 1, &a, in, 0, out);
                   }});
    wrapped_check({"cusparseSpMM", FILL_FLOATS, COLUMNS * B_COLUMNS * 4, ROWS * B_COLUMNS * 4,
                   [&](int, const void *in, void *out, cudaStream_t stream) { plain.dense(in, out, stream); },
                   [&](acs_context *used, int, const void *in, void *out) {
                       return acs_sparse_spmm(used, B_COLUMNS, 1, &a, in, COLUMNS, 0, out, ROWS);
                   }});
    CHECK_ZERO_STATUS(PLAIN(plain.sparse, cusparseDestroy)(plain.handle));
}

int main(int argc, char **argv)
{
    const check_test tests[] = {
        CHECK_TEST(blas_products),
        CHECK_TEST(solver_factorizations),
        CHECK_TEST(blaslt_products),
        CHECK_TEST(fourier_transforms),
        CHECK_TEST(a_plan_is_not_made_in_a_capture),
        CHECK_TEST(random_numbers),
        CHECK_TEST(random_numbers_are_those_of_the_cpu),
        CHECK_TEST(sparse_products),
    };
    return wrapped_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}

/*
 * acs_dnn on a GPU: layers through ACS have the bits of cuDNN's plain calls, in captures and outside, and independent ones
 * overlap. Those that are not compared with plain calls are compared with the CPU.
 */
#include "acs_dnn.h"

#include "gpu_wrapped.cuh"

#include <cmath>
#include <cudnn.h>

#define CHECK_DNN(call) CHECK_EQ(static_cast<int>(call), 0)

enum { N = 8, C = 16, H = 32, W = 32, FILTERS = 32, X_BYTES = N * C * H * W * 4, Y_BYTES = N * FILTERS * H * W * 4 };

/* Plain calls, with descriptors that stay. */
struct plain_dnn {
    const plain_library dnn{"libcudnn.so." PLAIN_TEXT(CUDNN_MAJOR)};
    cudnnHandle_t handle = nullptr;
    cudnnTensorDescriptor_t x = nullptr, y = nullptr, bias_shape = nullptr;
    cudnnFilterDescriptor_t filter = nullptr;
    cudnnConvolutionDescriptor_t convolution = nullptr;
    cudnnActivationDescriptor_t relu = nullptr;
    float *filters = nullptr, *bias = nullptr;
    void *workspace = nullptr;
    size_t workspace_bytes = 0;
    const cudnnConvolutionFwdAlgo_t algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;

    void tensor(cudnnTensorDescriptor_t *made, int n, int c, int h, int w) const
    {
        CHECK_DNN(PLAIN(dnn, cudnnCreateTensorDescriptor)(made));
        CHECK_DNN(PLAIN(dnn, cudnnSetTensor4dDescriptor)(*made, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w));
    }

    void parameters()
    {
        std::vector<float> values(FILTERS * C * 9);
        for (size_t i = 0; i < values.size(); i++)
            values[i] = static_cast<float>(i * 37 % 101) / 101 - 0.5f;
        CHECK_CUDA(cudaMalloc(&filters, values.size() * 4));
        CHECK_CUDA(cudaMemcpy(filters, values.data(), values.size() * 4, cudaMemcpyHostToDevice));
        CHECK_CUDA(cudaMalloc(&bias, FILTERS * 4));
        CHECK_CUDA(cudaMemcpy(bias, values.data(), FILTERS * 4, cudaMemcpyHostToDevice));
    }

    void open()
    {
        parameters();
        CHECK_DNN(PLAIN(dnn, cudnnCreate)(&handle));
        tensor(&x, N, C, H, W);
        tensor(&y, N, FILTERS, H, W);
        tensor(&bias_shape, 1, FILTERS, 1, 1);
        CHECK_DNN(PLAIN(dnn, cudnnCreateFilterDescriptor)(&filter));
        CHECK_DNN(PLAIN(dnn, cudnnSetFilter4dDescriptor)(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, FILTERS, C, 3, 3));
        CHECK_DNN(PLAIN(dnn, cudnnCreateConvolutionDescriptor)(&convolution));
        CHECK_DNN(PLAIN(dnn, cudnnSetConvolution2dDescriptor)(convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                                              CUDNN_DATA_FLOAT));
        CHECK_DNN(PLAIN(dnn, cudnnSetConvolutionMathType)(convolution, CUDNN_FMA_MATH));
        CHECK_DNN(PLAIN(dnn, cudnnCreateActivationDescriptor)(&relu));
        CHECK_DNN(PLAIN(dnn, cudnnSetActivationDescriptor)(relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
        CHECK_DNN(PLAIN(dnn, cudnnGetConvolutionForwardWorkspaceSize)(handle, x, filter, convolution, y, algorithm,
                                                                      &workspace_bytes));
        CHECK_CUDA(cudaMalloc(&workspace, workspace_bytes + 1));
    }

    void convolve(const void *in, void *out, cudaStream_t stream) const
    {
        const float one = 1, zero = 0;
        CHECK_DNN(PLAIN(dnn, cudnnSetStream)(handle, stream));
        CHECK_DNN(PLAIN(dnn, cudnnConvolutionBiasActivationForward)(handle, &one, x, in, filter, filters, convolution,
                                                                    algorithm, workspace, workspace_bytes, &zero, y, out,
                                                                    bias_shape, bias, relu, y, out));
    }

    void softmax(const void *in, void *out, cudaStream_t stream) const
    {
        const float one = 1, zero = 0;
        CHECK_DNN(PLAIN(dnn, cudnnSetStream)(handle, stream));
        CHECK_DNN(PLAIN(dnn, cudnnSoftmaxForward)(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x, in,
                                                  &zero, x, out));
    }

    void close()
    {
        for (const auto t : {x, y, bias_shape})
            CHECK_DNN(PLAIN(dnn, cudnnDestroyTensorDescriptor)(t));
        CHECK_DNN(PLAIN(dnn, cudnnDestroyFilterDescriptor)(filter));
        CHECK_DNN(PLAIN(dnn, cudnnDestroyConvolutionDescriptor)(convolution));
        CHECK_DNN(PLAIN(dnn, cudnnDestroyActivationDescriptor)(relu));
        CHECK_DNN(PLAIN(dnn, cudnnDestroy)(handle));
        for (void *const p : {static_cast<void *>(filters), static_cast<void *>(bias), workspace})
            CHECK_CUDA(cudaFree(p));
    }
};

static acs_dnn_convolution prepared()
{
    acs_dnn_convolution conv = {};
    acs_context *const context = check_open_default();
    conv.size = sizeof conv;
    conv.x = {N, C, H, W};
    conv.filters = FILTERS;
    conv.height = conv.width = 3;
    conv.pad_h = conv.pad_w = 1;
    conv.activation = ACS_DNN_RELU;
    CHECK_STATUS(acs_dnn_convolution_prepare(context, &conv), ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
    return conv;
}

static void convolutions_and_softmax()
{
    if (!wrapped_is_there("acs::dnn", acs_dnn_load()))
        return;
    plain_dnn plain;
    plain.open();
    const acs_dnn_convolution conv = prepared();
    CHECK_EQ(conv.workspace_bytes, plain.workspace_bytes);
    wrapped_check({"cudnnConvolutionBiasActivationForward", FILL_FLOATS, X_BYTES, Y_BYTES,
                   [&](int, const void *in, void *out, cudaStream_t stream) { plain.convolve(in, out, stream); },
                   [&](acs_context *context, int, const void *in, void *out) {
                       return acs_dnn_convolve(context, &conv, static_cast<const float *>(in), plain.filters, plain.bias,
                                               static_cast<float *>(out));
                   }});
    wrapped_check({"cudnnSoftmaxForward", FILL_FLOATS, X_BYTES, X_BYTES,
                   [&](int, const void *in, void *out, cudaStream_t stream) { plain.softmax(in, out, stream); },
                   [](acs_context *context, int, const void *in, void *out) {
                       return acs_dnn_softmax(context, acs_dnn_shape{N, C, H, W}, static_cast<const float *>(in),
                                              static_cast<float *>(out));
                   }});
    plain.close();
}

/* A network of all layers, on a context of any backend. `memory`: room for four tensors and the parameters. */
static void queue_network(acs_context *context, float *memory)
{
    enum { TENSOR = N * FILTERS * H * W };
    float *const x = memory, *const a = memory + TENSOR, *const b = memory + 2 * TENSOR, *const y = memory + 3 * TENSOR;
    float *const filters = memory + 4 * TENSOR, *const vector = filters + FILTERS * C * 9;
    const acs_dnn_shape shape = {N, FILTERS, H, W};
    const acs_dnn_norm norm = {vector, vector, vector, vector, 1};
    acs_dnn_convolution conv = {};
    acs_dnn_pooling pooling = {};
    conv.size = sizeof conv;
    conv.x = {N, C, H, W};
    conv.filters = FILTERS;
    conv.height = conv.width = 3;
    conv.pad_h = conv.pad_w = 1;
    conv.activation = ACS_DNN_RELU;
    pooling.size = sizeof pooling;
    pooling.x = shape;
    pooling.mode = ACS_DNN_AVERAGE_WITHOUT_PADDING;
    pooling.height = pooling.width = 3;
    pooling.pad_h = pooling.pad_w = 1;
    CHECK_STATUS(acs_dnn_convolution_prepare(context, &conv), ACS_OK);
    CHECK(acs_dnn_convolve(context, &conv, x, filters, nullptr, a) != 0);
    CHECK(acs_dnn_normalise(context, shape, &norm, a, b) != 0);
    CHECK(acs_dnn_activate(context, shape, ACS_DNN_TANH, b, b) != 0);
    CHECK(acs_dnn_pool(context, &pooling, b, y) != 0);
    CHECK(acs_dnn_softmax(context, shape, y, y) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
}

static void all_layers_agree_with_the_cpu()
{
    enum { TENSOR = N * FILTERS * H * W, ALL = 4 * TENSOR + FILTERS * C * 9 + FILTERS };
    if (!wrapped_is_there("acs::dnn", acs_dnn_load()))
        return;
    std::vector<float> cpu(ALL), gpu(TENSOR);
    for (size_t i = 0; i < cpu.size(); i++)
        cpu[i] = static_cast<float>(i * 37 % 101) / 101;
    acs_options options = check_options();
    acs_context *host = nullptr, *const context = check_open_default();
    float *memory = nullptr;
    CHECK_CUDA(cudaMalloc(&memory, ALL * sizeof(float)));
    CHECK_CUDA(cudaMemcpy(memory, cpu.data(), ALL * sizeof(float), cudaMemcpyHostToDevice));
    options.backend = ACS_BACKEND_HOST;
    CHECK_STATUS(acs_open(&options, &host), ACS_OK);
    queue_network(context, memory);
    queue_network(host, cpu.data());
    CHECK_CUDA(cudaMemcpy(gpu.data(), memory + 3 * TENSOR, TENSOR * sizeof(float), cudaMemcpyDeviceToHost));
    float most = 0;
    for (int i = 0; i < TENSOR; i++)
        most = std::fmax(most, std::fabs(gpu[i] - cpu[3 * TENSOR + i]));
    printf("the layers differ from the CPU's by %g at most\n", static_cast<double>(most));
    CHECK(most < 1e-4f);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_STATUS(acs_close(host), ACS_OK);
    CHECK_CUDA(cudaFree(memory));
}

int main(int argc, char **argv)
{
    const check_test tests[] = {
        CHECK_TEST(convolutions_and_softmax),
        CHECK_TEST(all_layers_agree_with_the_cpu),
    };
    return wrapped_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}

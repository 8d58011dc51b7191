/*
 * A serial program for a framework's tensors: several rows, each worked on by a chain of short kernels. It is given the
 * framework's stream, and does not know whether that is being captured: if it is, the kernels become a graph that is as
 * wide as there are rows. A shared library with a C interface, for ctypes (capture.py); no framework's headers are needed.
 */
#include <acs.h>

#include <cuda_runtime.h>
#include <cstdio>

static __global__ void advance(float *row, int count, float gain)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        row[i] = row[i] * gain + 1.0f;
}

/** What went wrong in this thread's last call, in `text`. */
extern "C" void chains_error(char *text, size_t bytes)
{
    acs_error error = {};

    error.size = sizeof error;
    if (!bytes)
        return;
    text[0] = 0;
    if (acs_last_error(&error) == ACS_OK)
        return;
    snprintf(text, bytes, "%s", error.text);
}

/** `steps` times row = row * gain + 1, for each of `rows` rows of `count` floats, in the order of `stream`. 0: done. */
extern "C" int chains_run(float *data, int rows, int count, int steps, float gain, void *stream)
{
    const size_t row_bytes = static_cast<size_t>(count) * sizeof(float);
    acs_context *const context = acs_default();

    if (!context || !acs_after_stream(context, stream, ACS_USES(ACS_INOUT(data, rows * row_bytes))))
        return 1;
    int refused = 0;
    for (int step = 0; step < steps; step++)
        for (int r = 0; r < rows; r++) {
            float *const row = data + static_cast<size_t>(r) * count;
            refused += !ACS_LAUNCH_ON(context, advance, 4, 256, 0, ACS_ARGS(row, count, gain),
                                      ACS_USES(ACS_INOUT(row, row_bytes)));
        }
    const acs_status status = acs_stream_after(context, stream, ACS_USES(ACS_INOUT(data, rows * row_bytes)));
    return refused || status != ACS_OK;
}

/** The same by launches into the stream, for comparison. */
extern "C" int chains_plain(float *data, int rows, int count, int steps, float gain, void *stream)
{
    for (int step = 0; step < steps; step++)
        for (int r = 0; r < rows; r++)
            advance<<<4, 256, 0, static_cast<cudaStream_t>(stream)>>>(data + static_cast<size_t>(r) * count, count, gain);
    return cudaGetLastError() != cudaSuccess;
}

/* A program that captures a graph stays as it is. */
#include <cuda_runtime.h>

__global__ void kernel(float *x) { x[0] = 1; }

void run(float *x, float *host, cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaMemcpy(x, host, 4, cudaMemcpyHostToDevice);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    kernel<<<1, 1, 0, stream>>>(x);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, stream);
    cudaDeviceSynchronize();
}

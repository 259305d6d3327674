"""Kernels that the CuPy programs share: work that is counted, not timed."""

import cupy

LOGISTIC = cupy.RawKernel(
    r"""
extern "C" __global__ void logistic(float* x, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    for (int k = 0; k < rounds; ++k) value = 3.7f * value * (1.0f - value);
    x[i] = value;
}""",
    "logistic",
)
HISTOGRAM = cupy.RawKernel(
    r"""
extern "C" __global__ void histogram(const int* x, int n, int* bins) {
    extern __shared__ int local[];
    for (int k = threadIdx.x; k < 8192; k += blockDim.x) local[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[x[i] & 8191], 1);
    __syncthreads();
    for (int k = threadIdx.x; k < 8192; k += blockDim.x)
        if (local[k]) atomicAdd(&bins[k], local[k]);
}""",
    "histogram",
)
MANDELBROT = cupy.RawKernel(
    r"""
extern "C" __global__ void mandelbrot(int* image, int width, float x0, float y0, float size,
                                      int limit) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    float cx = x0 + size * px / width, cy = y0 + size * py / width, x = 0, y = 0;
    int k = 0;
    for (; k < limit && x * x + y * y < 4.0f; ++k) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
    }
    image[py * width + px] = k;
}""",
    "mandelbrot",
)


def logistic(x, blocks, rounds):
    """In the current stream, 256 threads a block."""
    LOGISTIC((blocks,), (256,), (x, cupy.int32(rounds)))

// One thread per item, or a loop over items with any number of threads.
// Every kernel of this folder has the same parameters: inputs a and b, random places, ascending
// offsets of rows, what it writes, and two sizes.

#include <cuda_fp16.h>

namespace {

__device__ int item() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
__device__ int stride() { return static_cast<int>(gridDim.x * blockDim.x); }

template <typename Body>
__device__ void each(int n, Body body) {
  for (int i = item(); i < n; i += stride()) body(i);
}

__device__ float gelu(float x) {
  return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
}

__device__ unsigned mixed(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ x >> 16;
}

}  // namespace

extern "C" {

__global__ void saxpy_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                          const int*, float* __restrict__ out, int n, int) {
  const int i = item();
  if (i < n) out[i] = 2.5f * a[i] + b[i];
}

__global__ void daxpy_f64(const double* __restrict__ a, const double* __restrict__ b, const int*,
                          const int*, double* __restrict__ out, int n, int) {
  const int i = item();
  if (i < n) out[i] = 2.5 * a[i] + b[i];
}

__global__ void saxpy_loop_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                               const int*, float* __restrict__ out, int n, int) {
  each(n, [&](int i) { out[i] = 2.5f * a[i] + b[i]; });
}

__global__ void copy_f32(const float* __restrict__ a, const float*, const int*, const int*,
                         float* __restrict__ out, int n, int) {
  const int i = item();
  if (i < n) out[i] = a[i];
}

__global__ void copy_four_f32(const float4* __restrict__ a, const float*, const int*, const int*,
                              float4* __restrict__ out, int n, int) {
  const int i = item();
  if (i < n) out[i] = a[i];
}

__global__ void gelu_f32(const float* __restrict__ a, const float*, const int*, const int*,
                         float* __restrict__ out, int n, int) {
  const int i = item();
  if (i < n) out[i] = gelu(a[i]);
}

__global__ void gelu_loop_f32(const float* __restrict__ a, const float*, const int*, const int*,
                              float* __restrict__ out, int n, int) {
  each(n, [&](int i) { out[i] = gelu(a[i]); });
}

__global__ void swiglu_f16(const __half2* __restrict__ a, const __half2* __restrict__ b, const int*,
                           const int*, __half2* __restrict__ out, int n, int) {
  each(n, [&](int i) {
    const float2 x = __half22float2(a[i]);
    const float2 y = __half22float2(b[i]);
    out[i] =
        __floats2half2_rn(x.x / (1.0f + __expf(-x.x)) * y.x, x.y / (1.0f + __expf(-x.y)) * y.y);
  });
}

__global__ void relu_f16(const __half2* __restrict__ a, const __half2* __restrict__ b, const int*,
                         const int*, __half2* __restrict__ out, int n, int) {
  const int i = item();
  if (i < n) out[i] = __hmax2(__hfma2(a[i], b[i], b[i]), __float2half2_rn(0.5f));
}

__global__ void adam_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                         const int*, float* __restrict__ out, int n, int) {
  const int i = item();
  if (i >= n) return;
  const float gradient = a[i] - 0.5f;
  const float first = 0.9f * b[i] + 0.1f * gradient;
  const float second = 0.999f * b[n + i] + 0.001f * gradient * gradient;
  out[i] = a[n + i] - 1e-3f * first / (sqrtf(second) + 1e-8f);
  out[n + i] = first;
  out[2 * n + i] = second;
}

__global__ void exp_log_f64(const double* __restrict__ a, const double* __restrict__ b, const int*,
                            const int*, double* __restrict__ out, int n, int) {
  const int i = item();
  if (i < n) out[i] = log(a[i] + 1.5) + exp(-b[i]);
}

__global__ void norm_3d_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                            const int*, float* __restrict__ out, int n, int) {
  const int i = item();
  if (i >= n) return;
  const float x = a[i];
  const float y = a[n + i];
  const float z = b[i];
  const float scale = rsqrtf(x * x + y * y + z * z + 1e-6f);
  out[i] = x * scale;
  out[n + i] = y * scale;
  out[2 * n + i] = z * scale;
}

__global__ void gray_i32(const uchar4* __restrict__ a, const int*, const int*, const int*,
                         uchar4* __restrict__ out, int n, int) {
  const int i = item();
  if (i >= n) return;
  const uchar4 c = a[i];
  const unsigned char g = static_cast<unsigned char>((77 * c.x + 150 * c.y + 29 * c.z) >> 8);
  out[i] = make_uchar4(g, g, g, c.w);
}

__global__ void dequantize_i32(const char4* __restrict__ a, const int*, const int*, const int*,
                               float4* __restrict__ out, int n, int m) {
  each(n, [&](int i) {
    const float scale = 0.01f * static_cast<float>(1 + i % m);
    const char4 c = a[i];
    out[i] = make_float4(scale * c.x, scale * c.y, scale * c.z, scale * c.w);
  });
}

__global__ void dropout_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                            const int*, float* __restrict__ out, int n, int m) {
  const int i = item();
  if (i < n) out[i] = mixed(static_cast<unsigned>(i)) & 1U ? 2.0f * (a[i] + b[i % m]) : 0.0f;
}

__global__ void polynomial_f64(const double* __restrict__ a, const double*, const int*, const int*,
                               double* __restrict__ out, int n, int m) {
  const int i = item();
  if (i >= n) return;
  double sum = 1.0;
  for (int k = 0; k < m; ++k) sum = fma(sum, a[i], 0.25);
  out[i] = sum;
}

__global__ void hash_i32(const int* __restrict__ a, const int*, const int*, const int*,
                         unsigned* __restrict__ out, int n, int m) {
  const int i = item();
  if (i >= n) return;
  unsigned x = static_cast<unsigned>(a[i]);
  for (int k = 0; k < m; ++k) x = mixed(x + k);
  out[i] = x;
}

__global__ void gather_f32(const float* __restrict__ a, const float*, const int* __restrict__ index,
                           const int*, float* __restrict__ out, int n, int) {
  const int i = item();
  if (i < n) out[i] = a[index[i] % n];
}

__global__ void gather_loop_f64(const double* __restrict__ a, const double* __restrict__ b,
                                const int* __restrict__ index, const int*, double* __restrict__ out,
                                int n, int) {
  each(n, [&](int i) { out[i] = a[index[i] % n] * b[i]; });
}

}  // extern "C"

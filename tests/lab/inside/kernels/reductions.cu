// Sums and their like: over everything, over rows, over columns, and from item to item.

#include <cuda_fp16.h>

namespace {

constexpr unsigned kAll = 0xffffffffU;

__device__ int item() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
__device__ int stride() { return static_cast<int>(gridDim.x * blockDim.x); }
__device__ int lane() { return static_cast<int>(threadIdx.x % 32); }
__device__ int warps() { return static_cast<int>(blockDim.x / 32); }

struct Add {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    return x + y;
  }
};

struct Most {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    return x > y ? x : y;
  }
};

template <typename T, typename Operation>
__device__ T in_warp(T value, Operation operation) {
  for (int apart = 16; apart > 0; apart /= 2) {
    value = operation(value, __shfl_xor_sync(kAll, value, apart));
  }
  return value;
}

// All threads get the result. Whole warps are needed.
template <typename T, typename Operation>
__device__ T in_block(T value, T nothing, Operation operation) {
  __shared__ T parts[32];
  value = in_warp(value, operation);
  __syncthreads();
  if (lane() == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  return in_warp(lane() < warps() ? parts[lane()] : nothing, operation);
}

template <typename T, typename Each>
__device__ void total(T* out, int n, Each each) {
  T sum{};
  for (int i = item(); i < n; i += stride()) sum += each(i);
  sum = in_block(sum, T{}, Add{});
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

}  // namespace

extern "C" {

__global__ void sum_f32(const float* __restrict__ a, const float*, const int*, const int*,
                        float* __restrict__ out, int n, int) {
  total(out, n, [&](int i) { return a[i]; });
}

__global__ void sum_f64(const double* __restrict__ a, const double*, const int*, const int*,
                        double* __restrict__ out, int n, int) {
  total(out, n, [&](int i) { return a[i]; });
}

__global__ void dot_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                        const int*, float* __restrict__ out, int n, int) {
  total(out, n, [&](int i) { return a[i] * b[i]; });
}

__global__ void sum_four_f32(const float4* __restrict__ a, const float*, const int*, const int*,
                             float* __restrict__ out, int n, int) {
  total(out, n, [&](int i) {
    const float4 v = a[i];
    return v.x + v.y + v.z + v.w;
  });
}

// As the SDK's first reductions: one item per thread, a tree in shared memory.
__global__ void sum_tree_f32(const float* __restrict__ a, const float*, const int*, const int*,
                             float* __restrict__ out, int n, int) {
  extern __shared__ float held[];
  const int i = item();
  held[threadIdx.x] = i < n ? a[i] : 0.0f;
  __syncthreads();
  unsigned left = blockDim.x;
  while (left > 1) {
    const unsigned half = (left + 1) / 2;
    if (threadIdx.x + half < left) held[threadIdx.x] += held[threadIdx.x + half];
    left = half;
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, held[0]);
}

__global__ void most_f32(const float* __restrict__ a, const float*, const int*, const int*,
                         int* __restrict__ out, int n, int) {
  float most = 0.0f;
  for (int i = item(); i < n; i += stride()) most = fmaxf(most, fabsf(a[i]));
  most = in_block(most, 0.0f, Most{});
  if (threadIdx.x == 0) atomicMax(out, __float_as_int(most));
}

__global__ void softmax_f32(const float* __restrict__ a, const float*, const int*, const int*,
                            float* __restrict__ out, int, int m) {
  const float* row = a + static_cast<long>(blockIdx.x) * m;
  float* to = out + static_cast<long>(blockIdx.x) * m;
  float most = -1e30f;
  for (int i = threadIdx.x; i < m; i += blockDim.x) most = fmaxf(most, row[i]);
  most = in_block(most, -1e30f, Most{});
  float sum = 0.0f;
  for (int i = threadIdx.x; i < m; i += blockDim.x) sum += __expf(row[i] - most);
  sum = in_block(sum, 0.0f, Add{});
  for (int i = threadIdx.x; i < m; i += blockDim.x) to[i] = __expf(row[i] - most) / sum;
}

__global__ void softmax_wide_f32(const float* __restrict__ a, const float*, const int*, const int*,
                                 float* __restrict__ out, int, int m) {
  // Maximum and sum in one pass, as in streaming attention.
  const float* row = a + static_cast<long>(blockIdx.x) * m;
  float* to = out + static_cast<long>(blockIdx.x) * m;
  float most = -1e30f;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < m; i += blockDim.x) {
    const float now = fmaxf(most, row[i]);
    sum = sum * __expf(most - now) + __expf(row[i] - now);
    most = now;
  }
  const float whole = in_block(most, -1e30f, Most{});
  sum = in_block(sum * __expf(most - whole), 0.0f, Add{});
  for (int i = threadIdx.x; i < m; i += blockDim.x) to[i] = __expf(row[i] - whole) / sum;
}

__global__ void layer_norm_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                               const int*, float* __restrict__ out, int, int m) {
  const float* row = a + static_cast<long>(blockIdx.x) * m;
  float* to = out + static_cast<long>(blockIdx.x) * m;
  float sum = 0.0f;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < m; i += blockDim.x) {
    sum += row[i];
    squares += row[i] * row[i];
  }
  const float mean = in_block(sum, 0.0f, Add{}) / m;
  const float scale = rsqrtf(in_block(squares, 0.0f, Add{}) / m - mean * mean + 1e-5f);
  for (int i = threadIdx.x; i < m; i += blockDim.x)
    to[i] = (row[i] - mean) * scale * b[i] + b[m + i];
}

__global__ void rms_norm_f16(const __half* __restrict__ a, const __half* __restrict__ b, const int*,
                             const int*, __half* __restrict__ out, int, int m) {
  const __half* row = a + static_cast<long>(blockIdx.x) * m;
  __half* to = out + static_cast<long>(blockIdx.x) * m;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < m; i += blockDim.x) {
    const float x = __half2float(row[i]);
    squares += x * x;
  }
  const float scale = rsqrtf(in_block(squares, 0.0f, Add{}) / m + 1e-5f);
  for (int i = threadIdx.x; i < m; i += blockDim.x) {
    to[i] = __float2half(__half2float(row[i]) * scale * __half2float(b[i]));
  }
}

__global__ void cross_entropy_f32(const float* __restrict__ a, const float*,
                                  const int* __restrict__ index, const int*,
                                  float* __restrict__ out, int, int m) {
  const float* row = a + static_cast<long>(blockIdx.x) * m;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < m; i += blockDim.x) sum += __expf(row[i]);
  sum = in_block(sum, 0.0f, Add{});
  if (threadIdx.x == 0) out[blockIdx.x] = __logf(sum) - row[index[blockIdx.x] % m];
}

__global__ void variance_f64(const double* __restrict__ a, const double*, const int*, const int*,
                             double* __restrict__ out, int, int m) {
  const double* row = a + static_cast<long>(blockIdx.x) * m;
  double sum = 0.0;
  for (int i = threadIdx.x; i < m; i += blockDim.x) sum += row[i];
  const double mean = in_block(sum, 0.0, Add{}) / m;
  double squares = 0.0;
  for (int i = threadIdx.x; i < m; i += blockDim.x) squares += (row[i] - mean) * (row[i] - mean);
  squares = in_block(squares, 0.0, Add{});
  if (threadIdx.x == 0) out[blockIdx.x] = squares / (m - 1);
}

__global__ void row_sum_f32(const float* __restrict__ a, const float*, const int*, const int*,
                            float* __restrict__ out, int n, int m) {
  // A warp per row; n counts threads.
  const int row = item() / 32;
  if (row >= n / 32) return;
  float sum = 0.0f;
  for (int i = lane(); i < m; i += 32) sum += a[static_cast<long>(row) * m + i];
  sum = in_warp(sum, Add{});
  if (lane() == 0) out[row] = sum;
}

__global__ void column_sum_f32(const float* __restrict__ a, const float*, const int*, const int*,
                               float* __restrict__ out, int n, int m) {
  const int column = item();
  if (column >= n) return;
  float sum = 0.0f;
  for (int row = 0; row < m; ++row) sum += a[static_cast<long>(row) * n + column];
  out[column] = sum;
}

__global__ void scan_f32(const float* __restrict__ a, const float*, const int*, const int*,
                         float* __restrict__ out, int, int m) {
  // A block goes along a row; each turn it sums up as many items as it has threads.
  __shared__ float parts[32];
  const float* row = a + static_cast<long>(blockIdx.x) * m;
  float* to = out + static_cast<long>(blockIdx.x) * m;
  float before = 0.0f;
  for (int from = 0; from < m; from += blockDim.x) {
    const int i = from + static_cast<int>(threadIdx.x);
    float value = i < m ? row[i] : 0.0f;
    for (int apart = 1; apart < 32; apart *= 2) {
      const float other = __shfl_up_sync(kAll, value, apart);
      if (lane() >= apart) value += other;
    }
    if (lane() == 31) parts[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = before;
    for (int w = 0; w < warps(); ++w) {
      if (w == static_cast<int>(threadIdx.x / 32)) value += sum;
      sum += parts[w];
    }
    before = sum;
    if (i < m) to[i] = value;
    __syncthreads();
  }
}

__global__ void scan_steps_i32(const int* __restrict__ a, const int*, const int*, const int*,
                               int* __restrict__ out, int, int m) {
  // Hillis and Steele in shared memory, over rows of m items.
  extern __shared__ int numbers[];
  const long at = static_cast<long>(blockIdx.x) * m;
  for (int i = threadIdx.x; i < m; i += blockDim.x) numbers[i] = a[at + i];
  int* from = numbers;
  int* to = numbers + m;
  for (int apart = 1; apart < m; apart *= 2) {
    __syncthreads();
    for (int i = threadIdx.x; i < m; i += blockDim.x) {
      to[i] = from[i] + (i >= apart ? from[i - apart] : 0);
    }
    int* const other = from;
    from = to;
    to = other;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < m; i += blockDim.x) out[at + i] = from[i];
}

__global__ void histogram_i32(const int* __restrict__ a, const int*, const int*, const int*,
                              int* __restrict__ out, int n, int) {
  __shared__ int counts[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  for (int i = item(); i < n; i += stride()) atomicAdd(&counts[a[i] & 255], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], counts[i]);
}

__global__ void histogram_global_i32(const int* __restrict__ a, const int*, const int*, const int*,
                                     int* __restrict__ out, int n, int m) {
  const int i = item();
  if (i < n) atomicAdd(&out[(a[i] & 0x7fffffff) % m], 1);
}

__global__ void compact_i32(const int* __restrict__ a, const int*, const int*, const int*,
                            int* __restrict__ out, int n, int) {
  // How many items are kept: a ballot, then one atomic per warp.
  for (int i = item(); i - lane() < n; i += stride()) {
    const bool kept = i < n && (a[i] & 3) == 0;
    const unsigned votes = __ballot_sync(kAll, kept);
    if (lane() == 0 && votes != 0) atomicAdd(out, __popc(votes));
  }
}

}  // extern "C"

// Dense and sparse matrices, graphs, and what is near to what.

#include <cuda_fp16.h>

namespace {

constexpr unsigned kAll = 0xffffffffU;

__device__ int item() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

template <typename T>
__device__ T warp_sum(T value) {
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(kAll, value, apart);
  return value;
}

// A block computes a 32 x 32 tile of C = A * B with any number of threads; n blocks a side.
template <typename T, int kEach>
__device__ void multiply_tile(const T* a, const T* b, T* out, int tiles, int m) {
  __shared__ T left[32][33];
  __shared__ T right[32][32];
  const int row = static_cast<int>(blockIdx.x) / tiles * 32;
  const int column = static_cast<int>(blockIdx.x) % tiles * 32;
  T sums[kEach];
  for (int k = 0; k < kEach; ++k) sums[k] = T{};
  for (int from = 0; from < m; from += 32) {
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
      left[i / 32][i % 32] = a[(row + i / 32) * m + from + i % 32];
      right[i / 32][i % 32] = b[(from + i / 32) * m + column + i % 32];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const int i = static_cast<int>(threadIdx.x) + k * static_cast<int>(blockDim.x);
      if (i >= 1024) break;
#pragma unroll 8
      for (int j = 0; j < 32; ++j) sums[k] += left[i / 32][j] * right[j][i % 32];
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * static_cast<int>(blockDim.x);
    if (i < 1024) out[(row + i / 32) * m + column + i % 32] = sums[k];
  }
}

}  // namespace

extern "C" {

__global__ void transpose_f32(const float* __restrict__ a, const float*, const int*, const int*,
                              float* __restrict__ out, int n, int m) {
  const int i = item();
  if (i < n) out[static_cast<long>(i % m) * (n / m) + i / m] = a[i];
}

__global__ void transpose_tile_f32(const float* __restrict__ a, const float*, const int*,
                                   const int*, float* __restrict__ out, int, int m) {
  __shared__ float tile[32][33];
  const int tiles = m / 32;
  const int row = static_cast<int>(blockIdx.x) / tiles * 32;
  const int column = static_cast<int>(blockIdx.x) % tiles * 32;
  const int x = static_cast<int>(threadIdx.x % 32);
  const int step = static_cast<int>(blockDim.x / 32);
  for (int y = threadIdx.x / 32; y < 32; y += step) tile[y][x] = a[(row + y) * m + column + x];
  __syncthreads();
  for (int y = threadIdx.x / 32; y < 32; y += step) out[(column + y) * m + row + x] = tile[x][y];
}

__global__ void multiply_naive_f32(const float* __restrict__ a, const float* __restrict__ b,
                                   const int*, const int*, float* __restrict__ out, int n, int m) {
  const int i = item();
  if (i >= n) return;
  float sum = 0.0f;
  for (int k = 0; k < m; ++k) sum += a[i / m * m + k] * b[k * m + i % m];
  out[i] = sum;
}

__global__ void multiply_tile_f32(const float* __restrict__ a, const float* __restrict__ b,
                                  const int*, const int*, float* __restrict__ out, int, int m) {
  multiply_tile<float, 16>(a, b, out, m / 32, m);
}

__global__ void multiply_tile_f64(const double* __restrict__ a, const double* __restrict__ b,
                                  const int*, const int*, double* __restrict__ out, int, int m) {
  multiply_tile<double, 16>(a, b, out, m / 32, m);
}

__global__ void multiply_4x4_f32(const float* __restrict__ a, const float* __restrict__ b,
                                 const int*, const int*, float* __restrict__ out, int n, int) {
  // A batch of small matrices, one a thread.
  const int i = item();
  if (i >= n) return;
  float left[16];
  float right[16];
  for (int k = 0; k < 16; ++k) left[k] = a[k * n + i];
  for (int k = 0; k < 16; ++k) right[k] = b[k * n + i];
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 4; ++x) {
      float sum = 0.0f;
      for (int k = 0; k < 4; ++k) sum += left[4 * y + k] * right[4 * k + x];
      out[(4 * y + x) * n + i] = sum;
    }
  }
}

__global__ void cholesky_4x4_f64(const double* __restrict__ a, const double*, const int*,
                                 const int*, double* __restrict__ out, int n, int) {
  const int i = item();
  if (i >= n) return;
  double l[4][4];
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x <= y; ++x) {
      double sum = a[(4 * y + x) * n + i] + (x == y ? 8.0 : 0.0);
      for (int k = 0; k < x; ++k) sum -= l[y][k] * l[x][k];
      l[y][x] = x == y ? sqrt(sum) : sum / l[x][x];
      out[(4 * y + x) * n + i] = l[y][x];
    }
  }
}

__global__ void vector_warp_f32(const float* __restrict__ a, const float* __restrict__ b,
                                const int*, const int*, float* __restrict__ out, int n, int m) {
  // A matrix times a vector: a warp per row; n counts threads.
  const int row = item() / 32;
  if (row >= n / 32) return;
  float sum = 0.0f;
  for (int k = threadIdx.x % 32; k < m; k += 32) sum += a[static_cast<long>(row) * m + k] * b[k];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) out[row] = sum;
}

__global__ void vector_thread_f64(const double* __restrict__ a, const double* __restrict__ b,
                                  const int*, const int*, double* __restrict__ out, int n, int m) {
  const int row = item();
  if (row >= n) return;
  double sum = 0.0;
  for (int k = 0; k < m; ++k) sum += a[static_cast<long>(k) * n + row] * b[k];
  out[row] = sum;
}

__global__ void sparse_thread_f32(const float* __restrict__ a, const float* __restrict__ b,
                                  const int* __restrict__ index, const int* __restrict__ rows,
                                  float* __restrict__ out, int n, int m) {
  const int row = item();
  if (row >= n) return;
  float sum = 0.0f;
  for (int k = rows[row]; k < rows[row + 1]; ++k) sum += a[k] * b[index[k] % m];
  out[row] = sum;
}

__global__ void sparse_warp_f64(const double* __restrict__ a, const double* __restrict__ b,
                                const int* __restrict__ index, const int* __restrict__ rows,
                                double* __restrict__ out, int n, int m) {
  // A warp takes eight rows at once, with four lanes for each.
  const int row = item() / 4;
  if (item() >= n) return;
  double sum = 0.0;
  for (int k = rows[row] + static_cast<int>(threadIdx.x % 4); k < rows[row + 1]; k += 4) {
    sum += a[k] * b[index[k] % m];
  }
  sum += __shfl_xor_sync(kAll, sum, 2);
  sum += __shfl_xor_sync(kAll, sum, 1);
  if (threadIdx.x % 4 == 0) out[row] = sum;
}

__global__ void rank_f32(const float* __restrict__ a, const float*, const int* __restrict__ index,
                         const int* __restrict__ rows, float* __restrict__ out, int n, int) {
  // A step of PageRank, pulled along the edges that lead to a node.
  const int node = item();
  if (node >= n) return;
  float sum = 0.0f;
  for (int k = rows[node]; k < rows[node + 1]; ++k) {
    const int from = index[k] % n;
    sum += a[from] / static_cast<float>(rows[from + 1] - rows[from] + 1);
  }
  out[node] = 0.15f + 0.85f * sum;
}

__global__ void breadth_i32(const int* __restrict__ a, const int*, const int* __restrict__ index,
                            const int* __restrict__ rows, int* __restrict__ out, int n, int) {
  // A step of a breadth-first search: an eighth of the nodes are in the frontier.
  const int node = item();
  if (node >= n || (a[node] & 7) != 0) return;
  for (int k = rows[node]; k < rows[node + 1]; ++k) out[index[k] % n] = 1;
}

__global__ void nearest_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                            const int*, int* __restrict__ out, int n, int m) {
  // k-means: which of m centres of four numbers is next to a point.
  const int i = item();
  if (i >= n) return;
  const float p[4] = {a[i], a[n + i], a[2 * n + i], a[3 * n + i]};
  float least = 1e30f;
  int best = 0;
  for (int c = 0; c < m; ++c) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; ++k) sum += (p[k] - b[4 * c + k]) * (p[k] - b[4 * c + k]);
    if (sum < least) {
      least = sum;
      best = c;
    }
  }
  out[i] = best;
}

__global__ void nearest_shared_f32(const float* __restrict__ a, const float* __restrict__ b,
                                   const int*, const int*, int* __restrict__ out, int n, int m) {
  __shared__ float centres[1024];
  for (int k = threadIdx.x; k < 4 * m; k += blockDim.x) centres[k] = b[k];
  __syncthreads();
  const int i = item();
  if (i >= n) return;
  const float4 p = make_float4(a[i], a[n + i], a[2 * n + i], a[3 * n + i]);
  float least = 1e30f;
  int best = 0;
  for (int c = 0; c < m; ++c) {
    const float x = p.x - centres[4 * c];
    const float y = p.y - centres[4 * c + 1];
    const float z = p.z - centres[4 * c + 2];
    const float w = p.w - centres[4 * c + 3];
    const float sum = x * x + y * y + z * z + w * w;
    best = sum < least ? c : best;
    least = fminf(sum, least);
  }
  out[i] = best;
}

__global__ void bodies_f32(const float4* __restrict__ a, const float*, const int*, const int*,
                           float4* __restrict__ out, int n, int) {
  const int i = item();
  if (i >= n) return;
  const float4 self = a[i];
  float3 sum = make_float3(0.0f, 0.0f, 0.0f);
  for (int k = 0; k < n; ++k) {
    const float4 other = a[k];
    const float x = other.x - self.x;
    const float y = other.y - self.y;
    const float z = other.z - self.z;
    const float near = rsqrtf(x * x + y * y + z * z + 0.01f);
    const float pull = other.w * near * near * near;
    sum.x += pull * x;
    sum.y += pull * y;
    sum.z += pull * z;
  }
  out[i] = make_float4(sum.x, sum.y, sum.z, 0.0f);
}

__global__ void bodies_shared_f32(const float4* __restrict__ a, const float*, const int*,
                                  const int*, float4* __restrict__ out, int n, int) {
  extern __shared__ float4 others[];
  const int i = item();
  const float4 self = i < n ? a[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float3 sum = make_float3(0.0f, 0.0f, 0.0f);
  for (int from = 0; from < n; from += blockDim.x) {
    const int mine = from + static_cast<int>(threadIdx.x);
    others[threadIdx.x] = mine < n ? a[mine] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();
#pragma unroll 4
    for (unsigned k = 0; k < blockDim.x; ++k) {
      const float4 other = others[k];
      const float x = other.x - self.x;
      const float y = other.y - self.y;
      const float z = other.z - self.z;
      const float near = rsqrtf(x * x + y * y + z * z + 0.01f);
      const float pull = other.w * near * near * near;
      sum.x += pull * x;
      sum.y += pull * y;
      sum.z += pull * z;
    }
    __syncthreads();
  }
  if (i < n) out[i] = make_float4(sum.x, sum.y, sum.z, 0.0f);
}

}  // extern "C"

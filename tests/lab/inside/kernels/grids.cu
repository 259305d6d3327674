// Stencils, images and convolutions.

namespace {

__device__ int item() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

template <typename T>
__device__ void swap_larger(T& x, T& y) {
  const T low = x < y ? x : y;
  y = x < y ? y : x;
  x = low;
}

}  // namespace

extern "C" {

// The items are those of a plane or a cube of width m; n is how many there are.

__global__ void stencil_3_f32(const float* __restrict__ a, const float*, const int*, const int*,
                              float* __restrict__ out, int n, int) {
  const int i = item();
  if (i > 0 && i < n - 1) out[i] = 0.25f * a[i - 1] + 0.5f * a[i] + 0.25f * a[i + 1];
}

__global__ void stencil_5_f32(const float* __restrict__ a, const float*, const int*, const int*,
                              float* __restrict__ out, int n, int m) {
  const int i = item();
  const int x = i % m;
  if (i < m || i >= n - m || x == 0 || x == m - 1) return;
  out[i] = 0.2f * (a[i] + a[i - 1] + a[i + 1] + a[i - m] + a[i + m]);
}

__global__ void heat_5_f64(const double* __restrict__ a, const double* __restrict__ b, const int*,
                           const int*, double* __restrict__ out, int n, int m) {
  const int i = item();
  const int x = i % m;
  if (i < m || i >= n - m || x == 0 || x == m - 1) return;
  out[i] = a[i] + b[i] * (a[i - 1] + a[i + 1] + a[i - m] + a[i + m] - 4.0 * a[i]);
}

__global__ void stencil_7_f32(const float* __restrict__ a, const float*, const int*, const int*,
                              float* __restrict__ out, int n, int m) {
  const int i = item();
  const int plane = m * m;
  const int x = i % m;
  const int y = i / m % m;
  if (i < plane || i >= n - plane || x == 0 || x == m - 1 || y == 0 || y == m - 1) return;
  out[i] = 0.4f * a[i] +
           0.1f * (a[i - 1] + a[i + 1] + a[i - m] + a[i + m] + a[i - plane] + a[i + plane]);
}

__global__ void star_25_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                            const int*, float* __restrict__ out, int n, int m) {
  const int i = item();
  const int plane = m * m;
  const int x = i % m;
  const int y = i / m % m;
  const int z = i / plane;
  if (i >= n || x < 4 || x >= m - 4 || y < 4 || y >= m - 4 || z < 4 || z >= n / plane - 4) return;
  float sum = -2.5f * a[i];
  const float weights[] = {1.6f, -0.2f, 0.025f, -0.0018f};
#pragma unroll
  for (int d = 1; d <= 4; ++d) {
    sum += weights[d - 1] * (a[i - d] + a[i + d] + a[i - d * m] + a[i + d * m] + a[i - d * plane] +
                             a[i + d * plane]);
  }
  out[i] = 2.0f * a[i] - b[i] + 0.1f * sum;
}

__global__ void life_i32(const int* __restrict__ a, const int*, const int*, const int*,
                         int* __restrict__ out, int n, int m) {
  const int i = item();
  const int x = i % m;
  if (i < m || i >= n - m || x == 0 || x == m - 1) return;
  int alive = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) alive += a[i + dy * m + dx] & 1;
  }
  const int self = a[i] & 1;
  out[i] = alive == 3 || (alive == 4 && self == 1) ? 1 : 0;
}

__global__ void sobel_f32(const float* __restrict__ a, const float*, const int*, const int*,
                          float* __restrict__ out, int n, int m) {
  const int i = item();
  const int x = i % m;
  if (i < m || i >= n - m || x == 0 || x == m - 1) return;
  const float* p = a + i;
  const float across = p[1 - m] + 2 * p[1] + p[1 + m] - p[-1 - m] - 2 * p[-1] - p[-1 + m];
  const float down = p[m - 1] + 2 * p[m] + p[m + 1] - p[-m - 1] - 2 * p[-m] - p[-m + 1];
  out[i] = sqrtf(across * across + down * down);
}

__global__ void median_3x3_f32(const float* __restrict__ a, const float*, const int*, const int*,
                               float* __restrict__ out, int n, int m) {
  const int i = item();
  const int x = i % m;
  if (i < m || i >= n - m || x == 0 || x == m - 1) return;
  float v[9];
#pragma unroll
  for (int k = 0; k < 9; ++k) v[k] = a[i + (k / 3 - 1) * m + k % 3 - 1];
#pragma unroll
  for (int turn = 0; turn < 9; ++turn) {
#pragma unroll
    for (int k = turn % 2; k < 8; k += 2) swap_larger(v[k], v[k + 1]);
  }
  out[i] = v[4];
}

__global__ void bilateral_f32(const float* __restrict__ a, const float*, const int*, const int*,
                              float* __restrict__ out, int n, int m) {
  const int i = item();
  const int x = i % m;
  if (i < 3 * m || i >= n - 3 * m || x < 3 || x >= m - 3) return;
  float sum = 0.0f;
  float weights = 0.0f;
  for (int dy = -3; dy <= 3; ++dy) {
    for (int dx = -3; dx <= 3; ++dx) {
      const float v = a[i + dy * m + dx];
      const float d = v - a[i];
      const float weight = __expf(-0.1f * (dx * dx + dy * dy) - 8.0f * d * d);
      sum += weight * v;
      weights += weight;
    }
  }
  out[i] = sum / weights;
}

__global__ void blur_shared_f32(const float* __restrict__ a, const float*, const int*, const int*,
                                float* __restrict__ out, int n, int) {
  // Each block holds its items and 16 on either side.
  extern __shared__ float held[];
  const int from = static_cast<int>(blockIdx.x * blockDim.x) - 16;
  for (int k = threadIdx.x; k < static_cast<int>(blockDim.x) + 32; k += blockDim.x) {
    const int i = from + k;
    held[k] = i >= 0 && i < n ? a[i] : 0.0f;
  }
  __syncthreads();
  const int i = item();
  if (i >= n) return;
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k <= 32; ++k) sum += held[threadIdx.x + k] * (17 - abs(k - 16));
  out[i] = sum / 289.0f;
}

__global__ void convolve_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                             const int*, float* __restrict__ out, int n, int m) {
  const int i = item();
  if (i >= n) return;
  float sum = 0.0f;
  for (int k = 0; k < m; ++k) sum += a[i + k] * b[k];
  out[i] = sum;
}

__global__ void convolve_channels_f32(const float* __restrict__ a, const float* __restrict__ b,
                                      const int*, const int*, float* __restrict__ out, int n,
                                      int m) {
  // 3x3, 16 channels to one, over planes of width m.
  const int i = item();
  const int x = i % m;
  if (i < m || i >= n - m || x == 0 || x == m - 1) return;
  float sum = 0.0f;
  for (int channel = 0; channel < 16; ++channel) {
    const float* plane = a + static_cast<long>(channel) * n;
#pragma unroll
    for (int k = 0; k < 9; ++k) {
      sum += plane[i + (k / 3 - 1) * m + k % 3 - 1] * b[9 * channel + k];
    }
  }
  out[i] = sum > 0.0f ? sum : 0.0f;
}

__global__ void pool_2x2_f32(const float2* __restrict__ a, const float*, const int*, const int*,
                             float* __restrict__ out, int n, int m) {
  const int i = item();
  if (i >= n) return;
  const long at = static_cast<long>(i / m) * 2 * m + i % m;
  const float2 above = a[at];
  const float2 below = a[at + m];
  out[i] = fmaxf(fmaxf(above.x, above.y), fmaxf(below.x, below.y));
}

__global__ void resize_f32(const float* __restrict__ a, const float*, const int*, const int*,
                           float* __restrict__ out, int n, int m) {
  // Bilinear, by 1.7, from planes of width m.
  const int i = item();
  if (i >= n) return;
  const float x = static_cast<float>(i % m) * 0.588f;
  const float y = static_cast<float>(i / m) * 0.588f;
  const int left = static_cast<int>(x);
  const int top = static_cast<int>(y);
  const float fx = x - left;
  const float fy = y - top;
  const float* p = a + static_cast<long>(top) * m + left;
  out[i] = (1 - fy) * ((1 - fx) * p[0] + fx * p[1]) + fy * ((1 - fx) * p[m] + fx * p[m + 1]);
}

}  // extern "C"

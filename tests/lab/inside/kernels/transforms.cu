// Transforms and sorting, in stages through global or shared memory.

namespace {

__device__ int item() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

template <typename T>
__device__ void order(T& x, T& y, bool ascending) {
  if ((x > y) == ascending) {
    const T other = x;
    x = y;
    y = other;
  }
}

}  // namespace

extern "C" {

__global__ void walsh_stage_f32(const float* __restrict__ a, const float*, const int*, const int*,
                                float* __restrict__ out, int n, int m) {
  const int i = item();
  if (i >= n) return;
  const int at = i / m * 2 * m + i % m;
  out[at] = a[at] + a[at + m];
  out[at + m] = a[at] - a[at + m];
}

__global__ void fourier_stage_f32(const float2* __restrict__ a, const float*, const int*,
                                  const int*, float2* __restrict__ out, int n, int m) {
  const int i = item();
  if (i >= n) return;
  const int at = i / m * 2 * m + i % m;
  float sine = 0.0f;
  float cosine = 0.0f;
  sincospif(-static_cast<float>(i % m) / m, &sine, &cosine);
  const float2 x = a[at];
  const float2 y = a[at + m];
  const float2 turned = make_float2(y.x * cosine - y.y * sine, y.x * sine + y.y * cosine);
  out[at] = make_float2(x.x + turned.x, x.y + turned.y);
  out[at + m] = make_float2(x.x - turned.x, x.y - turned.y);
}

__global__ void walsh_shared_f32(const float* __restrict__ a, const float*, const int*, const int*,
                                 float* __restrict__ out, int, int m) {
  extern __shared__ float held[];
  const long at = static_cast<long>(blockIdx.x) * m;
  for (int i = threadIdx.x; i < m; i += blockDim.x) held[i] = a[at + i];
  for (int apart = 1; apart < m; apart *= 2) {
    __syncthreads();
    for (int i = threadIdx.x; i < m / 2; i += blockDim.x) {
      const int k = i / apart * 2 * apart + i % apart;
      const float x = held[k];
      const float y = held[k + apart];
      held[k] = x + y;
      held[k + apart] = x - y;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < m; i += blockDim.x) out[at + i] = held[i];
}

__global__ void fourier_shared_f64(const double2* __restrict__ a, const double*, const int*,
                                   const int*, double2* __restrict__ out, int, int m) {
  extern __shared__ double2 values[];
  const long at = static_cast<long>(blockIdx.x) * m;
  for (int i = threadIdx.x; i < m; i += blockDim.x) values[i] = a[at + i];
  for (int apart = 1; apart < m; apart *= 2) {
    __syncthreads();
    for (int i = threadIdx.x; i < m / 2; i += blockDim.x) {
      const int k = i / apart * 2 * apart + i % apart;
      double sine = 0.0;
      double cosine = 0.0;
      sincospi(-static_cast<double>(i % apart) / apart, &sine, &cosine);
      const double2 x = values[k];
      const double2 y = values[k + apart];
      const double2 turned = make_double2(y.x * cosine - y.y * sine, y.x * sine + y.y * cosine);
      values[k] = make_double2(x.x + turned.x, x.y + turned.y);
      values[k + apart] = make_double2(x.x - turned.x, x.y - turned.y);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < m; i += blockDim.x) out[at + i] = values[i];
}

__global__ void sort_stage_i32(const int* __restrict__ a, const int*, const int*, const int*,
                               int* __restrict__ out, int n, int m) {
  const int i = item();
  if (i >= n) return;
  const int at = i / m * 2 * m + i % m;
  int x = a[at];
  int y = a[at + m];
  order(x, y, (at & 4 * m) == 0);
  out[at] = x;
  out[at + m] = y;
}

__global__ void sort_shared_f32(const float* __restrict__ a, const float*, const int*, const int*,
                                float* __restrict__ out, int, int m) {
  extern __shared__ float held[];
  const long at = static_cast<long>(blockIdx.x) * m;
  for (int i = threadIdx.x; i < m; i += blockDim.x) held[i] = a[at + i];
  for (int size = 2; size <= m; size *= 2) {
    for (int apart = size / 2; apart > 0; apart /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < m / 2; i += blockDim.x) {
        const int k = i / apart * 2 * apart + i % apart;
        order(held[k], held[k + apart], (k & size) == 0);
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < m; i += blockDim.x) out[at + i] = held[i];
}

__global__ void cosine_8x8_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                               const int*, float* __restrict__ out, int n, int m) {
  // Rows of eight, as in JPEG: a thread per row.
  const int i = item();
  if (i >= n) return;
  float row[8];
  for (int k = 0; k < 8; ++k) row[k] = a[8L * i + k];
  for (int u = 0; u < 8; ++u) {
    float sum = 0.0f;
    for (int k = 0; k < 8; ++k) sum += row[k] * b[8 * u + k + m];
    out[8L * i + u] = sum;
  }
}

__global__ void haar_f32(const float2* __restrict__ a, const float*, const int*, const int*,
                         float* __restrict__ out, int n, int) {
  const int i = item();
  if (i >= n) return;
  const float2 pair = a[i];
  out[i] = 0.70710678f * (pair.x + pair.y);
  out[n + i] = 0.70710678f * (pair.x - pair.y);
}

__global__ void rotary_f32(const float2* __restrict__ a, const float*, const int*, const int*,
                           float2* __restrict__ out, int n, int m) {
  // Rotary position embedding of pairs.
  const int i = item();
  if (i >= n) return;
  const float angle = static_cast<float>(i / m) * __expf(-9.21034f * (i % m) / m);
  const float sine = __sinf(angle);
  const float cosine = __cosf(angle);
  const float2 x = a[i];
  out[i] = make_float2(x.x * cosine - x.y * sine, x.x * sine + x.y * cosine);
}

__global__ void levels_i32(const int* __restrict__ a, const int* __restrict__ b, const int*,
                           const int*, int* __restrict__ out, int, int m) {
  // Edit distance of two texts of m letters, a diagonal after the other; a block per pair.
  extern __shared__ int rows[];
  int* before = rows;
  int* last = rows + m + 1;
  int* now = rows + 2 * (m + 1);
  const int* left = a + static_cast<long>(blockIdx.x) * m;
  const int* right = b + static_cast<long>(blockIdx.x) * m;
  for (int diagonal = 0; diagonal <= 2 * m; ++diagonal) {
    const int from = diagonal > m ? diagonal - m : 0;
    const int to = diagonal < m ? diagonal : m;
    for (int i = from + static_cast<int>(threadIdx.x); i <= to; i += blockDim.x) {
      const int j = diagonal - i;
      if (i == 0 || j == 0) {
        now[i] = i + j;
      } else {
        const int same = (left[i - 1] & 3) == (right[j - 1] & 3) ? 0 : 1;
        now[i] = min(before[i - 1] + same, min(last[i], last[i - 1]) + 1);
      }
    }
    __syncthreads();
    int* const oldest = before;
    before = last;
    last = now;
    now = oldest;
  }
  if (threadIdx.x == 0) out[blockIdx.x] = last[m];
}

}  // extern "C"

// Much arithmetic for each item: finance, fractals, differential equations, random numbers.

namespace {

__device__ int item() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
__device__ int stride() { return static_cast<int>(gridDim.x * blockDim.x); }

template <typename T>
__device__ int escape(T x, T y, T cx, T cy, int most) {
  int k = 0;
  for (; k < most && x * x + y * y < T(4); ++k) {
    const T next = x * x - y * y + cx;
    y = T(2) * x * y + cy;
    x = next;
  }
  return k;
}

template <typename T>
__device__ T normal(T x) {
  return T(0.5) * erfc(-x * T(0.70710678118654752));
}

template <typename T>
__device__ void option(const T* a, const T* b, T* out, int i, int n) {
  const T price = T(80) + T(40) * a[i];
  const T strike = T(80) + T(40) * b[i];
  const T years = T(0.25) + a[n + i];
  const T spread = T(0.3) * sqrt(years);
  const T d = (log(price / strike) + (T(0.02) + T(0.045)) * years) / spread;
  const T later = strike * exp(-T(0.02) * years);
  const T call = price * normal(d) - later * normal(d - spread);
  out[i] = call;
  out[n + i] = call + later - price;
}

__device__ unsigned next(unsigned& state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

__device__ float unit(unsigned& state) { return next(state) * 2.3283064e-10f; }

}  // namespace

extern "C" {

__global__ void mandelbrot_f32(const float*, const float*, const int*, const int*,
                               int* __restrict__ out, int n, int m) {
  const int i = item();
  if (i >= n) return;
  const float x = -2.0f + 3.0f * (i % m) / m;
  const float y = -1.2f + 2.4f * (i / m) / (n / m);
  out[i] = escape(x, y, x, y, 256);
}

__global__ void mandelbrot_f64(const double*, const double*, const int*, const int*,
                               int* __restrict__ out, int n, int m) {
  const int i = item();
  if (i >= n) return;
  const double x = -2.0 + 3.0 * (i % m) / m;
  const double y = -1.2 + 2.4 * (i / m) / (n / m);
  out[i] = escape(x, y, x, y, 256);
}

__global__ void julia_loop_f32(const float*, const float*, const int*, const int*,
                               int* __restrict__ out, int n, int m) {
  for (int i = item(); i < n; i += stride()) {
    const float x = -1.5f + 3.0f * (i % m) / m;
    const float y = -1.5f + 3.0f * (i / m) / (n / m);
    out[i] = escape(x, y, -0.8f, 0.156f, 256);
  }
}

__global__ void options_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                            const int*, float* __restrict__ out, int n, int) {
  const int i = item();
  if (i < n) option(a, b, out, i, n);
}

__global__ void options_f64(const double* __restrict__ a, const double* __restrict__ b, const int*,
                            const int*, double* __restrict__ out, int n, int) {
  const int i = item();
  if (i < n) option(a, b, out, i, n);
}

__global__ void options_loop_f32(const float* __restrict__ a, const float* __restrict__ b,
                                 const int*, const int*, float* __restrict__ out, int n, int) {
  for (int i = item(); i < n; i += stride()) option(a, b, out, i, n);
}

__global__ void binomial_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                             const int*, float* __restrict__ out, int, int m) {
  // A block per option: a tree of m steps in shared memory.
  extern __shared__ float held[];
  const float price = 80.0f + 40.0f * a[blockIdx.x];
  const float strike = 80.0f + 40.0f * b[blockIdx.x];
  const float up = 0.01f;
  for (int i = threadIdx.x; i <= m; i += blockDim.x) {
    held[i] = fmaxf(price * __expf(up * static_cast<float>(2 * i - m)) - strike, 0.0f);
  }
  float* from = held;
  float* to = held + m + 1;
  for (int left = m; left > 0; --left) {
    __syncthreads();
    for (int i = threadIdx.x; i < left; i += blockDim.x) {
      to[i] = 0.499f * from[i] + 0.500f * from[i + 1];
    }
    float* const other = from;
    from = to;
    to = other;
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = from[0];
}

__global__ void walks_f32(const float* __restrict__ a, const float*, const int*, const int*,
                          float* __restrict__ out, int n, int m) {
  // Paths of a share, with normal numbers after Box and Muller.
  const int i = item();
  if (i >= n) return;
  unsigned state = 2654435761U * (i + 1);
  float value = 100.0f + a[i];
  for (int k = 0; k < m; ++k) {
    const float radius = sqrtf(-2.0f * __logf(unit(state) + 1e-12f));
    value *= __expf(0.0001f + 0.01f * radius * __cosf(6.2831853f * unit(state)));
  }
  out[i] = value;
}

__global__ void darts_i32(const int*, const int*, const int*, const int*, int* __restrict__ out,
                          int n, int m) {
  for (int i = item(); i < n; i += stride()) {
    unsigned state = 2654435761U * (i + 1);
    int inside = 0;
    for (int k = 0; k < m; ++k) {
      const float x = unit(state);
      const float y = unit(state);
      inside += x * x + y * y < 1.0f ? 1 : 0;
    }
    out[i] = inside;
  }
}

__global__ void lorenz_f64(const double* __restrict__ a, const double* __restrict__ b, const int*,
                           const int*, double* __restrict__ out, int n, int m) {
  const int i = item();
  if (i >= n) return;
  double x = a[i];
  double y = b[i];
  double z = 20.0;
  for (int k = 0; k < m; ++k) {
    const double dx = 10.0 * (y - x);
    const double dy = x * (28.0 - z) - y;
    const double dz = x * y - 2.6666666666666665 * z;
    x += 0.0005 * dx;
    y += 0.0005 * dy;
    z += 0.0005 * dz;
  }
  out[i] = x + y + z;
}

__global__ void pendulum_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                             const int*, float* __restrict__ out, int n, int m) {
  // Runge and Kutta, with sines.
  const int i = item();
  if (i >= n) return;
  float angle = a[i];
  float speed = b[i];
  const float h = 0.01f;
  for (int k = 0; k < m; ++k) {
    const float k1 = -__sinf(angle);
    const float k2 = -__sinf(angle + 0.5f * h * speed);
    const float k3 = -__sinf(angle + 0.5f * h * (speed + 0.5f * h * k1));
    const float k4 = -__sinf(angle + h * (speed + 0.5f * h * k2));
    angle += h * speed + h * h / 6.0f * (k1 + k2 + k3);
    speed += h / 6.0f * (k1 + 2.0f * k2 + 2.0f * k3 + k4);
  }
  out[i] = angle;
}

__global__ void spheres_f32(const float* __restrict__ a, const float* __restrict__ b, const int*,
                            const int*, float* __restrict__ out, int n, int m) {
  // The first of m spheres that a ray meets.
  const int i = item();
  if (i >= n) return;
  const float dx = a[i] - 0.5f;
  const float dy = b[i] - 0.5f;
  const float scale = rsqrtf(dx * dx + dy * dy + 1.0f);
  float nearest = 1e30f;
  for (int s = 0; s < m; ++s) {
    const float x = b[4 * s] - 0.5f;
    const float y = b[4 * s + 1] - 0.5f;
    const float z = 2.0f + b[4 * s + 2];
    const float along = (x * dx + y * dy + z) * scale;
    const float inside = along * along - (x * x + y * y + z * z) + 0.05f * b[4 * s + 3];
    if (inside > 0.0f) nearest = fminf(nearest, along - sqrtf(inside));
  }
  out[i] = nearest;
}

__global__ void primes_i32(const int* __restrict__ a, const int*, const int*, const int*,
                           int* __restrict__ out, int n, int m) {
  const int i = item();
  if (i >= n) return;
  const unsigned number = (static_cast<unsigned>(a[i]) & 0xffffffU) | 1U;
  int found = 1;
  for (unsigned d = 3; d < static_cast<unsigned>(m); d += 2) found &= number % d != 0 ? 1 : 0;
  out[i] = found;
}

__global__ void queens_i32(const int*, const int*, const int*, const int*, int* __restrict__ out,
                           int n, int m) {
  // Ways to place m queens once the first two rows are given; divergent.
  const int i = item();
  if (i >= n) return;
  const unsigned all = (1U << m) - 1;
  const unsigned first = 1U << i % m;
  const unsigned second = 1U << i / m % m;
  int count = 0;
  if ((second & (first | first << 1 | first >> 1)) == 0) {
    unsigned columns[16];
    unsigned lefts[16];
    unsigned rights[16];
    unsigned open[16];
    int depth = 0;
    columns[0] = first | second;
    lefts[0] = (first << 2 | second << 1) & all;
    rights[0] = first >> 2 | second >> 1;
    open[0] = all & ~(columns[0] | lefts[0] | rights[0]);
    while (depth >= 0) {
      if (columns[depth] == all) ++count;
      if (open[depth] == 0) {
        --depth;
        continue;
      }
      const unsigned bit = open[depth] & -open[depth];
      open[depth] ^= bit;
      columns[depth + 1] = columns[depth] | bit;
      lefts[depth + 1] = (lefts[depth] | bit) << 1 & all;
      rights[depth + 1] = (rights[depth] | bit) >> 1;
      ++depth;
      open[depth] = all & ~(columns[depth] | lefts[depth] | rights[depth]);
    }
  }
  out[i] = count;
}

__global__ void checksum_i32(const int* __restrict__ a, const int*, const int*, const int*,
                             unsigned* __restrict__ out, int n, int m) {
  // CRC-32, bit by bit, of m words a thread.
  const int i = item();
  if (i >= n) return;
  unsigned sum = 0xffffffffU;
  for (int k = 0; k < m; ++k) {
    sum ^= static_cast<unsigned>(a[k * n + i]);
    for (int bit = 0; bit < 32; ++bit) sum = sum >> 1 ^ (0xedb88320U & -(sum & 1U));
  }
  out[i] = ~sum;
}

}  // extern "C"

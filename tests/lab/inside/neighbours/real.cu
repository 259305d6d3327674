// Kernels as programs have them. Each goes through `parts` parts of its work with any grid of
// blocks of 256 threads, and notes when each block ran. x is read, y is written.
#include "frame.cuh"

namespace {

constexpr int kThreads = 256;

struct Span {
  Record* records;
  u64 start_ns;
  __device__ explicit Span(Record* given) : records(given), start_ns(now_ns()) {}
  __device__ ~Span() {
    __syncthreads();
    if (threadIdx.x == 0) records[blockIdx.x] = {start_ns, now_ns(), 0, this_sm()};
  }
};

__device__ inline float warp_sum(float value) {
  for (int k = 16; k > 0; k /= 2) value += __shfl_xor_sync(~0u, value, k);
  return value;
}

__device__ inline float warp_max(float value) {
  for (int k = 16; k > 0; k /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, k));
  return value;
}

template <class Combine>
__device__ float block_all(float value, Combine combine) {
  __shared__ float of_warp[kThreads / 32];
  value = combine(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  return combine(of_warp[threadIdx.x % (kThreads / 32)]);
}

__device__ inline u32 below(const float value, const u32 limit) {
  return static_cast<u32>(value * limit) % limit;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    fill(Record* records, const float* x, float* y, int parts) {
  const Span span(records);
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    const u32 at = part * kThreads + threadIdx.x;
    y[at] = (hashed(at) >> 8) * (1.0f / 16777216.0f);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    vector_add(Record* records, const float* x, float* y, int parts) {  // 4096 elements a part
  const Span span(records);
  const float4* a = reinterpret_cast<const float4*>(x);
  const float4* b = a + parts * 1024;
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int k = 0; k < 4; ++k) {
      const int at = part * 1024 + k * kThreads + threadIdx.x;
      const float4 p = a[at], q = b[at];
      reinterpret_cast<float4*>(y)[at] = {p.x + q.x, p.y + q.y, p.z + q.z, p.w + q.w};
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    stencil(Record* records, const float* x, float* y,
            int parts) {  // rows of 4096; 16 rows of 256 columns a part
  const Span span(records);
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    const int column = part % 16 * kThreads + threadIdx.x;
    for (int k = 0; k < 16; ++k) {
      const int at = (part / 16 * 16 + k + 1) * 4096 + column;
      y[at] = 0.5f * x[at] + 0.125f * (x[at - 1] + x[at + 1] + x[at - 4096] + x[at + 4096]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    transpose(Record* records, const float* x, float* y,
              int parts) {  // of 4096 by 4096; 32 by 128 a part
  const Span span(records);
  __shared__ float tile[32][33];
  const int column = threadIdx.x % 32, row = threadIdx.x / 32;
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int k = 0; k < 4; ++k) {
      const int left = part % 128 * 32, top = part / 128 * 128 + 32 * k;
      for (int j = row; j < 32; j += 8) tile[j][column] = x[(top + j) * 4096 + left + column];
      __syncthreads();
      for (int j = row; j < 32; j += 8) y[(left + j) * 4096 + top + column] = tile[column][j];
      __syncthreads();
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    reduction(Record* records, const float* x, float* y, int parts) {  // 16384 elements a part
  const Span span(records);
  float sum = 0;
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int k = 0; k < 16; ++k) {
      const float4 v = reinterpret_cast<const float4*>(x)[part * 4096 + k * kThreads + threadIdx.x];
      sum += v.x + v.y + v.z + v.w;
    }
  }
  sum = block_all(sum, warp_sum);
  if (threadIdx.x == 0) atomicAdd(y, sum);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    softmax(Record* records, const float* x, float* y, int parts) {  // rows of 1024, 4 a part
  const Span span(records);
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int row = part * 4; row < part * 4 + 4; ++row) {
      float4 v = reinterpret_cast<const float4*>(x)[row * 256 + threadIdx.x];
      const float most = block_all(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)), warp_max);
      v = {__expf(v.x - most), __expf(v.y - most), __expf(v.z - most), __expf(v.w - most)};
      const float scale = 4.0f / block_all(v.x + v.y + v.z + v.w, warp_sum);
      reinterpret_cast<float4*>(y)[row * 256 + threadIdx.x] = {v.x * scale, v.y * scale,
                                                               v.z * scale, v.w * scale};
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    layer_norm(Record* records, const float* x, float* y, int parts) {  // rows of 1024, 4 a part
  const Span span(records);
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int row = part * 4; row < part * 4 + 4; ++row) {
      const float4 v = reinterpret_cast<const float4*>(x)[row * 256 + threadIdx.x];
      const float mean = block_all(v.x + v.y + v.z + v.w, warp_sum) / 4096;
      const float4 d = {v.x - mean, v.y - mean, v.z - mean, v.w - mean};
      const float all = block_all(d.x * d.x + d.y * d.y + d.z * d.z + d.w * d.w, warp_sum);
      const float scale = rsqrtf(all / 4096 + 1e-5f);
      reinterpret_cast<float4*>(y)[row * 256 + threadIdx.x] = {d.x * scale, d.y * scale,
                                                               d.z * scale, d.w * scale};
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    sparse(Record* records, const float* x, float* y,
           int parts) {  // rows of 16 elements anywhere among 2^20, 256 rows a part
  const Span span(records);
  const int rows = parts * 256;
  const float* vector = x + 32 * rows;
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int k = 0; k < 16; ++k) {
      const int row = part * 256 + k * 16 + threadIdx.x / 16;
      const int at = row * 16 + threadIdx.x % 16;
      float sum = x[at] * vector[below(x[16 * rows + at], 1u << 20)];
      for (int j = 8; j > 0; j /= 2) sum += __shfl_xor_sync(~0u, sum, j);
      if (threadIdx.x % 16 == 0) y[row] = sum;
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    mandelbrot(Record* records, const float* x, float* y,
               int parts) {  // 1024 pixels of rows of 2048 a part
  const Span span(records);
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int k = 0; k < 4; ++k) {
      const int at = part * 1024 + k * kThreads + threadIdx.x;
      const float u = at % 2048 / 1024.0f - 1.5f, v = at / 2048 / 1024.0f - 1.0f;
      float a = 0, b = 0;
      int count = 0;
      while (count < 256 && a * a + b * b < 4) {
        const float next = a * a - b * b + u;
        b = 2 * a * b + v;
        a = next;
        ++count;
      }
      y[at] = count;
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    histogram(Record* records, const float* x, float* y, int parts) {  // 8192 elements a part
  const Span span(records);
  __shared__ u32 bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int k = 0; k < 8; ++k) {
      const float4 v = reinterpret_cast<const float4*>(x)[part * 2048 + k * kThreads + threadIdx.x];
      atomicAdd(&bins[below(v.x, 256)], 1);
      atomicAdd(&bins[below(v.y, 256)], 1);
      atomicAdd(&bins[below(v.z, 256)], 1);
      atomicAdd(&bins[below(v.w, 256)], 1);
    }
  }
  __syncthreads();
  atomicAdd(reinterpret_cast<u32*>(y) + threadIdx.x, bins[threadIdx.x]);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    walsh(Record* records, const float* x, float* y,
          int parts) {  // fast Walsh transforms of 2048 elements, 2 a part
  const Span span(records);
  __shared__ float v[2048];
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int half = 0; half < 2; ++half) {
      const int from = (part * 2 + half) * 2048;
      for (int k = threadIdx.x; k < 2048; k += kThreads) v[k] = x[from + k];
      for (int width = 1; width < 2048; width *= 2) {
        __syncthreads();
        for (int k = threadIdx.x; k < 1024; k += kThreads) {
          const int at = k / width * 2 * width + k % width;
          const float a = v[at], b = v[at + width];
          v[at] = a + b;
          v[at + width] = a - b;
        }
      }
      __syncthreads();
      for (int k = threadIdx.x; k < 2048; k += kThreads) y[from + k] = v[k];
      __syncthreads();
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    k_means(Record* records, const float* x, float* y,
            int parts) {  // nearest of 64 centres in 4 dimensions, 1024 points a part
  const Span span(records);
  __shared__ float4 centres[64];
  if (threadIdx.x < 64) centres[threadIdx.x] = reinterpret_cast<const float4*>(x)[threadIdx.x];
  __syncthreads();
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int k = 0; k < 4; ++k) {
      const int at = part * 1024 + k * kThreads + threadIdx.x;
      const float4 p = reinterpret_cast<const float4*>(x)[at];
      float least = 1e30f;
      int nearest = 0;
      for (int j = 0; j < 64; ++j) {
        const float4 c = centres[j];
        const float d = (p.x - c.x) * (p.x - c.x) + (p.y - c.y) * (p.y - c.y) +
                        (p.z - c.z) * (p.z - c.z) + (p.w - c.w) * (p.w - c.w);
        if (d < least) {
          least = d;
          nearest = j;
        }
      }
      y[at] = nearest;
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    n_body(Record* records, const float* x, float* y,
           int parts) {  // 256 bodies a part, pulled by 16384
  const Span span(records);
  __shared__ float4 tile[kThreads];
  const float4* bodies = reinterpret_cast<const float4*>(x);
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    const float4 own = bodies[part * kThreads + threadIdx.x];
    float3 pull = {0, 0, 0};
    for (int from = 0; from < 16384; from += kThreads) {
      __syncthreads();
      tile[threadIdx.x] = bodies[from + threadIdx.x];
      __syncthreads();
      for (int k = 0; k < kThreads; ++k) {
        const float dx = tile[k].x - own.x, dy = tile[k].y - own.y, dz = tile[k].z - own.z;
        const float near = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
        const float force = tile[k].w * near * near * near;
        pull.x += dx * force;
        pull.y += dy * force;
        pull.z += dz * force;
      }
    }
    y[part * kThreads + threadIdx.x] = pull.x + pull.y + pull.z;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    black_scholes(Record* records, const float* x, float* y, int parts) {  // 2048 options a part
  const Span span(records);
  const auto normal = [](const float d) {
    const float k = 1 / (1 + 0.2316419f * fabsf(d));
    const float tail = 0.39894228f * __expf(-0.5f * d * d) * k *
                       (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * -1.821255978f)));
    return d > 0 ? 1 - tail : tail;
  };
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int k = 0; k < 8; ++k) {
      const int at = part * 2048 + k * kThreads + threadIdx.x;
      const float price = 5 + 25 * x[at], strike = 1 + 99 * x[at + parts * 2048];
      const float years = 0.25f + 9 * x[at + parts * 4096];
      const float root = sqrtf(years);
      const float d = (__logf(price / strike) + (0.02f + 0.045f) * years) / (0.3f * root);
      const float paid = strike * __expf(-0.02f * years);
      const float call = price * normal(d) - paid * normal(d - 0.3f * root);
      y[at] = call;
      y[at + parts * 2048] = call + paid - price;
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    polynomial(Record* records, const float* x, float* y,
               int parts) {  // of degree 256 in double precision, 512 a part
  const Span span(records);
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int k = 0; k < 2; ++k) {
      const int at = part * 512 + k * kThreads + threadIdx.x;
      const double v = x[at];
      double sum = 1;
#pragma unroll 8
      for (int j = 0; j < 256; ++j) sum = sum * v + 0.5;
      y[at] = static_cast<float>(sum);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    hashing(Record* records, const float* x, float* y, int parts) {  // 128 rounds, 1024 a part
  const Span span(records);
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int k = 0; k < 4; ++k) {
      const int at = part * 1024 + k * kThreads + threadIdx.x;
      u32 value = __float_as_uint(x[at]);
#pragma unroll 4
      for (int j = 0; j < 128; ++j) value = hashed(value + j);
      y[at] = __uint_as_float(value);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    matrix_product(Record* records, const float* x, float* y,
                   int parts) {  // 64 by 64 of 1024 by 1024 a part
  const Span span(records);
  __shared__ float a[16][68], b[16][64];
  const int column = threadIdx.x % 16 * 4, row = threadIdx.x / 16 * 4;
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    const int left = part % 16 * 64, top = part / 16 % 16 * 64;
    float c[4][4] = {};
    for (int from = 0; from < 1024; from += 16) {
      const float4 p = reinterpret_cast<const float4*>(
          x)[((top + threadIdx.x / 4) * 1024 + from) / 4 + threadIdx.x % 4];
      const float4 q = reinterpret_cast<const float4*>(
          x)[(1048576 + (from + threadIdx.x / 16) * 1024 + left) / 4 + threadIdx.x % 16];
      __syncthreads();
      a[threadIdx.x % 4 * 4][threadIdx.x / 4] = p.x;
      a[threadIdx.x % 4 * 4 + 1][threadIdx.x / 4] = p.y;
      a[threadIdx.x % 4 * 4 + 2][threadIdx.x / 4] = p.z;
      a[threadIdx.x % 4 * 4 + 3][threadIdx.x / 4] = p.w;
      *reinterpret_cast<float4*>(&b[threadIdx.x / 16][threadIdx.x % 16 * 4]) = q;
      __syncthreads();
#pragma unroll
      for (int k = 0; k < 16; ++k) {
        const float4 u = *reinterpret_cast<const float4*>(&a[k][row]);
        const float4 v = *reinterpret_cast<const float4*>(&b[k][column]);
        const float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 16; ++i) c[i / 4][i % 4] += us[i / 4] * vs[i % 4];
      }
    }
    for (int i = 0; i < 4; ++i) {
      *reinterpret_cast<float4*>(&y[(top + row + i) * 1024 + left + column]) = {c[i][0], c[i][1],
                                                                                c[i][2], c[i][3]};
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    sort(Record* records, const float* x, float* y, int parts) {  // bitonic, 1024 elements a part
  const Span span(records);
  __shared__ float v[1024];
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int k = threadIdx.x; k < 1024; k += kThreads) v[k] = x[part * 1024 + k];
    for (int size = 2; size <= 1024; size *= 2) {
      for (int width = size / 2; width > 0; width /= 2) {
        __syncthreads();
        for (int k = threadIdx.x; k < 512; k += kThreads) {
          const int at = k / width * 2 * width + k % width;
          const float a = v[at], b = v[at + width];
          const bool swap = (a > b) == ((at & size) == 0);
          v[at] = swap ? b : a;
          v[at + width] = swap ? a : b;
        }
      }
    }
    __syncthreads();
    for (int k = threadIdx.x; k < 1024; k += kThreads) y[part * 1024 + k] = v[k];
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    gathering(Record* records, const float* x, float* y,
              int parts) {  // 1024 elements from anywhere among 2^26 a part
  const Span span(records);
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    for (int k = 0; k < 4; ++k) {
      const int at = part * 1024 + k * kThreads + threadIdx.x;
      y[at] = x[hashed(at) & 0x3ffffffu];
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    scan(Record* records, const float* x, float* y,
         int parts) {  // sums of all before, in each 4096 elements; one such a part
  const Span span(records);
  __shared__ float of_warp[kThreads / 32];
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    float carried = 0;
    for (int k = 0; k < 16; ++k) {
      const int at = part * 4096 + k * kThreads + threadIdx.x;
      float sum = x[at];
      for (int j = 1; j < 32; j *= 2) {
        const float other = __shfl_up_sync(~0u, sum, j);
        if (threadIdx.x % 32 >= j) sum += other;
      }
      if (threadIdx.x % 32 == 31) of_warp[threadIdx.x / 32] = sum;
      __syncthreads();
      float before = carried;
      for (int j = 0; j < kThreads / 32; ++j) {
        if (j < threadIdx.x / 32) before += of_warp[j];
        carried += of_warp[j];
      }
      y[at] = sum + before;
      __syncthreads();
    }
  }
}

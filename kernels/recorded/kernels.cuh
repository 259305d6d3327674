// The recorded kernels. Each is written once, and reads and writes through a recorder.
#pragma once

#include <cstdint>

#include "recorder.cuh"

namespace recorded {

// Arguments of kernels; each kernel uses some of them. What n, m and times are: see each.
struct Data {
  const float* in;
  const float* more;  // a second input
  float* out;
  const int32_t* rows;
  const int32_t* columns;
  const int32_t* marks;
  int32_t* marked;
  int32_t n;
  int32_t m;
  int32_t times;
};

// Returns the index of the thread in the grid.
__device__ inline int32_t global_thread() {
  return static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
}

// Transposes a matrix, n x n: a warp reads a column of a tile, and writes a row.
struct Transpose {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    const int32_t tiles = data.n / 32;
    const int32_t left = static_cast<int32_t>(blockIdx.x) % tiles * 32;
    const int32_t top = static_cast<int32_t>(blockIdx.x) / tiles * 32;
    const int32_t lane = static_cast<int32_t>(threadIdx.x % 32);
    const int32_t warp = static_cast<int32_t>(threadIdx.x / 32);
    for (int32_t step = 0; step < 4; ++step) {
      const int32_t column = left + warp * 4 + step;
      const float value = recorder.load(data.in + (top + lane) * data.n + column);
      recorder.store(data.out + column * data.n + top + lane, value);
    }
  }
};

// Multiplies a sparse matrix by a vector; a thread has a row.
struct Spmv {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    const int32_t row = global_thread();
    const int32_t end = recorder.load(data.rows + row + 1);
    float sum = 0;
#pragma unroll 1  // or else the lanes of a warp go apart in the plain form
    for (int32_t at = recorder.load(data.rows + row); at < end; ++at) {
      const int32_t column = recorder.load(data.columns + at);
      sum += recorder.load(data.in + at) * recorder.load(data.more + column);
    }
    recorder.store(data.out + row, sum);
  }
};

// Finds the nearest of m centres for a point per thread. Points have `times` dimensions.
struct Kmeans {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    const int32_t point = global_thread();
    float least = 1e30F;
    int32_t nearest = 0;
    for (int32_t centre = 0; centre < data.m; ++centre) {
      float distance = 0;
      for (int32_t at = 0; at < data.times; ++at) {
        const float step = recorder.load(data.in + point * data.times + at) -
                           recorder.load(data.more + centre * data.times + at);
        distance += step * step;
      }
      if (distance < least) {
        least = distance;
        nearest = centre;
      }
    }
    recorder.store(data.marked + point, nearest);
  }
};

// Takes one step of a breadth-first search: from the nodes of level `times` to their neighbours.
struct Bfs {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    const int32_t node = global_thread();
    if (recorder.load(data.marks + node) == data.times) {
      const int32_t end = recorder.load(data.rows + node + 1);
#pragma unroll 1  // or else the lanes of a warp go apart in the plain form
      for (int32_t at = recorder.load(data.rows + node); at < end; ++at) {
        const int32_t next = recorder.load(data.columns + at);
        if (recorder.load(data.marks + next) < 0) {
          recorder.store(data.marked + next, data.times + 1);
        }
      }
    }
  }
};

// Makes a fast Walsh transform of m values per block, in place.
struct Fwt {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    float* const values = data.out + static_cast<int32_t>(blockIdx.x) * data.m;
    for (int32_t half = 1; half < data.m; half *= 2) {
      for (auto pair = static_cast<int32_t>(threadIdx.x); pair < data.m / 2;
           pair += static_cast<int32_t>(blockDim.x)) {
        const int32_t at = pair / half * 2 * half + pair % half;
        const float one = recorder.load(values + at);
        const float other = recorder.load(values + at + half);
        recorder.store(values + at, one + other);
        recorder.store(values + at + half, one - other);
      }
      recorder.meet();
    }
  }
};

// Takes the mean of each point and its four neighbours in n columns and m rows; a block has 32 x 8
// points.
struct Stencil {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    const int32_t tiles = data.n / 32;
    const auto block = static_cast<int32_t>(blockIdx.x);
    const int32_t x = block % tiles * 32 + static_cast<int32_t>(threadIdx.x % 32);
    const int32_t y = block / tiles * 8 + static_cast<int32_t>(threadIdx.x / 32);
    const float* const row = data.in + y * data.n;
    float sum = recorder.load(row + x);
    sum += recorder.load(row + max(x - 1, 0));
    sum += recorder.load(row + min(x + 1, data.n - 1));
    sum += recorder.load(data.in + max(y - 1, 0) * data.n + x);
    sum += recorder.load(data.in + min(y + 1, data.m - 1) * data.n + x);
    recorder.store(data.out + y * data.n + x, sum / 5);
  }
};

// Multiplies two matrices, n x n, in square tiles.
template <int32_t kTile>
struct Gemm {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    __shared__ float left[kTile][kTile + 1];
    __shared__ float right[kTile][kTile + 1];
    const int32_t tiles = data.n / kTile;
    const int32_t x = static_cast<int32_t>(threadIdx.x % kTile);
    const int32_t y = static_cast<int32_t>(threadIdx.x / kTile);
    const int32_t column = static_cast<int32_t>(blockIdx.x) % tiles * kTile + x;
    const int32_t row = static_cast<int32_t>(blockIdx.x) / tiles * kTile + y;
    float sum = 0;
    for (int32_t tile = 0; tile < data.n; tile += kTile) {
      left[y][x] = recorder.load(data.in + row * data.n + tile + x);
      right[y][x] = recorder.load(data.more + (tile + y) * data.n + column);
      recorder.meet();
      for (int32_t at = 0; at < kTile; ++at) sum += left[y][at] * right[at][x];
      recorder.meet();
    }
    recorder.store(data.out + row * data.n + column, sum);
  }
};

// Sums what flows into each cell, of m values, from its `times` neighbours; a thread has a cell.
struct Flux {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    const int32_t cell = global_thread();
    for (int32_t value = 0; value < data.m; ++value) {
      const float* const values = data.in + value * data.n;
      const float own = recorder.load(values + cell);
      float sum = 0;
      for (int32_t side = 0; side < data.times; ++side) {
        const int32_t neighbour = recorder.load(data.columns + side * data.n + cell);
        sum += recorder.load(values + neighbour) - own;
      }
      recorder.store(data.out + value * data.n + cell, sum);
    }
  }
};

// Takes the scalar product of a pair of vectors of n values per block; each thread has a part of
// it.
struct Products {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    const int32_t first = static_cast<int32_t>(blockIdx.x) * data.n;
    float sum = 0;
    for (auto at = static_cast<int32_t>(threadIdx.x); at < data.n;
         at += static_cast<int32_t>(blockDim.x)) {
      sum += recorder.load(data.in + first + at) * recorder.load(data.more + first + at);
    }
    recorder.store(data.out + global_thread(), sum);
  }
};

// Multiplies a matrix of n columns by a vector; a thread has a row.
struct Matvec {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    const int32_t row = global_thread();
    float sum = 0;
    for (int32_t column = 0; column < data.n; ++column) {
      sum += recorder.load(data.in + row * data.n + column) * recorder.load(data.more + column);
    }
    recorder.store(data.out + row, sum);
  }
};

// Reads m vectors of 16 bytes `times` times, by all threads together.
struct Sweep {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    const auto* const vectors = reinterpret_cast<const uint4*>(data.in);
    const auto all = static_cast<int32_t>(gridDim.x * blockDim.x);
    uint32_t sum = 0;
    for (int32_t time = 0; time < data.times; ++time) {
      for (int32_t at = global_thread(); at < data.m; at += all) {
        const uint4 value = recorder.load(vectors + at);
        sum ^= value.x ^ value.y ^ value.z ^ value.w;
      }
      recorder.meet();
    }
    recorder.store(data.marked + global_thread(), static_cast<int32_t>(sum));
  }
};

// Reads the same n values in all warps at the same time.
struct Together {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    float sum = 0;
    for (auto at = static_cast<int32_t>(threadIdx.x % 32); at < data.n; at += 32) {
      sum += recorder.load(data.in + at);
    }
    recorder.store(data.out + global_thread(), sum);
  }
};

// Reads a value of one sector of each of n lines; then, `times` times in all, of the sector m
// floats further on.
struct Strided {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    const auto all = static_cast<int32_t>(gridDim.x * blockDim.x);
    float sum = 0;
    for (int32_t time = 0; time < data.times; ++time) {
      for (int32_t line = global_thread(); line < data.n; line += all) {
        sum += recorder.load(data.in + line * 32 + time * data.m);
      }
      recorder.meet();
    }
    recorder.store(data.out + global_thread(), sum);
  }
};

// Reads n values `times` times, writes them, and reads them again: shows what a store leaves in L1.
struct Stored {
  template <typename Recorder>
  __device__ static void run(const Recorder& recorder, const Data& data) {
    float sum = 0;
    const auto each = [&](const auto& what) {
      for (auto at = static_cast<int32_t>(threadIdx.x); at < data.n;
           at += static_cast<int32_t>(blockDim.x)) {
        what(data.out + at);
      }
      recorder.meet();
    };
    const auto read = [&](const float* const value) { sum += recorder.load(value); };
    for (int32_t time = 0; time < data.times; ++time) each(read);
    each([&](float* const value) { recorder.store(value, sum); });
    each(read);
    recorder.store(data.out + data.n + static_cast<int32_t>(threadIdx.x), sum);
  }
};

}  // namespace recorded

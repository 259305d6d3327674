// The recorded cases: kernels with their sizes and data, which are the same on every machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels.cuh"

namespace recorded {

// Data laid out as in the memory of the GPU, with offsets from its beginning.
class Arena {
 public:
  template <typename Value>
  size_t add(const std::vector<Value>& values) {
    const size_t at = reserve(values.size() * sizeof(Value));
    std::memcpy(bytes_.data() + at, values.data(), values.size() * sizeof(Value));
    return at;
  }

  // Reserves zeroed bytes.
  size_t reserve(const size_t bytes) {
    const size_t at = bytes_.size();
    bytes_.resize(at + (bytes + kAlign - 1) / kAlign * kAlign);
    return at;
  }

  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  static constexpr size_t kAlign = 512;
  std::vector<std::byte> bytes_;
};

// Offsets in place of the pointers of `Data`.
struct Offsets {
  size_t in = 0;
  size_t more = 0;
  size_t out = 0;
  size_t rows = 0;
  size_t columns = 0;
  size_t marks = 0;
  size_t marked = 0;
  int32_t n = 0;
  int32_t m = 0;
  int32_t times = 0;
};

struct Prepared {
  int32_t blocks;
  int32_t threads;
  Offsets offsets;
  Arena arena;
};

inline std::vector<float> floats(const size_t count) {
  std::mt19937 random(1);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() % 1024) / 1024;
  return values;
}

// The rows of a sparse matrix: `least` to `most` entries each.
struct Sparse {
  std::vector<int32_t> rows{0};
  std::vector<int32_t> columns;
};

inline Sparse sparse(const int32_t rows, const int32_t columns, const uint32_t least,
                     const uint32_t most) {
  std::mt19937 random(2);
  Sparse made;
  for (int32_t row = 0; row < rows; ++row) {
    const uint32_t entries = least + random() % (most - least + 1);
    for (uint32_t entry = 0; entry < entries; ++entry) {
      made.columns.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(columns)));
    }
    made.rows.push_back(static_cast<int32_t>(made.columns.size()));
  }
  return made;
}

inline Prepared transpose() {
  Prepared made{256, 256, {.n = 512}, {}};
  made.offsets.in = made.arena.add(floats(512 * 512));
  made.offsets.out = made.arena.reserve(512 * 512 * 4);
  return made;
}

inline Prepared spmv_of(const Sparse& matrix, const int32_t columns, const int32_t threads) {
  const auto rows = static_cast<int32_t>(matrix.rows.size()) - 1;
  Prepared made{rows / threads, threads, {.n = rows}, {}};
  made.offsets.rows = made.arena.add(matrix.rows);
  made.offsets.columns = made.arena.add(matrix.columns);
  made.offsets.in = made.arena.add(floats(matrix.columns.size()));
  made.offsets.more = made.arena.add(floats(static_cast<size_t>(columns)));
  made.offsets.out = made.arena.reserve(static_cast<size_t>(rows) * 4);
  return made;
}

inline Prepared spmv() {
  constexpr int32_t kColumns = 16384;
  return spmv_of(sparse(8192, kColumns, 4, 20), kColumns, 1024);
}

inline Prepared kmeans(const int32_t points, const int32_t threads) {
  constexpr int32_t kCentres = 6, kDimensions = 16;
  Prepared made{points / threads, threads, {.n = points, .m = kCentres, .times = kDimensions}, {}};
  made.offsets.in = made.arena.add(floats(static_cast<size_t>(points) * kDimensions));
  made.offsets.more = made.arena.add(floats(kCentres * kDimensions));
  made.offsets.marked = made.arena.reserve(static_cast<size_t>(points) * 4);
  return made;
}

// Begins at the step that reached the most nodes.
inline Prepared bfs(const int32_t nodes, const uint32_t most_neighbours, const int32_t threads) {
  const Sparse graph = sparse(nodes, nodes, 1, most_neighbours);
  std::vector<int32_t> marks(static_cast<size_t>(nodes), -1);
  std::vector<int32_t> now{0};
  marks[0] = 0;
  int32_t step = 0;
  for (size_t most = 0; now.size() >= most; ++step) {
    most = now.size();
    std::vector<int32_t> next;
    for (const int32_t node : now) {
      for (int32_t at = graph.rows[static_cast<size_t>(node)];
           at < graph.rows[static_cast<size_t>(node) + 1]; ++at) {
        const int32_t found = graph.columns[static_cast<size_t>(at)];
        if (marks[static_cast<size_t>(found)] >= 0) continue;
        marks[static_cast<size_t>(found)] = step + 1;
        next.push_back(found);
      }
    }
    now = std::move(next);
  }
  for (int32_t& mark : marks) mark = mark > step - 1 ? -1 : mark;
  Prepared made{nodes / threads, threads, {.n = nodes, .times = step - 1}, {}};
  made.offsets.rows = made.arena.add(graph.rows);
  made.offsets.columns = made.arena.add(graph.columns);
  made.offsets.marks = made.arena.add(marks);
  made.offsets.marked = made.arena.reserve(static_cast<size_t>(nodes) * 4);
  return made;
}

inline Prepared fwt(const int32_t blocks, const int32_t values, const int32_t threads) {
  Prepared made{blocks, threads, {.m = values}, {}};
  made.offsets.out = made.arena.add(floats(static_cast<size_t>(blocks * values)));
  return made;
}

inline Prepared stencil() {
  constexpr int32_t kColumns = 1024, kRows = 512;
  Prepared made{kColumns / 32 * kRows / 8, 256, {.n = kColumns, .m = kRows}, {}};
  made.offsets.in = made.arena.add(floats(kColumns * kRows));
  made.offsets.out = made.arena.reserve(kColumns * kRows * 4);
  return made;
}

inline Prepared gemm(const int32_t tile) {
  constexpr int32_t kSide = 384;
  Prepared made{kSide / tile * kSide / tile, tile * tile, {.n = kSide}, {}};
  made.offsets.in = made.arena.add(floats(kSide * kSide));
  made.offsets.more = made.arena.add(floats(kSide * kSide));
  made.offsets.out = made.arena.reserve(kSide * kSide * 4);
  return made;
}

inline Prepared sweep(const size_t kilobytes, const int32_t blocks, const int32_t times) {
  const size_t bytes = kilobytes * 1024;
  Prepared made{blocks, 1024, {.m = static_cast<int32_t>(bytes / 16), .times = times}, {}};
  made.offsets.in = made.arena.reserve(bytes);
  made.offsets.marked = made.arena.reserve(static_cast<size_t>(blocks) * 1024 * 4);
  return made;
}

inline Prepared together() {
  Prepared made{1, 1024, {.n = 4096}, {}};
  made.offsets.in = made.arena.reserve(4096 * 4);
  made.offsets.out = made.arena.reserve(1024 * 4);
  return made;
}

inline Prepared strided(const int32_t times) {
  constexpr int32_t kLines = 32768;
  Prepared made{132, 1024, {.n = kLines, .m = 8, .times = times}, {}};
  made.offsets.in = made.arena.reserve(size_t{kLines} * kLineBytes);
  made.offsets.out = made.arena.reserve(132 * 1024 * 4);
  return made;
}

inline Prepared stored(const int32_t times) {
  Prepared made{1, 1024, {.n = 4096, .times = times}, {}};
  made.offsets.out = made.arena.reserve((4096 + 1024) * 4);
  return made;
}

// Cases with blocks of few warps. Their threads are two waves of 28 cores with 1,024 threads each.
constexpr int32_t kTwoWaves = 2 * 28 * 1024;

// A matrix of few entries beside its diagonal.
inline Prepared spmv_banded(const int32_t threads) {
  constexpr int32_t kHalf = 256;
  Sparse matrix = sparse(kTwoWaves, 2 * kHalf, 1, 5);
  for (int32_t row = 0; row < kTwoWaves; ++row) {
    const auto from = matrix.columns.begin();
    const auto begin = from + matrix.rows[static_cast<size_t>(row)];
    const auto end = from + matrix.rows[static_cast<size_t>(row) + 1];
    std::sort(begin, end);
    for (auto column = begin; column != end; ++column) {
      *column = std::clamp(row - kHalf + *column, 0, kTwoWaves - 1);
    }
  }
  return spmv_of(matrix, kTwoWaves, threads);
}

// Cells of a grid of 224 columns; one neighbour of eight is elsewhere, as in a grid with holes.
inline Prepared flux(const int32_t threads) {
  constexpr int32_t kColumns = 224, kValues = 5, kNeighbours = 4;
  std::mt19937 random(3);
  std::vector<int32_t> neighbours;
  for (const int32_t step : {-1, 1, -kColumns, kColumns}) {
    for (int32_t cell = 0; cell < kTwoWaves; ++cell) {
      const auto drawn = static_cast<int32_t>(random() % (8 * kColumns));
      const int32_t away = drawn < kColumns ? drawn - kColumns / 2 : step;
      neighbours.push_back(std::clamp(cell + away, 0, kTwoWaves - 1));
    }
  }
  Prepared made{
      kTwoWaves / threads, threads, {.n = kTwoWaves, .m = kValues, .times = kNeighbours}, {}};
  made.offsets.columns = made.arena.add(neighbours);
  made.offsets.in = made.arena.add(floats(size_t{kTwoWaves} * kValues));
  made.offsets.out = made.arena.reserve(size_t{kTwoWaves} * kValues * 4);
  return made;
}

inline Prepared products(const int32_t threads) {
  constexpr int32_t kValues = 2048;
  const int32_t blocks = kTwoWaves / threads;
  Prepared made{blocks, threads, {.n = kValues}, {}};
  made.offsets.in = made.arena.add(floats(static_cast<size_t>(blocks) * kValues));
  made.offsets.more = made.arena.add(floats(static_cast<size_t>(blocks) * kValues));
  made.offsets.out = made.arena.reserve(size_t{kTwoWaves} * 4);
  return made;
}

inline Prepared matvec(const int32_t threads) {
  constexpr int32_t kColumns = 64;
  Prepared made{kTwoWaves / threads, threads, {.n = kColumns}, {}};
  made.offsets.in = made.arena.add(floats(size_t{kTwoWaves} * kColumns));
  made.offsets.more = made.arena.add(floats(kColumns));
  made.offsets.out = made.arena.reserve(size_t{kTwoWaves} * 4);
  return made;
}

}  // namespace recorded

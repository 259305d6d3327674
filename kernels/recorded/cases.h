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
  // Adds values, and returns their offset in bytes.
  template <typename Value>
  size_t add(const std::vector<Value>& values) {
    const size_t at = reserve(values.size() * sizeof(Value));
    std::memcpy(bytes_.data() + at, values.data(), values.size() * sizeof(Value));
    return at;
  }

  // Adds zeroed bytes, and returns their offset.
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

// A kernel's sizes and data.
struct Prepared {
  int32_t blocks;
  int32_t threads;
  Offsets offsets;
  Arena arena;
};

// Returns random values from 0 to 1.
inline std::vector<float> floats(const size_t count) {
  std::mt19937 random(1);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() % 1024) / 1024;
  return values;
}

// A sparse matrix by rows: rows[r] is the index of the first entry of row r in `columns`.
struct Sparse {
  std::vector<int32_t> rows{0};
  std::vector<int32_t> columns;
};

// Returns a random matrix with `min_entries` to `max_entries` entries in each row.
inline Sparse sparse(const int32_t rows, const int32_t columns, const uint32_t min_entries,
                     const uint32_t max_entries) {
  std::mt19937 random(2);
  Sparse matrix;
  for (int32_t row = 0; row < rows; ++row) {
    const uint32_t entries = min_entries + random() % (max_entries - min_entries + 1);
    for (uint32_t entry = 0; entry < entries; ++entry) {
      matrix.columns.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(columns)));
    }
    matrix.rows.push_back(static_cast<int32_t>(matrix.columns.size()));
  }
  return matrix;
}

// Each of these prepares the data of one kernel.
inline Prepared transpose() {
  Prepared prepared{256, 256, {.n = 512}, {}};
  prepared.offsets.in = prepared.arena.add(floats(512 * 512));
  prepared.offsets.out = prepared.arena.reserve(512 * 512 * 4);
  return prepared;
}

inline Prepared spmv_of(const Sparse& matrix, const int32_t columns, const int32_t threads) {
  const auto rows = static_cast<int32_t>(matrix.rows.size()) - 1;
  Prepared prepared{rows / threads, threads, {.n = rows}, {}};
  prepared.offsets.rows = prepared.arena.add(matrix.rows);
  prepared.offsets.columns = prepared.arena.add(matrix.columns);
  prepared.offsets.in = prepared.arena.add(floats(matrix.columns.size()));
  prepared.offsets.more = prepared.arena.add(floats(static_cast<size_t>(columns)));
  prepared.offsets.out = prepared.arena.reserve(static_cast<size_t>(rows) * 4);
  return prepared;
}

inline Prepared spmv() {
  constexpr int32_t kColumns = 16384;
  return spmv_of(sparse(8192, kColumns, 4, 20), kColumns, 1024);
}

inline Prepared kmeans(const int32_t points, const int32_t threads) {
  constexpr int32_t kCentres = 6, kDimensions = 16;
  Prepared prepared{
      points / threads, threads, {.n = points, .m = kCentres, .times = kDimensions}, {}};
  prepared.offsets.in = prepared.arena.add(floats(static_cast<size_t>(points) * kDimensions));
  prepared.offsets.more = prepared.arena.add(floats(kCentres * kDimensions));
  prepared.offsets.marked = prepared.arena.reserve(static_cast<size_t>(points) * 4);
  return prepared;
}

// Prepares the step of a search from node 0 that begins at the level with the most nodes.
inline Prepared bfs(const int32_t nodes, const uint32_t max_neighbours, const int32_t threads) {
  const Sparse graph = sparse(nodes, nodes, 1, max_neighbours);
  std::vector<int32_t> marks(static_cast<size_t>(nodes), -1);
  std::vector<int32_t> frontier{0};
  marks[0] = 0;
  int32_t step = 0;
  for (size_t max_frontier = 0; frontier.size() >= max_frontier; ++step) {
    max_frontier = frontier.size();
    std::vector<int32_t> next;
    for (const int32_t node : frontier) {
      for (int32_t at = graph.rows[static_cast<size_t>(node)];
           at < graph.rows[static_cast<size_t>(node) + 1]; ++at) {
        const int32_t neighbour = graph.columns[static_cast<size_t>(at)];
        if (marks[static_cast<size_t>(neighbour)] >= 0) continue;
        marks[static_cast<size_t>(neighbour)] = step + 1;
        next.push_back(neighbour);
      }
    }
    frontier = std::move(next);
  }
  for (int32_t& mark : marks) mark = mark > step - 1 ? -1 : mark;
  Prepared prepared{nodes / threads, threads, {.n = nodes, .times = step - 1}, {}};
  prepared.offsets.rows = prepared.arena.add(graph.rows);
  prepared.offsets.columns = prepared.arena.add(graph.columns);
  prepared.offsets.marks = prepared.arena.add(marks);
  prepared.offsets.marked = prepared.arena.reserve(static_cast<size_t>(nodes) * 4);
  return prepared;
}

inline Prepared fwt(const int32_t blocks, const int32_t values, const int32_t threads) {
  Prepared prepared{blocks, threads, {.m = values}, {}};
  prepared.offsets.out = prepared.arena.add(floats(static_cast<size_t>(blocks * values)));
  return prepared;
}

inline Prepared stencil() {
  constexpr int32_t kColumns = 1024, kRows = 512;
  Prepared prepared{kColumns / 32 * kRows / 8, 256, {.n = kColumns, .m = kRows}, {}};
  prepared.offsets.in = prepared.arena.add(floats(kColumns * kRows));
  prepared.offsets.out = prepared.arena.reserve(kColumns * kRows * 4);
  return prepared;
}

inline Prepared gemm(const int32_t tile) {
  constexpr int32_t kSide = 384;
  Prepared prepared{kSide / tile * kSide / tile, tile * tile, {.n = kSide}, {}};
  prepared.offsets.in = prepared.arena.add(floats(kSide * kSide));
  prepared.offsets.more = prepared.arena.add(floats(kSide * kSide));
  prepared.offsets.out = prepared.arena.reserve(kSide * kSide * 4);
  return prepared;
}

inline Prepared sweep(const size_t kilobytes, const int32_t blocks, const int32_t times) {
  const size_t bytes = kilobytes * 1024;
  Prepared prepared{blocks, 1024, {.m = static_cast<int32_t>(bytes / 16), .times = times}, {}};
  prepared.offsets.in = prepared.arena.reserve(bytes);
  prepared.offsets.marked = prepared.arena.reserve(static_cast<size_t>(blocks) * 1024 * 4);
  return prepared;
}

inline Prepared together() {
  Prepared prepared{1, 1024, {.n = 4096}, {}};
  prepared.offsets.in = prepared.arena.reserve(4096 * 4);
  prepared.offsets.out = prepared.arena.reserve(1024 * 4);
  return prepared;
}

inline Prepared strided(const int32_t times) {
  constexpr int32_t kLines = 32768;
  Prepared prepared{132, 1024, {.n = kLines, .m = 8, .times = times}, {}};
  prepared.offsets.in = prepared.arena.reserve(size_t{kLines} * kLineBytes);
  prepared.offsets.out = prepared.arena.reserve(132 * 1024 * 4);
  return prepared;
}

inline Prepared stored(const int32_t times) {
  Prepared prepared{1, 1024, {.n = 4096, .times = times}, {}};
  prepared.offsets.out = prepared.arena.reserve((4096 + 1024) * 4);
  return prepared;
}

// Cases with blocks of few warps. Their threads are two waves of 28 cores with 1,024 threads each.
constexpr int32_t kTwoWaves = 2 * 28 * 1024;

// Prepares a matrix with few entries, all close to its diagonal.
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

// Prepares the cells of a grid of 224 columns; one neighbour of eight is elsewhere, as in a grid
// with holes.
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
  Prepared prepared{
      kTwoWaves / threads, threads, {.n = kTwoWaves, .m = kValues, .times = kNeighbours}, {}};
  prepared.offsets.columns = prepared.arena.add(neighbours);
  prepared.offsets.in = prepared.arena.add(floats(size_t{kTwoWaves} * kValues));
  prepared.offsets.out = prepared.arena.reserve(size_t{kTwoWaves} * kValues * 4);
  return prepared;
}

inline Prepared products(const int32_t threads) {
  constexpr int32_t kValues = 2048;
  const int32_t blocks = kTwoWaves / threads;
  Prepared prepared{blocks, threads, {.n = kValues}, {}};
  prepared.offsets.in = prepared.arena.add(floats(static_cast<size_t>(blocks) * kValues));
  prepared.offsets.more = prepared.arena.add(floats(static_cast<size_t>(blocks) * kValues));
  prepared.offsets.out = prepared.arena.reserve(size_t{kTwoWaves} * 4);
  return prepared;
}

inline Prepared matvec(const int32_t threads) {
  constexpr int32_t kColumns = 64;
  Prepared prepared{kTwoWaves / threads, threads, {.n = kColumns}, {}};
  prepared.offsets.in = prepared.arena.add(floats(size_t{kTwoWaves} * kColumns));
  prepared.offsets.more = prepared.arena.add(floats(kColumns));
  prepared.offsets.out = prepared.arena.reserve(size_t{kTwoWaves} * 4);
  return prepared;
}

}  // namespace recorded

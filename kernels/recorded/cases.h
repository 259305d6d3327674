// The recorded cases: kernels with their sizes and data, which are the same on every machine.
#pragma once

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

// The rows of a sparse matrix: `least` to `most` entries each, in columns in rising order.
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

inline Prepared spmv() {
  constexpr int32_t kRows = 8192, kColumns = 16384;
  Prepared made{kRows / 1024, 1024, {.n = kRows}, {}};
  const Sparse matrix = sparse(kRows, kColumns, 4, 20);
  made.offsets.rows = made.arena.add(matrix.rows);
  made.offsets.columns = made.arena.add(matrix.columns);
  made.offsets.in = made.arena.add(floats(matrix.columns.size()));
  made.offsets.more = made.arena.add(floats(kColumns));
  made.offsets.out = made.arena.reserve(kRows * 4);
  return made;
}

inline Prepared kmeans() {
  constexpr int32_t kPoints = 8192, kCentres = 6, kDimensions = 16;
  Prepared made{kPoints / 1024, 1024, {.n = kPoints, .m = kCentres, .times = kDimensions}, {}};
  made.offsets.in = made.arena.add(floats(kPoints * kDimensions));
  made.offsets.more = made.arena.add(floats(kCentres * kDimensions));
  made.offsets.marked = made.arena.reserve(kPoints * 4);
  return made;
}

// Begins at the step that reached the most nodes.
inline Prepared bfs() {
  constexpr int32_t kNodes = 8192;
  const Sparse graph = sparse(kNodes, kNodes, 1, 13);
  std::vector<int32_t> marks(kNodes, -1);
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
  Prepared made{kNodes / 1024, 1024, {.n = kNodes, .times = step - 1}, {}};
  made.offsets.rows = made.arena.add(graph.rows);
  made.offsets.columns = made.arena.add(graph.columns);
  made.offsets.marks = made.arena.add(marks);
  made.offsets.marked = made.arena.reserve(kNodes * 4);
  return made;
}

inline Prepared fwt() {
  constexpr int32_t kBlocks = 16, kValues = 8192;
  Prepared made{kBlocks, 512, {.m = kValues}, {}};
  made.offsets.out = made.arena.add(floats(size_t{kBlocks} * kValues));
  return made;
}

inline Prepared stencil() {
  constexpr int32_t kColumns = 1024, kRows = 512;
  Prepared made{kColumns / 32 * kRows / 8, 256, {.n = kColumns, .m = kRows}, {}};
  made.offsets.in = made.arena.add(floats(kColumns * kRows));
  made.offsets.out = made.arena.reserve(kColumns * kRows * 4);
  return made;
}

inline Prepared gemm() {
  constexpr int32_t kSide = 384;
  Prepared made{kSide / 32 * kSide / 32, 1024, {.n = kSide}, {}};
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

}  // namespace recorded

// The gaps in the shared memory of an SM, where they are only counted.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace tbsched {

// Memory is a ring. A block takes the beginning of a gap, and one that leaves makes at most one
// more. So there is never more than one gap for each block that is there.
//
// At first all free memory is one gap. While blocks of one size come and go, every other gap is a
// whole multiple of that size.
class MemoryGaps {
 public:
  // Blocks of so many bytes may enter, all together, besides those that are committed.
  void reserve(int64_t bytes);
  // A block; of an SM that is configured so. One without memory changes nothing.
  void commit(int32_t bytes, int32_t configured);
  void enter(int32_t bytes, int32_t configured);
  void leave(int32_t bytes, int32_t configured);

  int32_t taken() const { return taken_; }
  // How many blocks of so many bytes surely fit. All sizes, and `configured`, are whole units.
  int32_t sure(int32_t bytes, int32_t configured, int32_t unit) const;
  // What matters of it. Before the first block came, that is what may come.
  std::array<int32_t, 4> key(const int32_t configured) const {
    return {gaps_, size_, std::min(came_, configured), reserved_};
  }

 private:
  void count(int32_t most, int32_t configured);

  static constexpr int32_t kNone = 0;
  static constexpr int32_t kMixed = -1;

  int32_t taken_ = 0;
  int32_t blocks_ = 0;
  int32_t gaps_ = 1;      // at most
  int32_t size_ = kNone;  // of those that came and went since the first one left
  // Bytes, at most: of all blocks that came since none was there, or may. The first gap has lost no
  // more.
  int32_t came_ = 0;
  int32_t reserved_ = 0;  // of these
};

}  // namespace tbsched

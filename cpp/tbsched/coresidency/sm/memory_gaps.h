// The gaps in the shared memory of an SM, counted but not located.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace tbsched {

// Memory is a ring. A block takes the beginning of a gap, and a block that leaves makes at most one
// more gap. So there are never more gaps than blocks.
//
// At first all free memory is one gap. While blocks of one size come and go, every other gap is a
// whole multiple of that size.
class MemoryGaps {
 public:
  // Announces blocks of this total size that may enter, in addition to committed ones.
  void reserve(int64_t bytes);
  // Adds a block of an arriving launch to an SM that is configured to so many bytes. A block
  // without memory changes nothing.
  void commit(int32_t bytes, int32_t configured);
  // Adds a block of this size that was reserved, to an SM that is configured to so many bytes.
  void enter(int32_t bytes, int32_t configured);
  // Removes a block of this size from an SM that is configured to so many bytes.
  void leave(int32_t bytes, int32_t configured);

  // Returns the bytes of all blocks.
  int32_t taken() const { return taken_; }
  // Returns how many blocks of this size fit at least. All sizes, and `configured`, are multiples
  // of `unit`.
  int32_t guaranteed_room(int32_t bytes, int32_t configured, int32_t unit) const;
  // Returns a key: objects with equal keys behave alike. Before the first block it has only the
  // reserved bytes.
  std::array<int32_t, 4> key(const int32_t configured) const {
    return {gaps_, size_, std::min(arrived_bytes_, configured), reserved_};
  }

 private:
  // Sets the number of gaps to `max_gaps`, or to fewer if there cannot be so many.
  void limit_gaps(int32_t max_gaps, int32_t configured);

  static constexpr int32_t kNone = 0;
  static constexpr int32_t kMixed = -1;

  int32_t taken_ = 0;     // bytes
  int32_t blocks_ = 0;    // that take memory
  int32_t gaps_ = 1;      // upper bound
  int32_t size_ = kNone;  // size of the blocks that entered or left since the first one left
  // Upper bound in bytes of all blocks that arrived since the SM was idle, or may arrive. The first
  // gap has lost at most this.
  int32_t arrived_bytes_ = 0;
  int32_t reserved_ = 0;  // of arrived_bytes_
};

}  // namespace tbsched

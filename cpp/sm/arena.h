// A memory whose allocations are contiguous: the lowest gap that is large enough is taken. Where it
// is circular, the gaps at its end and at its beginning are one, and counted as the one at the end.
#pragma once

#include <cstdint>
#include <vector>

namespace tbsched {

class Arena {
 public:
  Arena(int32_t capacity, bool circular) : capacity_(capacity), circular_(circular) {}

  int32_t largest_gap() const;
  // How many pieces of this size fit at once.
  int32_t pieces(int32_t size) const;

  // A piece of `size` must fit.
  void allocate(uint32_t owner, int32_t size);
  void release(uint32_t owner);

 private:
  struct Piece {
    int32_t begin;
    int32_t size;
    uint32_t owner;
  };
  template <typename Visit>
  void for_each_gap(Visit visit) const;

  int32_t capacity_;
  bool circular_;
  std::vector<Piece> pieces_;  // by position
};

}  // namespace tbsched

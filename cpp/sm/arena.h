// A memory whose allocations are contiguous: the lowest gap that is large enough is taken.
#pragma once

#include <cstdint>
#include <vector>

namespace tbsched {

class Arena {
 public:
  explicit Arena(int32_t capacity) : capacity_(capacity) {}

  int32_t largest_gap() const;
  // How many pieces of this size fit at once.
  int32_t pieces(int32_t size) const;

  // A piece of `size` must fit.
  void allocate(uint32_t owner, int32_t size);
  void release(uint32_t owner);

 private:
  struct Piece {
    int32_t begin;
    int32_t end;
    uint32_t owner;
  };
  template <typename Visit>
  void for_each_gap(Visit visit) const;

  int32_t capacity_;
  std::vector<Piece> pieces_;  // by position
};

}  // namespace tbsched

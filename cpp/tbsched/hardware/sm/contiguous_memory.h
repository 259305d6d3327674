// A memory whose allocations are contiguous. Allocates in the lowest gap that is large enough, or
// in the highest.
//
// A circular memory has no fixed beginning. Addresses count from an origin. If a release leaves a
// gap on both sides of the origin, the two gaps merge and the origin moves back to their beginning.
#pragma once

#include <cstdint>
#include <vector>

namespace tbsched {

// Addresses in [begin, end).
struct Extent {
  int32_t begin;
  int32_t end;
};

class ContiguousMemory {
 public:
  // `lowest_first`: allocates in the lowest gap that is large enough; else in the highest.
  ContiguousMemory(int32_t capacity, bool circular, bool lowest_first = true)
      : capacity_(capacity), circular_(circular), lowest_first_(lowest_first) {}

  // Frees all pieces and sets the capacity. Keeps its own memory on the heap for reuse.
  void reset(int32_t capacity);

  bool empty() const { return pieces_.empty(); }
  // Returns the size of the largest gap; 0 if there is none.
  int32_t largest_gap() const;
  // Returns how many pieces of this size fit at once.
  int32_t count_fitting(int32_t size) const;
  // Returns the pieces of an owner, by position.
  std::vector<Extent> pieces_of(uint32_t owner) const;

  // Allocates `count` pieces of `size` each, one after the other; they must fit.
  void allocate(uint32_t owner, int32_t size, int32_t count);
  // Frees the pieces of an owner.
  void release(uint32_t owner);

 private:
  // Adjacent allocations of one owner, which are released together, are one piece.
  struct Piece {
    int32_t begin;  // from the origin
    int32_t end;
    uint32_t owner;
  };
  template <typename Visit>
  void for_each_gap(Visit visit) const;

  int32_t capacity_;
  bool circular_;
  bool lowest_first_;
  std::vector<Piece> pieces_;  // by position
};

}  // namespace tbsched

// A memory whose allocations are contiguous: of the gaps that are large enough the lowest is taken,
// or the highest.
//
// A circular one has no fixed beginning. Addresses count from an origin; where a release leaves a
// gap on both sides of it, the two become one and the origin moves back to where that gap begins.
#pragma once

#include <cstdint>
#include <vector>

namespace tbsched {

// Addresses from `begin` up to, and without, `end`.
struct Extent {
  int32_t begin;
  int32_t end;
};

class ContiguousMemory {
 public:
  ContiguousMemory(int32_t capacity, bool circular, bool lowest_first = true)
      : capacity_(capacity), circular_(circular), lowest_first_(lowest_first) {}

  // Empties it. It keeps its memory, so that no allocation of the host's is made anew.
  void reset(int32_t capacity);

  bool empty() const { return pieces_.empty(); }
  int32_t largest_gap() const;
  // How many pieces of this size fit at once.
  int32_t pieces(int32_t size) const;
  // What an owner has, by position.
  std::vector<Extent> pieces_of(uint32_t owner) const;

  // `count` pieces of `size` each, one after the other; they must fit.
  void allocate(uint32_t owner, int32_t size, int32_t count);
  void release(uint32_t owner);

 private:
  // Neighbours of one owner, which leave together, are one.
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

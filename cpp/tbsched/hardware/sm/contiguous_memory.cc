#include "tbsched/hardware/sm/contiguous_memory.h"

#include <algorithm>

namespace tbsched {

// Calls visit(index of the piece behind the gap, begin, size) from low to high until it returns
// false.
template <typename Visit>
void ContiguousMemory::for_each_gap(Visit visit) const {
  int32_t begin = 0;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const int32_t size = pieces_[i].begin - begin;
    if (size > 0 && !visit(i, begin, size)) return;
    begin = pieces_[i].end;
  }
  if (begin < capacity_) visit(pieces_.size(), begin, capacity_ - begin);
}

int32_t ContiguousMemory::largest_gap() const {
  int32_t largest = 0;
  for_each_gap([&](size_t, int32_t, const int32_t size) {
    largest = std::max(largest, size);
    return true;
  });
  return largest;
}

int32_t ContiguousMemory::count_fitting(const int32_t size) const {
  int32_t count = 0;
  for_each_gap([&](size_t, int32_t, const int32_t gap) {
    if (gap >= size) count += gap / size;  // most gaps of a full SM need no division
    return true;
  });
  return count;
}

std::vector<Extent> ContiguousMemory::pieces_of(const uint32_t owner) const {
  std::vector<Extent> extents;
  for (const Piece& piece : pieces_) {
    if (piece.owner == owner) extents.push_back({piece.begin, piece.end});
  }
  return extents;
}

void ContiguousMemory::reset(const int32_t capacity) {
  capacity_ = capacity;
  pieces_.clear();
}

void ContiguousMemory::allocate(const uint32_t owner, const int32_t size, const int32_t count) {
  for (int32_t remaining = count; remaining > 0;) {
    size_t position = 0;  // of the new piece
    Piece piece{0, 0, owner};
    for_each_gap([&](const size_t index, const int32_t begin, const int32_t gap) {
      if (gap < size) return true;
      const int32_t fitting = std::min(remaining, gap / size);
      position = index;
      piece.begin = begin;
      piece.end = begin + fitting * size;
      return !lowest_first_;
    });
    pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(position), piece);
    remaining -= (piece.end - piece.begin) / size;
  }
}

void ContiguousMemory::release(const uint32_t owner) {
  std::erase_if(pieces_, [owner](const Piece& piece) { return piece.owner == owner; });
  if (!circular_ || pieces_.empty() || pieces_.front().begin == 0) return;
  const int32_t gap_before_origin = capacity_ - pieces_.back().end;
  for (Piece& piece : pieces_) {
    piece.begin += gap_before_origin;
    piece.end += gap_before_origin;
  }
}

}  // namespace tbsched

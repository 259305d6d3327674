#include "sm/arena.h"

#include <algorithm>

namespace tbsched {

// Calls visit(index of the piece behind the gap, begin, size) from low to high until it returns
// false.
template <typename Visit>
void Arena::for_each_gap(Visit visit) const {
  const int32_t last_end = pieces_.empty() ? 0 : pieces_.back().begin + pieces_.back().size;
  const bool reaches_end = last_end >= capacity_;
  int32_t begin = reaches_end ? last_end - capacity_ : 0;
  int32_t at_beginning = 0;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const int32_t size = pieces_[i].begin - begin;
    if (i == 0 && circular_ && !reaches_end) {
      at_beginning = size;
    } else if (size > 0 && !visit(i, begin, size)) {
      return;
    }
    begin = pieces_[i].begin + pieces_[i].size;
  }
  if (reaches_end) return;
  const int32_t size = capacity_ - begin + at_beginning;
  if (size > 0) visit(pieces_.size(), begin % capacity_, size);
}

int32_t Arena::largest_gap() const {
  int32_t largest = 0;
  for_each_gap([&](size_t, int32_t, const int32_t size) {
    largest = std::max(largest, size);
    return true;
  });
  return largest;
}

int32_t Arena::pieces(const int32_t size) const {
  int32_t count = 0;
  for_each_gap([&](size_t, int32_t, const int32_t gap) {
    count += gap / size;
    return true;
  });
  return count;
}

void Arena::allocate(const uint32_t owner, const int32_t size) {
  for_each_gap([&](const size_t index, const int32_t begin, const int32_t gap) {
    if (gap < size) return true;
    const size_t at =
        index == pieces_.size() && !pieces_.empty() && begin < pieces_.front().begin ? 0 : index;
    pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(at), Piece{begin, size, owner});
    return false;
  });
}

void Arena::release(const uint32_t owner) {
  std::erase_if(pieces_, [owner](const Piece& piece) { return piece.owner == owner; });
}

}  // namespace tbsched

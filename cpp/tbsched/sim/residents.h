// The set of resident footprints with their launches, so that none leaves twice.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tbsched {

// Uses open addressing. Owners are consecutive numbers: multiplying by the golden ratio spreads
// them.
class Residents {
 public:
  // Adds the footprint of an owner.
  void add(const uint32_t owner, const int32_t launch) {
    if (3 * ++count_ > 2 * mask_) grow();
    insert(entry_of(owner, launch));
  }

  // Removes the footprint of an owner. Returns false if there is none of this owner and launch.
  bool remove(const uint32_t owner, const int32_t launch) {
    if (launch < 0) return false;
    const uint64_t sought = entry_of(owner, launch);
    size_t hole = home(sought);
    for (; entries_[hole] != sought; hole = next(hole)) {
      if (entries_[hole] == kFree) return false;
    }
    // Entries behind the hole that belong at or before it move up.
    for (size_t at = next(hole); entries_[at] != kFree; at = next(at)) {
      if (((at - home(entries_[at])) & mask_) >= ((at - hole) & mask_)) {
        entries_[std::exchange(hole, at)] = entries_[at];
      }
    }
    entries_[hole] = kFree;
    --count_;
    return true;
  }

 private:
  static constexpr uint64_t kFree = 0;
  static constexpr size_t kMinEntries = 256;  // more than one for each SM of most devices

  // Returns the entry of a footprint; it is never kFree.
  static uint64_t entry_of(const uint32_t owner, const int32_t launch) {
    return uint64_t{owner} << 32 | (static_cast<uint32_t>(launch) + 1);
  }
  // Returns the index at which the search for an entry begins.
  size_t home(const uint64_t entry) const {
    return static_cast<uint32_t>((entry >> 32) * 2654435769) >> shift_;
  }
  size_t next(const size_t at) const { return (at + 1) & mask_; }
  void insert(const uint64_t entry) {
    size_t at = home(entry);
    while (entries_[at] != kFree) at = next(at);
    entries_[at] = entry;
  }
  // Doubles the table.
  void grow() {
    const std::vector<uint64_t> old =
        std::exchange(entries_, std::vector<uint64_t>(2 * entries_.size()));
    mask_ = entries_.size() - 1;
    --shift_;
    for (const uint64_t entry : old) {
      if (entry != kFree) insert(entry);
    }
  }

  // Its size is a power of two; at least a third of it is free.
  std::vector<uint64_t> entries_ = std::vector<uint64_t>(kMinEntries);
  size_t mask_ = kMinEntries - 1;
  int shift_ = 32 - std::countr_zero(kMinEntries);  // keeps as many bits as an index has
  size_t count_ = 0;
};

}  // namespace tbsched

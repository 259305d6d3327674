// Which footprints are resident, and of which launch: so that none leaves twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tbsched {

// Open addressing. Owners are numbered one after the other, so that nearly each is found at once.
class Residents {
 public:
  void add(const uint32_t owner, const int32_t launch) {
    if (2 * ++count_ > entries_.size()) grow();
    insert({owner, launch});
  }

  // False: there is none of this owner and launch.
  bool remove(const uint32_t owner, const int32_t launch) {
    if (entries_.empty()) return false;
    size_t hole = owner & mask();
    for (; entries_[hole] != Entry{owner, launch}; hole = next(hole)) {
      if (!entries_[hole].taken()) return false;
    }
    // Those behind it that it kept from their place move up.
    for (size_t at = next(hole); entries_[at].taken(); at = next(at)) {
      const size_t wanted = entries_[at].owner & mask();
      if (((at - wanted) & mask()) >= ((at - hole) & mask())) {
        entries_[std::exchange(hole, at)] = entries_[at];
      }
    }
    entries_[hole] = {};
    --count_;
    return true;
  }

 private:
  struct Entry {
    uint32_t owner = 0;
    int32_t launch = -1;

    bool operator==(const Entry&) const = default;
    bool taken() const { return launch >= 0; }
  };

  size_t mask() const { return entries_.size() - 1; }
  size_t next(const size_t at) const { return (at + 1) & mask(); }
  void insert(const Entry& entry) {
    size_t at = entry.owner & mask();
    while (entries_[at].taken()) at = next(at);
    entries_[at] = entry;
  }
  void grow() {
    const std::vector<Entry> old = std::exchange(
        entries_, std::vector<Entry>(entries_.empty() ? kFewest : 2 * entries_.size()));
    for (const Entry& entry : old) {
      if (entry.taken()) insert(entry);
    }
  }

  static constexpr size_t kFewest = 64;

  std::vector<Entry> entries_;  // their number is a power of two, and half of them are not taken
  size_t count_ = 0;
};

}  // namespace tbsched

// The lines in a cache, and the sectors of each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace tbsched::sm_sim {

// Up to four sectors of a line, a bit each.
using Sectors = uint8_t;

enum class Replacement : int32_t { least_recent, first_in, any };

struct CacheShape {
  int64_t sets;
  int32_t ways;
  Replacement replacement = Replacement::least_recent;
  bool hashed = false;  // the set depends on the whole number of the line
};

// Sectors of a line.
struct Part {
  uint64_t line;
  Sectors sectors;
};

// Returns the number of sectors. A table, since every access needs it.
inline int32_t sectors_in(const Sectors sectors) {
  static constexpr std::array<int8_t, 16> kCounts = {0, 1, 1, 2, 1, 2, 2, 3,
                                                     1, 2, 2, 3, 2, 3, 3, 4};
  return kCounts[sectors];
}

// A set-associative cache, without its data.
class Cache {
 public:
  explicit Cache(const CacheShape& shape);

  // Returns the requested sectors that the cache has, and marks the line as used; a write makes
  // those sectors dirty.
  Sectors touch(Part part, bool write);

  // Returns whether the cache has an entry for the line, even one without sectors.
  bool has_place(uint64_t line) const;

  // Returns the sectors of the line that the cache has.
  Sectors held(uint64_t line) const;

  // Adds sectors, and an entry for a line that has none yet. Returns the dirty sectors of the line
  // that is evicted; none: there are none.
  std::optional<Part> fill(Part part, bool dirty);

 private:
  // Returns the index of the first entry of the line's set.
  uint64_t set_of(uint64_t line) const;
  // Returns the way of a set that a new line takes. Empty ways are the last ones, since used lines
  // move to the front.
  int32_t choose_victim(const uint64_t* set);

  CacheShape shape_;
  uint64_t random_ = 0x9e3779b97f4a7c15;
  // Per set, most recently used or filled first: the line, its sectors, and the dirty ones.
  std::vector<uint64_t> entries_;
};

}  // namespace tbsched::sm_sim

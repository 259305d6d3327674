// Which lines a cache holds, and which sectors of each.
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

struct Part {
  uint64_t line;
  Sectors sectors;
};

// How many; looked up, as it is asked for each access.
inline int32_t sectors_in(const Sectors sectors) {
  static constexpr std::array<int8_t, 16> kCounts = {0, 1, 1, 2, 1, 2, 2, 3,
                                                     1, 2, 2, 3, 2, 3, 3, 4};
  return kCounts[sectors];
}

class Cache {
 public:
  explicit Cache(const CacheShape& shape);

  // Which of the sectors it has. The line has then been used; a write makes those dirty.
  Sectors touch(Part part, bool write);

  // Whether the line has a place, be it without sectors.
  bool has_place(uint64_t line) const;

  // Which sectors of the line it has.
  Sectors held(uint64_t line) const;

  // Takes sectors in, or makes a place for a line that has none yet. Returns what had to leave and
  // is dirty.
  std::optional<Part> fill(Part part, bool dirty);

 private:
  uint64_t set_of(uint64_t line) const;
  int32_t victim(const uint64_t* set);

  CacheShape shape_;
  uint64_t random_ = 0x9e3779b97f4a7c15;
  // Per set, most recently used or come first: the line, its sectors, and those that are dirty.
  std::vector<uint64_t> entries_;
};

}  // namespace tbsched::sm_sim

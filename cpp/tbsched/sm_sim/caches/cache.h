// Which lines a cache holds: sets of ways, the least recently used line leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tbsched::sm_sim {

class Cache {
 public:
  Cache(int64_t sets, int32_t ways);

  // Whether it has the line, which is then the most recently used; a write makes it dirty.
  bool touch(uint64_t line, bool write);

  bool holds(uint64_t line) const;

  // Takes the line in, if it is not there. Returns a dirty line that had to leave.
  std::optional<uint64_t> fill(uint64_t line, bool dirty);

 private:
  uint64_t* set_of(uint64_t line);

  uint64_t sets_;
  int32_t ways_;
  // Per set, most recently used first: twice the line, and 1 where it is dirty.
  std::vector<uint64_t> entries_;
};

}  // namespace tbsched::sm_sim

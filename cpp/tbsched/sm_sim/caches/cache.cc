#include "tbsched/sm_sim/caches/cache.h"

#include <algorithm>
#include <cstddef>

namespace tbsched::sm_sim {
namespace {

constexpr uint64_t kNone = ~uint64_t{0};

int32_t way_of(const uint64_t* const set, const int32_t ways, const uint64_t line) {
  for (int32_t way = 0; way < ways; ++way) {
    if (set[way] >> 1 == line && set[way] != kNone) return way;
  }
  return -1;
}

void to_front(uint64_t* const set, const int32_t way, const uint64_t entry) {
  std::copy_backward(set, set + way, set + way + 1);
  set[0] = entry;
}

}  // namespace

Cache::Cache(const int64_t sets, const int32_t ways)
    : sets_(static_cast<uint64_t>(sets)),
      ways_(ways),
      entries_(static_cast<size_t>(sets * ways), kNone) {}

uint64_t* Cache::set_of(const uint64_t line) {
  return entries_.data() + line % sets_ * static_cast<uint64_t>(ways_);
}

bool Cache::touch(const uint64_t line, const bool write) {
  uint64_t* const set = set_of(line);
  const int32_t way = way_of(set, ways_, line);
  if (way < 0) return false;
  to_front(set, way, set[way] | static_cast<uint64_t>(write));
  return true;
}

bool Cache::holds(const uint64_t line) const {
  return way_of(entries_.data() + line % sets_ * static_cast<uint64_t>(ways_), ways_, line) >= 0;
}

std::optional<uint64_t> Cache::fill(const uint64_t line, const bool dirty) {
  if (touch(line, dirty)) return {};
  uint64_t* const set = set_of(line);
  const uint64_t last = set[ways_ - 1];
  to_front(set, ways_ - 1, line << 1 | static_cast<uint64_t>(dirty));
  if (last == kNone || (last & 1) == 0) return {};
  return last >> 1;
}

}  // namespace tbsched::sm_sim

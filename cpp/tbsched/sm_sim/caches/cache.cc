#include "tbsched/sm_sim/caches/cache.h"

#include <algorithm>
#include <cstddef>

namespace tbsched::sm_sim {
namespace {

constexpr int kSectorBits = 4;
constexpr int kLineShift = 2 * kSectorBits;
constexpr uint64_t kAllSectors = (uint64_t{1} << kSectorBits) - 1;
constexpr uint64_t kEmpty = ~uint64_t{0};

// Returns the sectors that an entry has. An entry is the line, its sectors, and the dirty ones of
// these.
Sectors sectors_of(const uint64_t entry) {
  return static_cast<Sectors>(entry >> kSectorBits & kAllSectors);
}

// Returns the dirty sectors of an entry.
Sectors dirty_of(const uint64_t entry) { return static_cast<Sectors>(entry & kAllSectors); }

// Returns the entry of a line with these sectors.
uint64_t entry_of(const Part part, const Sectors dirty) {
  return part.line << kLineShift | uint64_t{part.sectors} << kSectorBits | dirty;
}

// Returns the way of a set that has a line; -1: none.
int32_t way_of(const uint64_t* const set, const int32_t ways, const uint64_t line) {
  for (int32_t way = 0; way < ways; ++way) {
    if (set[way] >> kLineShift == line && set[way] != kEmpty) return way;
  }
  return -1;
}

// Puts an entry in front of a set, in place of the one in `way`.
void move_to_front(uint64_t* const set, const uint32_t way, const uint64_t entry) {
  std::copy_backward(set, set + way, set + way + 1);
  set[0] = entry;
}

}  // namespace

Cache::Cache(const CacheShape& shape)
    : shape_(shape), entries_(static_cast<size_t>(shape.sets * shape.ways), kEmpty) {}

uint64_t Cache::set_of(const uint64_t line) const {
  const auto sets = static_cast<uint64_t>(shape_.sets);
  const uint64_t number = shape_.hashed ? line ^ line / sets ^ line / sets / sets : line;
  return number % sets * static_cast<uint64_t>(shape_.ways);
}

Sectors Cache::touch(const Part part, const bool write) {
  uint64_t* const set = entries_.data() + set_of(part.line);
  const int32_t way = way_of(set, shape_.ways, part.line);
  if (way < 0) return 0;
  const auto hits = static_cast<Sectors>(sectors_of(set[way]) & part.sectors);
  const uint64_t entry = set[way] | (write ? hits : 0);
  if (shape_.replacement == Replacement::least_recent) {
    move_to_front(set, way, entry);
  } else {
    set[way] = entry;
  }
  return hits;
}

bool Cache::has_place(const uint64_t line) const {
  return way_of(entries_.data() + set_of(line), shape_.ways, line) >= 0;
}

Sectors Cache::held(const uint64_t line) const {
  const uint64_t* const set = entries_.data() + set_of(line);
  const int32_t way = way_of(set, shape_.ways, line);
  return way < 0 ? Sectors{0} : sectors_of(set[way]);
}

std::optional<Part> Cache::fill(const Part part, const bool dirty) {
  uint64_t* const set = entries_.data() + set_of(part.line);
  const uint64_t entry = entry_of(part, dirty ? part.sectors : Sectors{0});
  if (const int32_t way = way_of(set, shape_.ways, part.line); way >= 0) {
    set[way] |= entry;
    touch(part, false);
    return {};
  }
  const int32_t way = choose_victim(set);
  const uint64_t evicted = set[way];
  move_to_front(set, way, entry);
  if (evicted == kEmpty || dirty_of(evicted) == 0) return {};
  return Part{evicted >> kLineShift, dirty_of(evicted)};
}

int32_t Cache::choose_victim(const uint64_t* const set) {
  const int32_t last = shape_.ways - 1;
  if (shape_.replacement != Replacement::any || set[last] == kEmpty) return last;
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return static_cast<int32_t>(random_ % static_cast<uint64_t>(shape_.ways));
}

}  // namespace tbsched::sm_sim

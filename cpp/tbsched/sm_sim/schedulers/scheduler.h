// The contract of a warp scheduler: in each slot it picks the warp of a core that issues.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tbsched/sm_sim/config.h"

namespace tbsched::sm_sim {

// Warps of a core: bit w stands for warp w. The warps of the block in place b begin at b *
// warps_per_block.
using Warps = uint64_t;

// Returns `count` warps from `first` on.
constexpr Warps warps_from(const int32_t first, const int32_t count) {
  return count >= 64 ? ~Warps{0} : ((Warps{1} << count) - 1) << first;
}

// A core as its scheduler sees it.
struct CoreShape {
  int32_t core;
  int32_t places;  // for blocks
  int32_t warps_per_block;

  // Returns the warps of the block in a place.
  Warps warps_at(const int32_t place) const {
    return warps_from(place * warps_per_block, warps_per_block);
  }
};

// The warps of a core in one issue slot.
struct Situation {
  Warps ready;           // may issue; at least one
  Warps waiting;         // for memory, or at a barrier
  Warps resident;        // of blocks that have not ended
  int64_t cycle;         // of the core
  Warps for_others = 0;  // of those that wait: at a barrier, or for room that others have
};

// The scheduler of one core.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // Returns the warp that issues, which must be ready; -1: none, and the slot ends.
  virtual int32_t pick(const Situation& now) = 0;

  // Notes that a block has started in a place, so that all warps there are new.
  virtual void block_started(int32_t /*place*/) {}
};

// Creates the scheduler of each core. May be called from several threads at once.
using MakeScheduler =
    std::function<std::unique_ptr<Scheduler>(const Config& config, const CoreShape& shape)>;

}  // namespace tbsched::sm_sim

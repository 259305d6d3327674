// Groups of warps, and turns within them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tbsched/sm_sim/schedulers/scheduler.h"
#include "tbsched/sm_sim/schedulers/turns.h"

namespace tbsched::sm_sim {

// Returns the warps of each scheduling group of a core, as a mask. A group has whole blocks: as few
// as have config.group_warps warps. The last group also has the remaining blocks.
std::vector<Warps> groups_of_blocks(const Config& config, const CoreShape& shape);

// Returns the warps of each scheduling group of a core, as a mask: config.group_warps warps in
// order, regardless of blocks.
std::vector<Warps> groups_of_warps(const Config& config, const CoreShape& shape);

// Groups of warps; in each of them all warps in turn.
class Groups {
 public:
  explicit Groups(std::vector<Warps> groups) : groups_(std::move(groups)), last_(size(), 63) {}

  size_t size() const { return groups_.size(); }
  Warps operator[](const size_t group) const { return groups_[group]; }

  // Returns whether no warp of the group can issue before memory answers.
  bool is_blocked(const size_t group, const Situation& now) const {
    return (groups_[group] & now.resident & ~now.waiting) == 0;
  }

  // Returns the next ready warp of the group in turn, which issues; -1: none is ready.
  int32_t pick(const size_t group, const Situation& now) {
    const Warps candidates = groups_[group] & now.ready;
    if (candidates == 0) return -1;
    return last_[group] = next_in_turn(candidates, last_[group]);
  }

 private:
  std::vector<Warps> groups_;
  std::vector<int32_t> last_;  // by group: the warp that issued last
};

}  // namespace tbsched::sm_sim

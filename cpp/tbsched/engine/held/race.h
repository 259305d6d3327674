// The order in which released blocks leave while others take their room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tbsched/hardware/sm/footprint.h"

namespace tbsched {

struct LeavingBlock {
  int32_t launch;
  Footprint footprint;  // of one block
};

class Race {
 public:
  virtual ~Race() = default;

  // Tells the race that blocks of a launch may leave, in order. `have_started`: whether they had
  // started before.
  virtual void release_blocks(std::span<const LeavingBlock> leavers, bool have_started) = 0;
  // Removes and returns the blocks that leave before the scheduler visits launches again.
  virtual std::vector<LeavingBlock> take_exits() = 0;
  // Returns whether all blocks that may leave have left.
  virtual bool is_over() const = 0;
  // Tells the race that blocks of a launch were placed on these SMs, in clusters of this size.
  virtual void note_placed(std::span<const int32_t> sms, int32_t cluster) = 0;
  // Returns whether the scheduler may turn to another launch than the one whose blocks it placed
  // last.
  virtual bool may_turn() { return true; }

  // Returns the SMs of the `blocks` blocks of a launch from `first_block` on. Nothing: the policy
  // chooses them; an empty span: they wait.
  virtual std::optional<std::span<const int32_t>> sms_of_next(int32_t /*launch*/,
                                                              int32_t /*first_block*/,
                                                              int32_t /*blocks*/) {
    return std::nullopt;
  }
  // Removes and returns a block on this SM that may leave; nothing: there is none.
  virtual std::optional<LeavingBlock> take_exit_from(int32_t /*sm*/) { return std::nullopt; }
};

}  // namespace tbsched

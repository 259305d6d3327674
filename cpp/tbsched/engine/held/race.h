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

  // States that blocks of a launch may leave, in order. `have_started`: whether they had started
  // before.
  virtual void release_blocks(std::span<const LeavingBlock> leavers, bool have_started) = 0;
  // Returns the blocks that leave before the scheduler visits launches again.
  virtual std::vector<LeavingBlock> next() = 0;
  // Whether all blocks that may leave have left.
  virtual bool over() const = 0;
  // States that blocks of a launch were placed on these SMs, in clusters of this size.
  virtual void placed(std::span<const int32_t> sms, int32_t cluster) = 0;
  // Whether the scheduler may turn to another launch than the one whose blocks it placed last.
  virtual bool may_turn() { return true; }

  // Returns the SMs of a launch's next blocks, if the race determines them; an empty span: they
  // wait.
  virtual std::optional<std::span<const int32_t>> where(int32_t /*launch*/, int32_t /*first_block*/,
                                                        int32_t /*blocks*/) {
    return std::nullopt;
  }
  // Removes a block from this SM that may leave, and returns it; nothing: there is none.
  virtual std::optional<LeavingBlock> take(int32_t /*sm*/) { return std::nullopt; }
};

}  // namespace tbsched

// In which order blocks leave that were told to, while others take their room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tbsched/hardware/sm/footprint.h"

namespace tbsched {

struct Leaver {
  int32_t launch;
  Footprint footprint;  // of one block
};

class Race {
 public:
  virtual ~Race() = default;

  // Blocks of a launch may leave, in their order; whether they had started before they were told.
  virtual void tell(std::span<const Leaver> leavers, bool have_started) = 0;
  // Those that leave before the scheduler looks at launches again.
  virtual std::vector<Leaver> next() = 0;
  // Whether all have left that were told to.
  virtual bool over() const = 0;
  // Blocks of a launch were placed on these SMs, in clusters of so many.
  virtual void placed(std::span<const int32_t> sms, int32_t cluster) = 0;
  // Whether the scheduler may turn to another launch than the one it placed blocks of last.
  virtual bool may_turn() { return true; }

  // Where blocks of a launch go from this one on, if the race knows; nowhere: they wait.
  virtual std::optional<std::span<const int32_t>> where(int32_t /*launch*/, int32_t /*first_block*/,
                                                        int32_t /*blocks*/) {
    return std::nullopt;
  }
  // One that was told to leave this SM does so at once; nothing: there is none.
  virtual std::optional<Leaver> take(int32_t /*sm*/) { return std::nullopt; }
};

}  // namespace tbsched

// How fast the blocks on each SM run when they share it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tbsched/sim/contention.h"

namespace tbsched {

// The needs of each launch of a sequence, as measured while it had the GPU for itself. Launches
// without an entry slow none and are not slowed.
struct Neighbours {
  std::vector<Needs> launches;
  Sharing sharing;
};

class Paces {
 public:
  // No block is resident. `sms`: of the device.
  Paces(const Neighbours& neighbours, int32_t sms);

  // Returns whether the needs of the launch are known.
  bool knows(const int32_t launch) const { return launch < static_cast<int32_t>(launches_.size()); }
  // Sets that the launch, if it has the GPU for itself, spreads `blocks` blocks at a time evenly
  // over `sms` SMs. Call it before any blocks are placed.
  void set_alone_spread(int32_t launch, int32_t blocks, int32_t sms);
  // Adds a block to an SM, or removes one.
  void add(const int32_t launch, const int32_t sm) { change_count(launch, sm, 1); }
  void remove(const int32_t launch, const int32_t sm) { change_count(launch, sm, -1); }

  // Returns whether blocks were placed or left since settle().
  bool changed() const { return changed_; }
  // Computes the paces for the blocks that are there now. A duration is that of a launch alone, so
  // it includes how much its blocks slow each other there: as many of them as fit while others wait
  // for room, then as many as are left on each SM, but not more than would be there alone.
  void settle(const std::function<bool(int32_t launch)>& placed_whole);
  // Returns the pace that settle() computed: 1 is as fast as alone.
  double pace(int32_t launch, int32_t sm) const;

 private:
  struct AloneSpread {
    int32_t blocks = 0;  // at a time when it is alone
    int32_t sms = 0;     // over which they are spread
  };

  // Adds `by` to the number of a launch's blocks on an SM.
  void change_count(int32_t launch, int32_t sm, int32_t by);
  // Returns how many times as long the launch's blocks would take as without any other block, if
  // the launch were alone, by the number of them on an SM. `sms`: the number of SMs by that number.
  std::map<int32_t, double> times_alone(int32_t launch, const std::map<int32_t, int32_t>& sms,
                                        bool placed_whole);

  Contention contention_;
  std::vector<AloneSpread> launches_;
  std::vector<SmContents> contents_;                     // by SM
  std::vector<int32_t> rows_;                            // by SM, one row for equal contents
  std::map<std::pair<int32_t, int32_t>, double> paces_;  // by launch and row
  bool changed_ = false;
};

}  // namespace tbsched

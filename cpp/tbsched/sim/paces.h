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
  Paces(const Neighbours& neighbours, int32_t sms);

  // Whether the needs of the launch are known.
  bool knows(const int32_t launch) const { return launch < static_cast<int32_t>(launches_.size()); }
  // States that the launch, if it has the GPU for itself, spreads `blocks` blocks at a time evenly
  // over `sms` SMs. Call it before any blocks are placed.
  void expect(int32_t launch, int32_t blocks, int32_t sms);
  void add(const int32_t launch, const int32_t sm) { change(launch, sm, 1); }
  void remove(const int32_t launch, const int32_t sm) { change(launch, sm, -1); }

  // Whether blocks were placed or left since settle().
  bool changed() const { return changed_; }
  // Computes the paces for the blocks that are there now. A duration is that of a launch alone, so
  // it includes how much its blocks slow each other there: as many of them as fit while others wait
  // for room, then as many as are left on each SM, but not more than would be there alone.
  void settle(const std::function<bool(int32_t launch)>& placed_whole);
  // Returns the pace that settle() computed: 1 is as fast as alone.
  double pace(int32_t launch, int32_t sm) const;

 private:
  struct AloneSpread {
    int32_t most = 0;  // blocks at a time when it is alone
    int32_t sms = 0;   // SMs over which they are spread
  };

  void change(int32_t launch, int32_t sm, int32_t by);

  std::map<int32_t, double> times_alone(int32_t launch, const std::map<int32_t, int32_t>& sms,
                                        bool placed_whole);

  Contention contention_;
  std::vector<AloneSpread> launches_;
  std::vector<Held> held_;                               // by SM
  std::vector<int32_t> rows_;                            // by SM
  std::map<std::pair<int32_t, int32_t>, double> paces_;  // by launch and row
  bool changed_ = false;
};

}  // namespace tbsched

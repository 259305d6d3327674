// How fast the blocks on each SM go on, beside those that are there with them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tbsched/sim/contention.h"

namespace tbsched {

// What is known of the launches of a sequence, by launch: as measured of one that had the GPU for
// itself. Further launches slow nobody, and nobody slows them.
struct Neighbours {
  std::vector<Needs> launches;
  Sharing sharing;
};

class Paces {
 public:
  Paces(const Neighbours& neighbours, int32_t sms);

  // Whether anything is known of it.
  bool knows(const int32_t launch) const { return launch < static_cast<int32_t>(launches_.size()); }
  // Before any blocks come: a launch that has the GPU for itself spreads so many of its blocks at a
  // time evenly over so many SMs.
  void expect(int32_t launch, int32_t blocks, int32_t sms);
  void come(const int32_t launch, const int32_t sm) { change(launch, sm, 1); }
  void leave(const int32_t launch, const int32_t sm) { change(launch, sm, -1); }

  // Whether any came or left since settle().
  bool changed() const { return changed_; }
  // A duration is that of a launch alone. It counts what blocks of the launch do to each other
  // there: as many of them as fit while others wait for room, then as many as are left on each SM,
  // but not more than would be there alone.
  void settle(const std::function<bool(int32_t launch)>& placed_whole);
  // As settle() found it: 1 is as fast as alone.
  double pace(int32_t launch, int32_t sm) const;

 private:
  struct Launched {
    int32_t most = 0;  // blocks at a time, alone
    int32_t sms = 0;   // for them
  };

  void change(int32_t launch, int32_t sm, int32_t by);

  std::map<int32_t, double> times_alone(int32_t launch, const std::map<int32_t, int32_t>& sms,
                                        bool placed_whole);

  Contention contention_;
  std::vector<Launched> launches_;
  std::vector<Held> held_;                               // by SM
  std::vector<int32_t> rows_;                            // by SM
  std::map<std::pair<int32_t, int32_t>, double> paces_;  // by launch and row
  bool changed_ = false;
};

}  // namespace tbsched

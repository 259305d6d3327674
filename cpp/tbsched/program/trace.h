// Where blocks went. Written by the predictor and the launcher.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tbsched/program/refusal.h"

namespace tbsched {

inline constexpr int32_t kNotPlaced = -1;

struct LaunchTrace {
  std::vector<int32_t> smid;  // per block, kNotPlaced: not before the next event
  std::vector<int32_t>
      final_smid;  // per block, after all events; empty in a prediction that equals smid
  Refusal limiter = Refusal::none;  // what refused the blocks that were not placed
  std::vector<int32_t> warp_slots;  // per block and warp, row-major; empty unless requested
};

// What only a run on hardware provides, in addition to the SMs. Times are nanoseconds of the
// device's global timer.
struct MeasuredLaunch {
  LaunchTrace placement;
  std::vector<uint64_t> start_ns;  // per block, 0: never started
  std::vector<uint64_t> end_ns;
  int64_t issued_ns = 0;  // time of the host's launch call, from the first one on
};

}  // namespace tbsched

// A recorded sequence whose races end as they did.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/trace.h"

namespace tbsched {

// Where the blocks of a launch were.
struct SeenLaunch {
  std::span<const int32_t> smid;        // before the next event
  std::span<const int32_t> final_smid;  // after all events
};

// As predict(), with each block that finds room while others leave where it was seen, if it could
// go there. In which order blocks left an SM nobody saw: several are tried.
std::vector<LaunchTrace> predict_as_recorded(const Model& model, const Sequence& sequence,
                                             InitialState state, std::span<const SeenLaunch> seen);

}  // namespace tbsched

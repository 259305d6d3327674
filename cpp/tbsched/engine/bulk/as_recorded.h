// Predictions in which races end as they were recorded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/trace.h"

namespace tbsched {

// The recorded SMs of a launch's blocks.
struct SeenLaunch {
  std::span<const int32_t> smid;        // before the next event
  std::span<const int32_t> final_smid;  // after all events
};

// Returns a trace per launch: where its blocks go, as predict() does, but each block that finds
// room while others leave goes where it was recorded, if it can. The order in which blocks left an
// SM is not recorded: several orders are tried, first that of predict(), where all blocks of a
// launch leave at once.
std::vector<LaunchTrace> predict_as_recorded(const Model& model, const Sequence& sequence,
                                             InitialState state, std::span<const SeenLaunch> seen);

}  // namespace tbsched

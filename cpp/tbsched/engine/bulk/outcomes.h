// What can come of a sequence in which blocks find room while others leave.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/trace.h"

namespace tbsched {

struct Outcome {
  std::vector<LaunchTrace> launches;
  int32_t races = 0;  // of how many it came
};

// Of so many races, the outcomes that differ in the number of blocks that a launch has on an SM
// before the next event; the likeliest first. A sequence without a race has one.
std::vector<Outcome> outcomes(const Model& model, const Sequence& sequence, InitialState state,
                              int32_t races);

}  // namespace tbsched

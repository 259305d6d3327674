// The possible outcomes of a sequence in which blocks find room while others leave.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/trace.h"
#include "tbsched/sim/deadline.h"

namespace tbsched {

struct Outcome {
  std::vector<LaunchTrace> launches;
  int32_t races = 0;  // number of races that ended in it
  bool cut = false;   // the deadline came before all races were simulated: there may be others
};

// Simulates `races` races, and returns the outcomes that differ in how many blocks a launch has on
// an SM before the next event, the most frequent first. A sequence without a race has one outcome.
// The first race is simulated to its end, whatever the deadline; those after it are the first ones
// that end before it.
std::vector<Outcome> outcomes(const Model& model, const Sequence& sequence, InitialState state,
                              int32_t races, const Deadline& deadline = {});

}  // namespace tbsched

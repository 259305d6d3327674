// A history that a proof could not rule out: to know, it is played.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/engine/together/gpcs/each_gpc.h"
#include "tbsched/engine/together/question.h"
#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"

namespace tbsched {

struct Doubtful {
  InitialState state;
  std::vector<int32_t> order;  // in which launches come before any block leaves
  std::vector<Arrival> then;

  size_t length() const;  // in steps
};

// Which block is which says only a play. `events`: of each launch.
std::vector<Step> steps_of(const Model& model, const std::vector<Event>& events,
                           const Doubtful& doubtful);

}  // namespace tbsched

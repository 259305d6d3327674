// A history that a proof could not rule out: to know, it is played.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/outcomes/room_proof.h"
#include "tbsched/coresidency/question.h"
#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"

namespace tbsched {

struct Candidate {
  InitialState state;
  std::vector<Step> steps;

  bool operator==(const Candidate&) const = default;
};

// `order`: launches that come before any block leaves. Which block is which says only a play, and
// whether those that wait enter where others left. Where they are clusters there are a few ways to
// help them, maybe the same. `events`, `in_group`: of each launch.
std::vector<std::vector<Step>> steps_of(const Model& model, const Demands& demands,
                                        const std::vector<Event>& events,
                                        const std::vector<bool>& in_group,
                                        const InitialState& state,
                                        const std::vector<int32_t>& order,
                                        const std::vector<HistoryStep>& then);

}  // namespace tbsched

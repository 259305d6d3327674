// A history that a proof could not rule out, to be played.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/outcomes/room_proof.h"
#include "tbsched/coresidency/question.h"
#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"

namespace tbsched {

// Steps from an initial state.
struct Candidate {
  InitialState state;
  std::vector<Step> steps;

  bool operator==(const Candidate&) const = default;
};

// Returns sequences of steps that try to realise a history. `order`: launches that arrive before
// any block leaves; `then`: the history after them; `events`, `in_group`: by launch. Only a play
// shows which block is which, and whether waiting blocks enter where others left. For clusters
// there are several attempts to help them, maybe with equal results.
std::vector<std::vector<Step>> steps_of(const Model& model, const Demands& demands,
                                        const std::vector<Event>& events,
                                        const std::vector<bool>& in_group,
                                        const InitialState& state,
                                        const std::vector<int32_t>& order,
                                        const std::vector<HistoryStep>& then);

}  // namespace tbsched

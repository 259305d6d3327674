// The shortest way to strand a block of a group: orders of arrival, outsiders that leave, and
// states, one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tbsched/engine/together/question.h"
#include "tbsched/policy/model.h"

namespace tbsched {

struct Stranding {
  std::vector<Step> steps;
  InitialState state{};
  int32_t launch = -1;
  Refusal cause = Refusal::none;
  int32_t behind = -1;
};

struct WitnessSearch {
  std::optional<Stranding> found;
  bool complete = false;  // every order of arrival was played: what was not found is not there
  int64_t plays = 0;
};

// Outsiders leave whole here, so where there are some the search is never complete.
WitnessSearch strand(const Model& model, const TogetherQuestion& question,
                     const std::vector<int32_t>& group, int64_t most_plays);

}  // namespace tbsched

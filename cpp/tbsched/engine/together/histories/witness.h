// The shortest way to strand a block of a group: orders of arrival, blocks of outsiders that leave,
// and states, one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tbsched/engine/together/demands.h"
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
  bool complete = false;  // all was played: what was not found is not there
  int64_t plays = 0;
  bool gave_up_looking = false;  // GPC by GPC
};

// What may be stranded only by what leaves is played with all sets of blocks that can leave. Of an
// outsider of many blocks only some sets are: then the search is not complete.
WitnessSearch strand(const Model& model, const TogetherQuestion& question, const Demands& demands,
                     const std::vector<int32_t>& group, int64_t most_plays,
                     const std::function<void()>& interrupted);

}  // namespace tbsched

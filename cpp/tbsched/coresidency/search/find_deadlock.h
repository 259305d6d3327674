// The search for a shortest history that strands a block of a group, over orders of arrival, blocks
// of background kernels that leave, and states.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tbsched/coresidency/budget.h"
#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/outcomes/outcome_program.h"
#include "tbsched/coresidency/question.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// A history that strands a block.
struct Stranding {
  std::vector<Step> steps;
  InitialState state{};
  int32_t launch = -1;  // the last one, which waits
  Refusal cause = Refusal::none;
  int32_t behind = -1;  // the launch that holds it up, or -1
};

struct WitnessSearch {
  std::optional<Stranding> stranding;
  bool complete = false;  // everything was played: there is no other witness
  int64_t plays = 0;
};

// Searches for a shortest history that strands a block of a group. Histories in which blocks leave
// are played with all sets of blocks that can leave. For a background kernel of many blocks only
// some sets are played: then the search is not complete.
WitnessSearch find_deadlock(const Model& model, const TogetherQuestion& question,
                            const Demands& demands, const std::vector<int32_t>& group,
                            int64_t max_plays, const Solver& solver, Deadline deadline,
                            const std::function<void()>& interrupted);

}  // namespace tbsched

// How many blocks of a launch fit while others are resident, and what refuses one more on each SM.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/refusal.h"

namespace tbsched {

struct FreeRoom {
  int64_t blocks = 0;             // that fit, in whole clusters
  std::vector<int32_t> by_sm;     // the blocks among these that fit each SM
  std::vector<Refusal> refusals;  // per SM; none: it has room, but no cluster fits
  std::vector<Refusals> all;      // per SM: refusals[sm], and what refuses one more besides
};

// Returns how many blocks of a launch fit beside others. `beside` arrive in this order and stay;
// their streams are ignored. So is launch.blocks: as many blocks are tried as fit, cooperative or
// not. Throws std::invalid_argument where a launch of `beside` is not resident whole.
FreeRoom capacity(const Model& model, std::span<const Launch> beside, const Launch& launch,
                  InitialState state);

}  // namespace tbsched

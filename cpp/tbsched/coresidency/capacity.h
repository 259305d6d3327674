// How many blocks of a launch fit beside others, and what refuses one more on each SM.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/refusal.h"

namespace tbsched {

struct FreeRoom {
  int64_t blocks = 0;             // that fit, whole clusters
  std::vector<int32_t> by_sm;     // the same on each SM
  std::vector<Refusal> refusals;  // per SM; none: it has room, but no cluster fits
};

// `beside` arrive in this order and stay; streams do not count. Nor does launch.blocks: as many as
// fit are tried, cooperative or not. Throws std::invalid_argument where one of those beside is not
// resident whole.
FreeRoom capacity(const Model& model, std::span<const Launch> beside, const Launch& launch,
                  InitialState state);

}  // namespace tbsched

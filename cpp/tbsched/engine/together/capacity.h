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
  std::vector<int32_t> smid;      // of each block that fits, whole clusters
  std::vector<Refusal> refusals;  // per SM; none: it has room, but no cluster fits
};

// `beside` arrive in this order, stay, and take their streams for granted. `launch.blocks` is the
// most to place, however few are resident at once: a cooperative launch is not refused. Throws
// std::invalid_argument where one of those beside is not resident whole.
FreeRoom capacity(const Model& model, std::span<const Launch> beside, const Launch& launch,
                  InitialState state);

}  // namespace tbsched

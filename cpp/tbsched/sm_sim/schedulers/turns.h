// Turns among warps.
#pragma once

#include <bit>

#include "tbsched/sm_sim/schedulers/scheduler.h"

namespace tbsched::sm_sim {

// Returns the first of `candidates` after `last`, cyclically; `candidates` must not be empty.
inline int32_t next_in_turn(const Warps candidates, const int32_t last) {
  const Warps behind = last >= 63 ? 0 : candidates & ~Warps{0} << (last + 1);
  return std::countr_zero(behind != 0 ? behind : candidates);
}

}  // namespace tbsched::sm_sim

// How many blocks of a launch fit now, without placing any.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/gpu/gpu_state.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

// Returns, by SM, how many blocks fit of a launch that has more of them. Valid only if each block
// leaves room for exactly one less (rooms.h).
std::vector<int32_t> filled(const GpuState& gpu, const Demand& demand);

}  // namespace tbsched

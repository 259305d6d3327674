// How many blocks of a launch fit now, without placing any.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/gpu/gpu_state.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

// Returns, by SM, how many blocks of a launch fit, if it has enough of them. Valid only if each
// block leaves room for exactly one less (room_falls_by_one in rooms.h).
std::vector<int32_t> blocks_that_fit_by_sm(const GpuState& gpu, const Demand& demand);

}  // namespace tbsched

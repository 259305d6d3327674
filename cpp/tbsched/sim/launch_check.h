// Checks that a device can ever run a launch.
#pragma once

#include <cstdint>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"

namespace tbsched {

// Refuses a launch that the device can never run: throws std::invalid_argument naming the launch by
// its index. Does not check that a block fits an empty SM.
void check(const Launch& launch, int32_t index, const Model& model);

}  // namespace tbsched

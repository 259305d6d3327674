// What a launch must be so that a device can ever run it.
#pragma once

#include <cstdint>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"

namespace tbsched {

// Throws std::invalid_argument naming the launch by its number. That a block fits an empty SM is
// not part of it.
void check(const Launch& launch, int32_t index, const Model& model);

}  // namespace tbsched

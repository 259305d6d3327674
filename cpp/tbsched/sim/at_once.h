// How many blocks of a launch can be on a GPU at once.
#pragma once

#include <cstdint>

#include "tbsched/hardware/gpu/gpu_state.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"

namespace tbsched {

// Returns how many of `blocks` blocks fit on the GPU in the state `now`, which it does not change.
int32_t count_fitting(const Model& model, const Demand& demand, int32_t blocks,
                      const GpuState& now);

// Returns how many blocks of a cooperative launch the driver allows on an idle GPU at once, or
// `enough` if that many or more. The driver counts with the least shared memory that the carveout
// allows, and places the clusters of each part of a partition separately. Source: traces
// partitions/cooperative-h100, partitions/cooperative-h200.
int32_t allowed_at_once(const Model& model, const Launch& launch, const Demand& demand,
                        int32_t enough);

}  // namespace tbsched

// The demand of one block of a launch on an SM, in the units that the hardware allocates.
#pragma once

#include <cstdint>

#include "tbsched/hardware/sm/configuration_demand.h"
#include "tbsched/hardware/sm_set.h"
#include "tbsched/program/event.h"

namespace tbsched {

struct Device;

struct Demand {
  int32_t cluster = 1;  // blocks that must be placed together
  int32_t warps = 1;
  int32_t registers_per_warp = 0;
  int32_t shared_memory = 0;  // bytes, the runtime's reserve included
  int32_t local_memory = 0;   // bytes per thread
  int32_t blocks_per_sm = 0;  // the most that fit an empty SM in its largest configuration
  int32_t blocks_at_minimum =
      0;  // the most that fit an empty SM in the smallest configuration that they may enter
  ConfigurationDemand configuration;
  const SmSet* partition = nullptr;  // SMs that it may use; nullptr: all

  bool at_once = false;  // all blocks of the launch are placed at once, or none

  // Returns whether the SM is in the partition of the launch.
  bool may_use(const int32_t sm) const { return partition == nullptr || partition->has(sm); }
  bool operator==(const Demand&) const = default;
};

// Returns the demand of a block of a launch that may use all SMs; the caller sets the partition.
Demand demand_of(const Launch& launch, const Device& device);

}  // namespace tbsched

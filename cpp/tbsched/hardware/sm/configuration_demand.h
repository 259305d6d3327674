// The shared-memory configurations of an SM that a block may enter, and the one that it sets on an
// idle SM.
#pragma once

#include <cstdint>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"

namespace tbsched {

// Each value is a size that the device has. The target lies within the bounds and holds a block.
struct ConfigurationDemand {
  int32_t minimum = 0;  // bytes; the least that a block may enter
  int32_t maximum = 0;  // bytes; the most that a block may enter
  int32_t target = 0;   // bytes; set on an idle SM

  // Returns whether a block may enter an SM that is configured to this number of bytes.
  bool suits(const int32_t configured) const {
    return minimum <= configured && configured <= maximum;
  }
  bool operator==(const ConfigurationDemand&) const = default;
};

// Returns the configurations that blocks of a launch may enter, and the one that they set.
// `shared_memory`: bytes per block with the reserve; `blocks_per_sm`: the most that fit an SM.
ConfigurationDemand configuration_demand(const Launch& launch, const DeviceSpec& spec,
                                         int32_t shared_memory, int32_t blocks_per_sm);

}  // namespace tbsched

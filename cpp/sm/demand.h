// What one block of a launch asks of an SM, in the units that the hardware allocates.
#pragma once

#include <cstdint>

#include "model/device_spec.h"
#include "model/sequence.h"

namespace tbsched {

// The shared-memory configurations of an SM (bytes) that a block may enter, and the one that it
// sets on an idle TPC.
struct ConfigurationDemand {
  int32_t minimum = 0;
  int32_t maximum = 0;
  int32_t target = 0;
};

struct Demand {
  int32_t warps = 1;
  int32_t registers_per_warp = 0;
  int32_t shared_memory = 0;  // bytes, the runtime's reserve included
  int32_t local_memory = 0;   // bytes per thread
  ConfigurationDemand configuration;
};

Demand demand_of(const Launch& launch, const DeviceSpec& spec);

constexpr int32_t ceil_div(const int32_t value, const int32_t unit) {
  return (value + unit - 1) / unit;
}
constexpr int32_t round_up(const int32_t value, const int32_t unit) {
  return ceil_div(value, unit) * unit;
}

}  // namespace tbsched

// The local-memory configuration of the whole GPU, in bytes per thread. It grows only while the GPU
// is idle, and never shrinks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/hardware/sm/units.h"

namespace tbsched {

class LocalMemoryConfiguration {
 public:
  explicit LocalMemoryConfiguration(const DeviceSpec& spec)
      : acts_(spec.mechanisms.local_memory_configuration),
        unit_(spec.local_memory_unit),
        bytes_(spec.local_memory_initial) {}

  // Returns whether blocks of this demand need more bytes per thread than are configured.
  bool grows_for(const Demand& demand) const { return acts_ && demand.local_memory > bytes_; }
  // Returns whether blocks of this demand can be placed now.
  bool admits(const Demand& demand, const bool gpu_idle) const {
    return gpu_idle || !grows_for(demand);
  }
  // Grows, if necessary, for blocks of this demand.
  void commit(const Demand& demand) {
    bytes_ = std::max(bytes_, round_up(demand.local_memory, unit_));
  }

 private:
  bool acts_;      // whether the device has this mechanism
  int32_t unit_;   // bytes per thread in which it grows
  int32_t bytes_;  // per thread
};

}  // namespace tbsched

// Mechanism 3: shared memory and L1 cache share one memory, divided per TPC. The first block on an
// idle TPC sets the division for both SMs; it stays until the TPC is idle again.
#pragma once

#include <cstdint>
#include <vector>

#include "model/device_spec.h"
#include "sm/demand.h"

namespace tbsched {

// The configurations that a launch asks for, given how many of its blocks an SM holds at most.
ConfigurationDemand configuration_demand(const Launch& launch, const DeviceSpec& spec,
                                         int32_t shared_memory, int32_t blocks_per_sm);

class SharedMemoryConfiguration {
 public:
  explicit SharedMemoryConfiguration(const DeviceSpec& spec);

  // The configuration that the SMs of this TPC would have for a block of this demand.
  int32_t configured(int32_t tpc, const Demand& demand) const;
  bool admits(int32_t tpc, const Demand& demand) const;

  void commit(int32_t tpc, const Demand& demand);
  void release(int32_t tpc);

 private:
  struct Tpc {
    int32_t configured = 0;
    int32_t resident_blocks = 0;
  };
  bool acts_;
  int32_t largest_;
  std::vector<Tpc> tpcs_;
};

}  // namespace tbsched

#include "sm/shared_memory_configuration.h"

#include <algorithm>
#include <numeric>

namespace tbsched {

SharedMemoryConfiguration::SharedMemoryConfiguration(const DeviceSpec& spec)
    : acts_(spec.mechanisms.shared_memory_configuration),
      largest_(spec.shared_memory_configurations.back()),
      unit_of_sm_(spec.topology.tpc_of_sm) {
  if (!spec.mechanisms.configuration_per_tpc) std::iota(unit_of_sm_.begin(), unit_of_sm_.end(), 0);
  units_.resize(std::ranges::max(unit_of_sm_) + 1);
}

int32_t SharedMemoryConfiguration::configured(const int32_t sm, const Demand& demand) const {
  if (!acts_) return largest_;
  const Unit& unit = units_[unit_of_sm_[sm]];
  return unit.resident_blocks == 0 ? demand.configuration.target : unit.configured;
}

bool SharedMemoryConfiguration::admits(const int32_t sm, const Demand& demand) const {
  if (open(sm)) return true;
  const Unit& unit = units_[unit_of_sm_[sm]];
  return demand.configuration.minimum <= unit.configured &&
         unit.configured <= demand.configuration.maximum;
}

void SharedMemoryConfiguration::commit(const int32_t sm, const Demand& demand,
                                       const int32_t blocks) {
  Unit& unit = units_[unit_of_sm_[sm]];
  unit.configured = configured(sm, demand);
  unit.resident_blocks += blocks;
}

void SharedMemoryConfiguration::release(const int32_t sm, const int32_t blocks) {
  units_[unit_of_sm_[sm]].resident_blocks -= blocks;
}

}  // namespace tbsched

#include "tbsched/hardware/gpu/shared_memory_configuration.h"

namespace tbsched {

SharedMemoryConfiguration::SharedMemoryConfiguration(const Device& device)
    : acts_(device.spec.mechanisms.shared_memory_configuration),
      largest_(device.spec.shared_memory_configurations.back()),
      unit_of_sm_(device.configuration_of_sm),
      units_(device.sms_of_configuration.size()) {}

int32_t SharedMemoryConfiguration::configured(const int32_t sm, const Demand& demand) const {
  if (!acts_) return largest_;
  const Unit& unit = units_[unit_of_sm_[sm]];
  const bool stays = unit.resident_blocks > 0 || (keeps_ && keeps(unit) && suits(unit, demand));
  return stays ? unit.configured : demand.configuration.target;
}

int32_t SharedMemoryConfiguration::configured(const int32_t sm) const {
  if (!acts_) return largest_;
  return open(sm) ? 0 : units_[unit_of_sm_[sm]].configured;
}

bool SharedMemoryConfiguration::admits(const int32_t sm, const Demand& demand) const {
  if (open(sm)) return true;
  return suits(units_[unit_of_sm_[sm]], demand);
}

bool SharedMemoryConfiguration::suits(const Unit& unit, const Demand& demand) {
  return demand.configuration.minimum <= unit.configured &&
         unit.configured <= demand.configuration.maximum;
}

int32_t SharedMemoryConfiguration::commit(const int32_t sm, const Demand& demand,
                                          const int32_t blocks) {
  Unit& unit = units_[unit_of_sm_[sm]];
  unit.configured = configured(sm, demand);
  unit.resident_blocks += blocks;
  return unit.configured;
}

void SharedMemoryConfiguration::release(const int32_t sm, const int32_t blocks) {
  Unit& unit = units_[unit_of_sm_[sm]];
  unit.resident_blocks -= blocks;
  unit.left = moment_;
  keeps_ = acts_ && moment_ > 0;
}

void SharedMemoryConfiguration::settle() {
  ++moment_;
  keeps_ = false;
}

}  // namespace tbsched

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
  if (unit.resident_blocks > 0) return unit.configured;
  if (keeps(sm) && demand.configuration.suits(unit.configured)) return unit.configured;
  return demand.configuration.target;
}

int32_t SharedMemoryConfiguration::configured(const int32_t sm) const {
  if (!acts_) return largest_;
  return open(sm) ? 0 : units_[unit_of_sm_[sm]].configured;
}

int32_t SharedMemoryConfiguration::commit(const int32_t sm, const Demand& demand,
                                          const int32_t blocks) {
  Unit& unit = units_[unit_of_sm_[sm]];
  unit.configured = configured(sm, demand);
  unit.resident_blocks += blocks;
  return unit.configured;
}

void SharedMemoryConfiguration::note_exit(const int32_t unit) {
  last_exit_[unit] = moment_;
  keeps_ = acts_;
}

void SharedMemoryConfiguration::settle() {
  ++moment_;
  last_exit_.resize(units_.size());
  keeps_ = false;
}

}  // namespace tbsched

#include "sm/shared_memory_configuration.h"

#include <algorithm>

namespace tbsched {
namespace {

int32_t smallest_that_holds(const DeviceSpec& spec, const int64_t bytes) {
  const auto& sizes = spec.shared_memory_configurations;
  const auto found = std::lower_bound(sizes.begin(), sizes.end(), bytes);
  return found == sizes.end() ? sizes.back() : *found;
}

}  // namespace

ConfigurationDemand configuration_demand(const Launch& launch, const DeviceSpec& spec,
                                         const int32_t shared_memory, const int32_t blocks_per_sm) {
  const int32_t largest = spec.shared_memory_configurations.back();
  const int32_t one_block = smallest_that_holds(spec, shared_memory);
  const int32_t all_blocks =
      smallest_that_holds(spec, static_cast<int64_t>(shared_memory) * blocks_per_sm);
  if (!launch.carveout) return {all_blocks, largest, all_blocks};
  const int32_t asked = std::max(
      one_block, smallest_that_holds(spec, static_cast<int64_t>(largest) * *launch.carveout / 100));
  const bool bounded = spec.mechanisms.explicit_carveout_is_upper_bound;
  return {std::min(all_blocks, asked), bounded ? asked : largest, asked};
}

SharedMemoryConfiguration::SharedMemoryConfiguration(const DeviceSpec& spec)
    : acts_(spec.mechanisms.shared_memory_configuration),
      largest_(spec.shared_memory_configurations.back()),
      tpcs_(*std::max_element(spec.topology.tpc_of_sm.begin(), spec.topology.tpc_of_sm.end()) + 1) {
}

int32_t SharedMemoryConfiguration::configured(const int32_t tpc, const Demand& demand) const {
  if (!acts_) return largest_;
  return tpcs_[tpc].resident_blocks == 0 ? demand.configuration.target : tpcs_[tpc].configured;
}

bool SharedMemoryConfiguration::admits(const int32_t tpc, const Demand& demand) const {
  if (!acts_ || tpcs_[tpc].resident_blocks == 0) return true;
  const int32_t configured = tpcs_[tpc].configured;
  return demand.configuration.minimum <= configured && configured <= demand.configuration.maximum;
}

void SharedMemoryConfiguration::commit(const int32_t tpc, const Demand& demand) {
  tpcs_[tpc].configured = configured(tpc, demand);
  ++tpcs_[tpc].resident_blocks;
}

void SharedMemoryConfiguration::release(const int32_t tpc) { --tpcs_[tpc].resident_blocks; }

}  // namespace tbsched

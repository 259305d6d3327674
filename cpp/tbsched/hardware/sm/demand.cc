#include "tbsched/hardware/sm/demand.h"

#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/sm/units.h"

namespace tbsched {

Demand demand_of(const Launch& launch, const Device& device) {
  const DeviceSpec& spec = device.spec;
  const int32_t largest = spec.shared_memory_configurations.back();
  Demand demand{
      .cluster = launch.cluster,
      .warps = ceil_div(launch.threads, kWarpThreads),
      .registers_per_warp = round_up(launch.registers * kWarpThreads, spec.register_unit),
      .shared_memory = round_up(launch.shared_memory, spec.shared_memory_unit) +
                       (launch.has_runtime ? spec.shared_memory_reserve : 0),
      .local_memory = launch.local_memory,
      .blocks_per_sm = 0,
      .blocks_at_minimum = 0,
      .configuration = {largest, largest, largest},
      .at_once = launch.cooperative,
  };
  Demand single = demand;
  single.cluster = 1;
  demand.blocks_per_sm = device.empty_sm.room(spec, single, largest).blocks;
  demand.configuration =
      configuration_demand(launch, spec, demand.shared_memory, demand.blocks_per_sm);
  demand.blocks_at_minimum =
      device.empty_sm.room(spec, single, demand.configuration.minimum).blocks;
  return demand;
}

}  // namespace tbsched

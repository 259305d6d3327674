#include "tbsched/sim/at_once.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "tbsched/hardware/gpu/filled.h"
#include "tbsched/hardware/gpu/partitions.h"
#include "tbsched/hardware/gpu/rooms.h"

namespace tbsched {

int32_t count_fitting(const Model& model, const Demand& demand, const int32_t blocks,
                      const GpuState& now) {
  // Then the rooms add up, and no block need be placed.
  if (room_falls_by_one(now.spec())) {
    const std::vector<int32_t> by_sm = blocks_that_fit_by_sm(now, demand);
    return std::min(blocks, std::accumulate(by_sm.begin(), by_sm.end(), 0));
  }
  GpuState gpu(now);
  const int64_t max_blocks = int64_t{gpu.spec().sms} * demand.blocks_per_sm;
  std::vector<int32_t> sms(static_cast<size_t>(std::min<int64_t>(blocks, max_blocks)));
  Rooms rooms(model.device());
  std::vector<Footprint> footprints;
  const Commit commit(gpu, demand, false, footprints);
  const auto policy = model.start(model.states().front());
  return static_cast<int32_t>(policy->place(demand, gpu, rooms, commit, sms));
}

int32_t allowed_at_once(const Model& model, const Launch& launch, const Demand& demand,
                        const int32_t enough) {
  const DeviceSpec& spec = model.device().spec;
  const GpuState idle(model.device());
  Demand counted = demand;
  counted.configuration.maximum = counted.configuration.target = demand.configuration.minimum;
  const int32_t allowed_in_all = count_fitting(model, counted, enough, idle);
  if (!launch.partition || launch.cluster <= spec.sms_per_tpc) return allowed_in_all;
  const auto parts = parts_of(*launch.partition, spec);
  if (!parts || parts->size() == 1) return allowed_in_all;
  int32_t allowed = 0;
  for (const SmSet& part : *parts) {
    if (allowed >= allowed_in_all) break;
    counted.partition = &part;
    allowed += count_fitting(model, counted, allowed_in_all, idle);
  }
  return std::min(allowed, allowed_in_all);
}

}  // namespace tbsched

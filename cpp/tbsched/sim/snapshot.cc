#include "tbsched/sim/snapshot.h"

#include <utility>

namespace tbsched {

Snapshot snapshot_of(const BlockScheduler& scheduler, const int32_t launches,
                     std::vector<ResidentBlocks> blocks) {
  const GpuState& gpu = scheduler.gpu();
  Snapshot found;
  found.blocks = std::move(blocks);
  for (const auto& [launch, footprint] : found.blocks) {
    for (const auto& [begin, end] : gpu.shared_memory_of(footprint)) {
      found.pieces.push_back({launch, footprint.sm, begin, end});
    }
  }
  for (int32_t sm = 0; sm < gpu.spec().sms; ++sm) {
    found.configured.push_back(gpu.configured(sm));
    found.turns.push_back(gpu.turn(sm));
  }
  for (int32_t launch = 0; launch < launches; ++launch) {
    found.demands.push_back(scheduler.demand(launch));
    found.demands.back().partition = nullptr;  // the snapshot may outlive it
  }
  return found;
}

}  // namespace tbsched

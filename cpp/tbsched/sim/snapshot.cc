#include "tbsched/sim/snapshot.h"

#include <utility>

namespace tbsched {

Snapshot snapshot_of(const BlockScheduler& scheduler, const int32_t launches,
                     std::vector<ResidentBlocks> blocks) {
  const GpuState& gpu = scheduler.gpu();
  Snapshot snapshot;
  snapshot.blocks = std::move(blocks);
  for (const auto& [launch, footprint] : snapshot.blocks) {
    for (const auto& [begin, end] : gpu.shared_memory_of(footprint)) {
      snapshot.pieces.push_back({launch, footprint.sm, begin, end});
    }
  }
  for (int32_t sm = 0; sm < gpu.spec().sms; ++sm) {
    snapshot.configured.push_back(gpu.configured(sm));
    snapshot.turns.push_back(gpu.turn(sm));
  }
  for (int32_t launch = 0; launch < launches; ++launch) {
    snapshot.demands.push_back(scheduler.demand(launch));
    snapshot.demands.back().partition = nullptr;  // the snapshot may outlive it
  }
  return snapshot;
}

}  // namespace tbsched

#include "sm/sm_state.h"

#include <algorithm>

namespace tbsched {

SmState::SmState(const DeviceSpec& spec)
    : free_slots_(spec.blocks_per_sm),
      free_cluster_slots_(spec.cluster_blocks_per_sm),
      processing_blocks_(spec),
      shared_memory_(spec.mechanisms.shared_memory) {}

Room SmState::room(const Demand& demand, const int32_t configured) const {
  Room tightest = processing_blocks_.room(demand);
  const Room others[] = {
      {demand.cluster > 1 ? std::min(free_slots_, free_cluster_slots_) : free_slots_,
       Refusal::slots},
      {shared_memory_.capacity(demand.shared_memory, configured), Refusal::shared_memory},
  };
  for (const Room& room : others) {
    if (room.blocks < tightest.blocks) tightest = room;
  }
  return tightest;
}

void SmState::commit(const Demand& demand, const int32_t configured, Footprint& footprint) {
  free_slots_ -= footprint.blocks;
  if (demand.cluster > 1) free_cluster_slots_ -= footprint.blocks;
  processing_blocks_.commit(demand, footprint);
  shared_memory_.commit(footprint.owner, demand.shared_memory, footprint.blocks, configured);
}

void SmState::release(const Demand& demand, const Footprint& footprint) {
  free_slots_ += footprint.blocks;
  if (demand.cluster > 1) free_cluster_slots_ += footprint.blocks;
  processing_blocks_.release(demand, footprint);
  shared_memory_.release(footprint.owner, demand.shared_memory, footprint.blocks);
}

}  // namespace tbsched

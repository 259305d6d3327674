#include "tbsched/hardware/sm/sm_state.h"

#include <algorithm>

namespace tbsched {
namespace {

// Returns the number of block slots, at most one for each warp.
uint8_t usable(const int32_t slots) {
  return static_cast<uint8_t>(std::min(slots, kMaxWarpsPerSm));
}

}  // namespace

SmState::SmState(const DeviceSpec& spec)
    : processing_blocks_(spec),
      free_slots_(usable(spec.blocks_per_sm)),
      free_cluster_slots_(usable(spec.cluster_blocks_per_sm)) {}

Room SmState::room(const DeviceSpec& spec, const Demand& demand, const int32_t configured) const {
  Room tightest = processing_blocks_.room(spec, demand);
  const Room others[] = {
      {demand.cluster > 1 ? std::min(free_slots_, free_cluster_slots_) : free_slots_,
       Refusal::slots},
      {shared_memory_.capacity(spec, demand.shared_memory, configured), Refusal::shared_memory},
  };
  for (const Room& room : others) {
    if (room.blocks < tightest.blocks) tightest = room;
  }
  return tightest;
}

Refusals SmState::limiters(const DeviceSpec& spec, const Demand& demand, const int32_t configured,
                           const int32_t blocks) const {
  const Room rooms[] = {
      {demand.cluster > 1 ? std::min(free_slots_, free_cluster_slots_) : free_slots_,
       Refusal::slots},
      {processing_blocks_.room_of_warps(spec, demand), Refusal::warps},
      {processing_blocks_.room_of_registers(spec, demand), Refusal::registers},
      {shared_memory_.capacity(spec, demand.shared_memory, configured), Refusal::shared_memory},
  };
  Refusals limiters = 0;
  for (const Room& room : rooms) {
    if (room.blocks <= blocks) limiters |= set_of(room.limiter);
  }
  return limiters;
}

void SmState::commit(const DeviceSpec& spec, const Demand& demand, const int32_t configured,
                     Footprint& footprint) {
  free_slots_ -= footprint.blocks;
  if (demand.cluster > 1) free_cluster_slots_ -= footprint.blocks;
  processing_blocks_.commit(spec, demand, footprint);
  shared_memory_.commit(spec, footprint.owner, demand.shared_memory, footprint.blocks, configured);
}

void SmState::release(const Demand& demand, const Footprint& footprint) {
  free_slots_ += footprint.blocks;
  if (demand.cluster > 1) free_cluster_slots_ += footprint.blocks;
  processing_blocks_.release(demand, footprint);
  shared_memory_.release(footprint.owner, demand.shared_memory, footprint.blocks);
}

}  // namespace tbsched

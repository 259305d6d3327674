#include "sm/gpu_state.h"

#include <utility>

namespace tbsched {

GpuState::GpuState(const DeviceSpec& spec)
    : spec_(spec),
      sms_(spec.topology.sms(), SmState(spec)),
      configuration_(spec),
      local_memory_(spec) {}

Room GpuState::room(const int32_t sm, const Demand& demand) const {
  const int32_t tpc = spec_.topology.tpc_of_sm[sm];
  if (!configuration_.admits(tpc, demand)) return {0, Refusal::configuration};
  return sms_[sm].room(demand, configuration_.configured(tpc, demand));
}

Footprint GpuState::commit(const int32_t sm, const Demand& demand) {
  const int32_t tpc = spec_.topology.tpc_of_sm[sm];
  Footprint footprint{.sm = sm, .owner = next_owner_++, .warps = {}};
  local_memory_.commit(demand);
  configuration_.commit(tpc, demand);
  sms_[sm].commit(demand, configuration_.configured(tpc, demand), footprint);
  ++resident_blocks_;
  return footprint;
}

void GpuState::release(const Demand& demand, const Footprint& footprint) {
  configuration_.release(spec_.topology.tpc_of_sm[footprint.sm]);
  sms_[footprint.sm].release(demand, footprint);
  --resident_blocks_;
}

}  // namespace tbsched

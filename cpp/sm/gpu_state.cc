#include "sm/gpu_state.h"

#include <utility>

namespace tbsched {

GpuState::GpuState(const DeviceSpec& spec)
    : spec_(spec),
      sms_(spec.topology.sms(), SmState(spec)),
      configuration_(spec),
      local_memory_(spec) {}

Room GpuState::room(const int32_t sm, const Demand& demand) const {
  if (gpcs_held_ && spec_.topology.gpc_of_sm[sm] >= 0) return {0, Refusal::queue};
  if (!configuration_.admits(sm, demand)) return {0, Refusal::configuration};
  return sms_[sm].room(demand, configuration_.configured(sm, demand));
}

Footprint GpuState::commit(const int32_t sm, const Demand& demand) {
  Footprint footprint{.sm = sm, .owner = next_owner_++};
  local_memory_.commit(demand);
  configuration_.commit(sm, demand);
  sms_[sm].commit(demand, configuration_.configured(sm, demand), footprint);
  ++resident_blocks_;
  return footprint;
}

void GpuState::release(const Demand& demand, const Footprint& footprint) {
  configuration_.release(footprint.sm);
  sms_[footprint.sm].release(demand, footprint);
  --resident_blocks_;
}

}  // namespace tbsched

#include "tbsched/hardware/gpu/gpu_state.h"

#include <bit>

namespace tbsched {

GpuState::GpuState(const Device& device)
    : device_(device),
      sms_(device.spec.sms, device.empty_sm),
      configuration_(device),
      local_memory_(device.spec),
      change_log_(std::bit_floor(device.sms_of_configuration.size())) {}

Room GpuState::room(const int32_t sm, const Demand& demand) const {
  if (!demand.may_use(sm)) return {0, Refusal::partition};
  if (is_reserved(sm)) return {0, Refusal::queue};
  return room_if_free(sm, demand);
}

Room GpuState::room_if_free(const int32_t sm, const Demand& demand) const {
  if (!configuration_.admits(sm, demand)) return {0, Refusal::configuration};
  return sms_[sm].room(spec(), demand, configuration_.configured(sm, demand));
}

Refusals GpuState::limiters(const int32_t sm, const Demand& demand) const {
  const Room tightest = room(sm, demand);
  if (!demand.may_use(sm) || is_reserved(sm)) return set_of(tightest.limiter);
  return limiters_if_free(sm, demand, tightest);
}

Refusals GpuState::limiters_if_free(const int32_t sm, const Demand& demand,
                                    const Room& tightest) const {
  const int32_t configured = configuration_.configured(sm, demand);
  Refusals others = sms_[sm].limiters(spec(), demand, configured, tightest.blocks);
  // In another configuration there may be more shared memory.
  if (tightest.limiter == Refusal::configuration) others &= ~set_of(Refusal::shared_memory);
  return set_of(tightest.limiter) | others;
}

Refusals GpuState::limiters_where(const Refusal cause, const Demand& demand) const {
  for (int32_t sm = 0; sm < spec().sms; ++sm) {
    if (!demand.may_use(sm)) continue;
    const Room room = room_if_free(sm, demand);
    if (room.blocks == 0 && room.limiter == cause) return limiters_if_free(sm, demand, room);
  }
  return set_of(cause);
}

Footprint GpuState::commit(const int32_t sm, const Demand& demand, const int32_t blocks) {
  Footprint footprint{.sm = sm, .owner = next_owner_++, .blocks = static_cast<uint8_t>(blocks)};
  local_memory_.commit(demand);
  const int32_t configured = configuration_.commit(sm, demand, blocks);
  sms_[sm].commit(spec(), demand, configured, footprint);
  resident_blocks_ += blocks;
  note_change(sm);
  return footprint;
}

void GpuState::release(const Demand& demand, const Footprint& footprint) {
  configuration_.release(footprint.sm, footprint.blocks);
  sms_[footprint.sm].release(demand, footprint);
  resident_blocks_ -= footprint.blocks;
  note_change(footprint.sm);
}

void GpuState::settle() {
  if (configuration_.keeps()) {
    for (int32_t sm = 0; sm < spec().sms; ++sm) {
      if (configuration_.keeps(sm)) note_change(sm);
    }
  }
  configuration_.settle();
}

}  // namespace tbsched

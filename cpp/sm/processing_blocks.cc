#include "sm/processing_blocks.h"

#include <algorithm>
#include <array>

namespace tbsched {

ProcessingBlocks::ProcessingBlocks(const DeviceSpec& spec)
    : strict_(spec.mechanisms.strict_round_robin), skip_(spec.mechanisms.warp_skip) {
  const int32_t count = spec.processing_blocks;
  for (int32_t i = 0; i < count; ++i) {
    units_.push_back({spec.warps_per_sm / count,
                      RegisterFile(spec.registers_per_sm / count, spec.mechanisms.registers)});
  }
}

int32_t ProcessingBlocks::warps_that_fit(const Unit& unit, const Demand& demand) const {
  return std::min(unit.free_warps, unit.registers.capacity(demand.registers_per_warp));
}

Room ProcessingBlocks::room(const Demand& demand) const {
  const auto count = static_cast<int32_t>(units_.size());
  std::array<int32_t, kMaxProcessingBlocks> fit{};
  for (int32_t i = 0; i < count; ++i) fit[i] = warps_that_fit(units_[i], demand);
  const auto tightest = std::min_element(fit.begin(), fit.begin() + count);
  const Unit& binding = units_[tightest - fit.begin()];
  const Refusal limiter = binding.free_warps <= *tightest ? Refusal::warps : Refusal::registers;

  int32_t warps = 0;
  if (strict_) {
    // Turn by turn from the pointer, the first processing block with the least room ends it.
    int32_t turns = 0;
    while (fit[(next_ + turns) % count] != *tightest) ++turns;
    warps = *tightest * count + turns;
  } else {
    for (int32_t i = 0; i < count; ++i) warps += fit[i];
  }
  return {warps / demand.warps, limiter};
}

WarpsPerProcessingBlock ProcessingBlocks::strict_turns(const int32_t warps) {
  const auto count = static_cast<int32_t>(units_.size());
  WarpsPerProcessingBlock turns{};
  for (int32_t i = 0; i < count; ++i) {
    turns[(next_ + i) % count] = static_cast<int16_t>(warps / count + (i < warps % count ? 1 : 0));
  }
  const bool skips = skip_ && warps % count == 0;
  next_ = (next_ + warps + (skips ? 1 : 0)) % count;
  return turns;
}

WarpsPerProcessingBlock ProcessingBlocks::emptiest_first(const Demand& demand) const {
  const auto count = static_cast<int32_t>(units_.size());
  WarpsPerProcessingBlock left{};
  for (int32_t i = 0; i < count; ++i) {
    left[i] = static_cast<int16_t>(warps_that_fit(units_[i], demand));
  }
  WarpsPerProcessingBlock turns{};
  for (int32_t warp = 0; warp < demand.warps; ++warp) {
    const auto most = std::max_element(left.begin(), left.begin() + count);
    --*most;
    ++turns[most - left.begin()];
  }
  return turns;
}

void ProcessingBlocks::commit(const Demand& demand, Footprint& footprint) {
  footprint.warps = strict_ ? strict_turns(demand.warps) : emptiest_first(demand);
  for (size_t i = 0; i < units_.size(); ++i) {
    units_[i].free_warps -= footprint.warps[i];
    units_[i].registers.commit(footprint.owner, demand.registers_per_warp, footprint.warps[i]);
  }
  resident_warps_ += demand.warps;
}

void ProcessingBlocks::release(const Demand& demand, const Footprint& footprint) {
  for (size_t i = 0; i < units_.size(); ++i) {
    units_[i].free_warps += footprint.warps[i];
    units_[i].registers.release(footprint.owner, demand.registers_per_warp, footprint.warps[i]);
  }
  resident_warps_ -= demand.warps;
}

}  // namespace tbsched

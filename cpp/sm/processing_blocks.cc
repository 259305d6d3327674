#include "sm/processing_blocks.h"

#include <algorithm>
#include <bit>

namespace tbsched {
namespace {

// Of the first processing block; those of the others follow, one by one.
uint64_t first_slots(const int32_t processing_blocks) {
  uint64_t slots = 0;
  for (int32_t slot = 0; slot < kMaxWarpsPerSm; slot += processing_blocks) {
    slots |= uint64_t{1} << slot;
  }
  return slots;
}

uint64_t without_lowest(const uint64_t slots) { return slots & (slots - 1); }

}  // namespace

ProcessingBlocks::ProcessingBlocks(const DeviceSpec& spec)
    : strict_(spec.mechanisms.strict_round_robin),
      skip_(spec.mechanisms.warp_skip),
      first_slots_(first_slots(spec.processing_blocks)) {
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

ProcessingBlocks::Turns ProcessingBlocks::strict_turns(const int32_t warps) {
  const auto count = static_cast<int32_t>(units_.size());
  Turns turns{};
  for (int32_t i = 0; i < count; ++i) {
    turns[(next_ + i) % count] = warps / count + (i < warps % count ? 1 : 0);
  }
  const bool skips = skip_ && warps % count == 0;
  next_ = (next_ + warps + (skips ? 1 : 0)) % count;
  return turns;
}

ProcessingBlocks::Turns ProcessingBlocks::emptiest_first(const Demand& demand) const {
  const auto count = static_cast<int32_t>(units_.size());
  Turns left{};
  for (int32_t i = 0; i < count; ++i) left[i] = warps_that_fit(units_[i], demand);
  Turns turns{};
  for (int32_t warp = 0; warp < demand.warps; ++warp) {
    const auto most = std::max_element(left.begin(), left.begin() + count);
    --*most;
    ++turns[most - left.begin()];
  }
  return turns;
}

void ProcessingBlocks::commit(const Demand& demand, Footprint& footprint) {
  footprint.first_processing_block = next_;
  const Turns turns = strict_ ? strict_turns(demand.warps) : emptiest_first(demand);
  for (size_t i = 0; i < units_.size(); ++i) {
    const uint64_t free = first_slots_ << i & ~taken_;
    uint64_t left = free;
    for (int32_t warp = 0; warp < turns[i]; ++warp) left = without_lowest(left);
    footprint.warp_slots |= free ^ left;
    units_[i].free_warps -= turns[i];
    units_[i].registers.commit(footprint.owner, demand.registers_per_warp, turns[i]);
  }
  taken_ |= footprint.warp_slots;
}

void ProcessingBlocks::release(const Demand& demand, const Footprint& footprint) {
  for (size_t i = 0; i < units_.size(); ++i) {
    const int32_t warps = std::popcount(footprint.warp_slots & first_slots_ << i);
    units_[i].free_warps += warps;
    units_[i].registers.release(footprint.owner, demand.registers_per_warp, warps);
  }
  taken_ &= ~footprint.warp_slots;
}

void list_warp_slots(const Footprint& footprint, const int32_t processing_blocks,
                     const std::span<int32_t> slots) {
  std::array<uint64_t, kMaxProcessingBlocks> left{};
  for (int32_t i = 0; i < processing_blocks; ++i) {
    left[i] = footprint.warp_slots & first_slots(processing_blocks) << i;
  }
  int32_t turn = footprint.first_processing_block;
  for (int32_t& slot : slots) {
    slot = std::countr_zero(left[turn]);
    left[turn] = without_lowest(left[turn]);
    turn = (turn + 1) % processing_blocks;
  }
}

}  // namespace tbsched

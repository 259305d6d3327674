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

uint64_t lowest(const uint64_t slots, const int32_t count) {
  uint64_t left = slots;
  for (int32_t i = 0; i < count; ++i) left = without_lowest(left);
  return slots ^ left;
}

}  // namespace

ProcessingBlocks::ProcessingBlocks(const DeviceSpec& spec)
    : count_(spec.processing_blocks),
      strict_(spec.mechanisms.strict_round_robin),
      skip_(spec.mechanisms.warp_skip),
      registers_(count_, spec.registers_per_sm / count_, spec.mechanisms.registers),
      first_slots_(first_slots(count_)) {
  std::fill_n(free_warps_.begin(), count_, spec.warps_per_sm / count_);
}

ProcessingBlocks::PerBlock ProcessingBlocks::warps_that_fit(const Demand& demand) const {
  PerBlock fit{};
  for (int32_t i = 0; i < count_; ++i) {
    fit[i] = registers_.capacity(i, demand.registers_per_warp, free_warps_[i]);
  }
  return fit;
}

Room ProcessingBlocks::room(const Demand& demand) const {
  const PerBlock fit = warps_that_fit(demand);
  const auto tightest = std::min_element(fit.begin(), fit.begin() + count_);
  const Refusal limiter =
      free_warps_[tightest - fit.begin()] <= *tightest ? Refusal::warps : Refusal::registers;

  int32_t warps = 0;
  if (strict_) {
    // Turn by turn from the pointer, the first processing block with the least room ends it.
    int32_t turns = 0;
    for (int32_t i = next_; fit[i] != *tightest; i = after(i)) ++turns;
    warps = *tightest * count_ + turns;
  } else {
    for (int32_t i = 0; i < count_; ++i) warps += fit[i];
  }
  return {warps / demand.warps, limiter};
}

ProcessingBlocks::PerBlock ProcessingBlocks::strict_turns(const Demand& demand,
                                                          const int32_t blocks) {
  const int32_t warps = demand.warps * blocks;
  PerBlock turns{};
  const int32_t whole = warps / count_;
  int32_t rest = warps - whole * count_;
  for (int32_t i = 0, at = next_; i < count_; ++i, at = after(at)) {
    turns[at] = whole + (rest-- > 0 ? 1 : 0);
  }
  // Where a block is followed by a skip, it takes as much of every processing block, so that the
  // skips between blocks do not show.
  const bool skips = skip_ && demand.warps % count_ == 0;
  next_ = (next_ + warps + (skips ? blocks : 0)) % count_;
  return turns;
}

ProcessingBlocks::PerBlock ProcessingBlocks::emptiest_first(const Demand& demand,
                                                            const int32_t blocks) const {
  PerBlock left = warps_that_fit(demand);
  PerBlock turns{};
  for (int32_t warp = 0; warp < demand.warps * blocks; ++warp) {
    const auto most = std::max_element(left.begin(), left.begin() + count_);
    --*most;
    ++turns[most - left.begin()];
  }
  return turns;
}

void ProcessingBlocks::commit(const Demand& demand, Footprint& footprint) {
  footprint.first_processing_block = next_;
  const PerBlock turns =
      strict_ ? strict_turns(demand, footprint.blocks) : emptiest_first(demand, footprint.blocks);
  for (int32_t i = 0; i < count_; ++i) {
    const uint64_t free = first_slots_ << i & ~taken_;
    footprint.warps[i] = static_cast<uint8_t>(turns[i]);
    footprint.warp_slots |= lowest(free, turns[i]);
    free_warps_[i] -= turns[i];
    registers_.commit(i, footprint.owner, demand.registers_per_warp, turns[i]);
  }
  taken_ |= footprint.warp_slots;
}

void ProcessingBlocks::release(const Demand& demand, const Footprint& footprint) {
  for (int32_t i = 0; i < count_; ++i) {
    const int32_t warps = footprint.warps[i];
    free_warps_[i] += warps;
    registers_.release(i, footprint.owner, demand.registers_per_warp, warps);
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

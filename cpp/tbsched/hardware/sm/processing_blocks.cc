#include "tbsched/hardware/sm/processing_blocks.h"

#include <algorithm>
#include <bit>

namespace tbsched {
namespace {

// Returns the warp slots of the first processing block of an SM that has so many, a bit each.
constexpr uint64_t slots_of_first(const int32_t processing_blocks) {
  uint64_t slots = 0;
  for (int32_t slot = 0; slot < kMaxWarpsPerSm; slot += processing_blocks) {
    slots |= uint64_t{1} << slot;
  }
  return slots;
}

// Slots of the first processing block, by number of processing blocks; those of the others follow,
// shifted by one each.
constexpr std::array<uint64_t, kMaxProcessingBlocks + 1> kFirstSlots = {
    0, slots_of_first(1), slots_of_first(2), slots_of_first(3), slots_of_first(4)};

// Returns the set without its lowest slot.
uint64_t without_lowest(const uint64_t slots) { return slots & (slots - 1); }

// Returns the `count` lowest slots of a set.
uint64_t lowest(const uint64_t slots, const int32_t count) {
  uint64_t higher = slots;
  for (int32_t i = 0; i < count; ++i) higher = without_lowest(higher);
  return slots ^ higher;
}

// Returns the set of all slots below this one.
uint64_t below(const int32_t slot) {
  return slot >= kMaxWarpsPerSm ? ~uint64_t{0} : (uint64_t{1} << slot) - 1;
}

// Returns the processing block after the i-th one of `count`, round and round.
int32_t after(const int32_t i, const int32_t count) { return i + 1 == count ? 0 : i + 1; }

}  // namespace

ProcessingBlocks::ProcessingBlocks(const DeviceSpec& spec) : registers_(spec) {
  const int32_t warps = spec.warps_per_sm / spec.processing_blocks;
  std::fill_n(free_warps_.begin(), spec.processing_blocks, static_cast<uint8_t>(warps));
}

WarpsAndRegisters ProcessingBlocks::most_taken(const DeviceSpec& spec) const {
  const int32_t count = spec.processing_blocks;
  const int32_t least_free = *std::min_element(free_warps_.begin(), free_warps_.begin() + count);
  return {spec.warps_per_sm / count - least_free,
          spec.registers_per_sm / count - registers_.least_free(count)};
}

ProcessingBlocks::PerBlock ProcessingBlocks::warps_that_fit(const DeviceSpec& spec,
                                                            const Demand& demand) const {
  PerBlock fit{};
  for (int32_t i = 0; i < spec.processing_blocks; ++i) {
    fit[i] = registers_.capacity(i, demand.registers_per_warp, free_warps_[i]);
  }
  return fit;
}

Room ProcessingBlocks::room(const DeviceSpec& spec, const Demand& demand) const {
  // One loop instead of warps_that_fit() and a search: this is called most of all.
  PerBlock fit{};
  int32_t tightest = 0;
  for (int32_t i = 0; i < spec.processing_blocks; ++i) {
    fit[i] = registers_.capacity(i, demand.registers_per_warp, free_warps_[i]);
    if (fit[i] < fit[tightest]) tightest = i;
  }
  const Refusal limiter =
      free_warps_[tightest] <= fit[tightest] ? Refusal::warps : Refusal::registers;
  return {blocks_of(spec, demand, fit, fit[tightest]), limiter};
}

int32_t ProcessingBlocks::least_of(const DeviceSpec& spec, const PerBlock& fit) {
  return *std::min_element(fit.begin(), fit.begin() + spec.processing_blocks);
}

int32_t ProcessingBlocks::room_of_warps(const DeviceSpec& spec, const Demand& demand) const {
  PerBlock fit{};
  std::copy_n(free_warps_.begin(), spec.processing_blocks, fit.begin());
  return blocks_of(spec, demand, fit, least_of(spec, fit));
}

int32_t ProcessingBlocks::room_of_registers(const DeviceSpec& spec, const Demand& demand) const {
  PerBlock fit{};
  for (int32_t i = 0; i < spec.processing_blocks; ++i) {
    fit[i] = registers_.capacity(i, demand.registers_per_warp, kMaxWarpsPerSm);
  }
  return blocks_of(spec, demand, fit, least_of(spec, fit));
}

int32_t ProcessingBlocks::blocks_of(const DeviceSpec& spec, const Demand& demand,
                                    const PerBlock& fit, const int32_t tightest) const {
  const int32_t count = spec.processing_blocks;
  int32_t warps = 0;
  if (spec.mechanisms.strict_round_robin) {
    // From the pointer on, turns end at the first processing block with the least room.
    int32_t turns = 0;
    for (int32_t i = next_; fit[i] != tightest; i = after(i, count)) ++turns;
    warps = tightest * count + turns;
  } else {
    for (int32_t i = 0; i < count; ++i) warps += fit[i];
  }
  return warps / demand.warps;
}

ProcessingBlocks::PerBlock ProcessingBlocks::take_strict_turns(const DeviceSpec& spec,
                                                               const Demand& demand,
                                                               const int32_t blocks) {
  const int32_t count = spec.processing_blocks;
  const int32_t warps = demand.warps * blocks;
  const int32_t whole = warps / count;
  PerBlock warps_of{};
  std::fill_n(warps_of.begin(), count, whole);
  const int32_t rest = warps - whole * count;
  for (int32_t i = 0, at = next_; i < rest; ++i, at = after(at, count)) ++warps_of[at];
  // A block before a skip takes equally much of every processing block, so skips
  // between blocks have no effect.
  const bool skips = spec.mechanisms.warp_skip && rest == 0 && demand.warps % count == 0;
  next_ = static_cast<uint8_t>((next_ + rest + (skips ? blocks : 0)) % count);
  return warps_of;
}

ProcessingBlocks::PerBlock ProcessingBlocks::emptiest_first(const DeviceSpec& spec,
                                                            const Demand& demand,
                                                            const int32_t blocks) const {
  PerBlock room = warps_that_fit(spec, demand);
  PerBlock warps{};
  for (int32_t warp = 0; warp < demand.warps * blocks; ++warp) {
    const auto emptiest = std::max_element(room.begin(), room.begin() + spec.processing_blocks);
    --*emptiest;
    ++warps[emptiest - room.begin()];
  }
  return warps;
}

void ProcessingBlocks::commit(const DeviceSpec& spec, const Demand& demand, Footprint& footprint) {
  const int32_t count = spec.processing_blocks;
  footprint.first_processing_block = next_;
  const PerBlock warps = spec.mechanisms.strict_round_robin
                             ? take_strict_turns(spec, demand, footprint.blocks)
                             : emptiest_first(spec, demand, footprint.blocks);
  // The loop has a constant length, which the compiler knows; unused processing blocks take
  // nothing.
  for (int32_t i = 0; i < kMaxProcessingBlocks; ++i) {
    const uint64_t slots = kFirstSlots[count] << i;  // of this processing block
    footprint.warps[i] = static_cast<uint8_t>(warps[i]);
    // On an idle SM the lowest slots are all free.
    footprint.warp_slots |=
        idle() ? slots & below(warps[i] * count) : lowest(slots & ~taken_, warps[i]);
    free_warps_[i] -= footprint.warps[i];
  }
  registers_.commit(footprint.owner, demand.registers_per_warp, footprint.warps);
  taken_ |= footprint.warp_slots;
}

void ProcessingBlocks::release(const Demand& demand, const Footprint& footprint) {
  for (int32_t i = 0; i < kMaxProcessingBlocks; ++i) free_warps_[i] += footprint.warps[i];
  registers_.release(footprint.owner, demand.registers_per_warp, footprint.warps);
  taken_ &= ~footprint.warp_slots;
}

void list_warp_slots(const Footprint& footprint, const int32_t processing_blocks,
                     const std::span<int32_t> slots) {
  std::array<uint64_t, kMaxProcessingBlocks> unlisted{};  // slots, by processing block
  for (int32_t i = 0; i < processing_blocks; ++i) {
    unlisted[i] = footprint.warp_slots & kFirstSlots[processing_blocks] << i;
  }
  int32_t turn = footprint.first_processing_block;
  for (int32_t& slot : slots) {
    slot = std::countr_zero(unlisted[turn]);
    unlisted[turn] = without_lowest(unlisted[turn]);
    turn = after(turn, processing_blocks);
  }
}

}  // namespace tbsched

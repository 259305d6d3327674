// The room of every SM for the blocks of one launch, kept up to date: asked about the same demand
// again, only SMs that have changed since are looked at.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/gpu/gpu_state.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/hardware/sm_set.h"
#include "tbsched/program/refusal.h"

namespace tbsched {

// Whether each block leaves its SM with room for exactly one less. Where a block must have one gap
// to itself, the room of the others may stay.
bool room_falls_by_one(const DeviceSpec& spec);

class Rooms {
 public:
  explicit Rooms(const Device& device);

  // Always of the same GPU.
  void ask(const GpuState& gpu, const Demand& demand);

  // How many blocks each SM has room for, by preference.
  std::span<const uint8_t> blocks() const { return blocks_; }
  // The greatest of them.
  int32_t most() const;
  // Of all SMs together.
  int64_t sum() const;
  // How many SMs have room for so many.
  int32_t sms_with(const int32_t blocks) const { return sms_with_[blocks]; }
  // What binds the room of most SMs that the launch may use.
  Refusal commonest_limiter() const;

 private:
  void look_at_all(const GpuState& gpu);
  void look_at(const GpuState& gpu, int32_t sm);

  const std::vector<int32_t>& rank_of_sm_;
  std::vector<uint8_t> blocks_;    // by rank
  std::vector<Refusal> limiters_;  // by rank
  std::array<int32_t, kMaxWarpsPerSm + 1> sms_with_{};
  std::array<int32_t, kRefusalNames.size()> sms_limited_by_{};
  std::optional<Demand> demand_;   // none before the first question
  std::optional<Room> untouched_;  // of an SM without a past
  SmSet held_;                     // when it was last asked
  uint64_t changes_seen_ = 0;
};

}  // namespace tbsched

// The room of every SM for the blocks of one launch, kept up to date: for an unchanged demand, only
// SMs that have changed are examined.
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

// Returns whether each block leaves its SM with room for exactly one block less. If a block needs
// one gap in memory, it may leave room for as many as before.
bool room_falls_by_one(const DeviceSpec& spec);

class Rooms {
 public:
  // No room is known before update(). The device outlives it.
  explicit Rooms(const Device& device);

  // Updates the rooms for the blocks of a demand. `gpu` must be the same object at every call.
  void update(const GpuState& gpu, const Demand& demand);

  // Returns the number of blocks for which each SM has room, by rank of preference.
  std::span<const uint8_t> blocks() const { return blocks_; }
  // Returns how many blocks fit the SM with the most room.
  int32_t max_room() const;
  // Returns how many blocks fit all SMs together.
  int64_t total_room() const;
  // Returns the number of SMs with room for exactly this number of blocks.
  int32_t sms_with(const int32_t blocks) const { return sms_with_[blocks]; }
  // Returns the cause that limits the room of more SMs than any other, of those that the launch may
  // use.
  Refusal commonest_limiter() const;

 private:
  // Asks for the room of every SM.
  void update_all(const GpuState& gpu);
  // Asks for the room of an SM, and counts it.
  void update_sm(const GpuState& gpu, int32_t sm);

  const std::vector<int32_t>& rank_of_sm_;
  std::vector<uint8_t> blocks_;    // by rank of preference
  std::vector<Refusal> limiters_;  // by rank of preference
  // Number of SMs, by the number of blocks for which they have room, and by limiter.
  std::array<int32_t, kMaxWarpsPerSm + 1> sms_with_{};
  std::array<int32_t, kRefusalNames.size()> sms_limited_by_{};
  std::optional<Demand> demand_;   // nullopt before the first call
  std::optional<Room> untouched_;  // of an SM without a past
  SmSet reserved_;                 // at the last call
  uint64_t changes_seen_ = 0;      // GpuState::changes() at the last call
};

}  // namespace tbsched

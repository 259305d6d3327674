// The contract of a policy: it chooses the SMs for as many blocks of a launch as fit now.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/gpu/commit.h"
#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/gpu/gpu_state.h"
#include "tbsched/hardware/gpu/rooms.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

class Policy {
 public:
  virtual ~Policy() = default;

  // Chooses SMs for up to sms.size() blocks, committing each, which changes `gpu`. Writes the SMs
  // in the order in which the hardware numbers the blocks, and returns how many. Stops at the first
  // block or cluster that fits nowhere; it is called again for the rest when there may be room.
  // `rooms` is for policies that need the room of all SMs.
  virtual size_t place(const Demand& demand, const GpuState& gpu, Rooms& rooms,
                       const Commit& commit, std::span<int32_t> sms) = 0;
  // Tells the policy that blocks went to these SMs, in the order of their numbers, without place().
  // A policy that takes turns goes on after the last of them.
  virtual void note_placed(std::span<const int32_t> /*sms*/) {}
};

// The latent state of an idle device. The policy that enumerates the states knows what their
// components mean, and leaves unused ones at 0.
struct InitialState {
  std::array<int32_t, 4> components{};

  bool operator==(const InitialState&) const = default;
};

// Starts the policy on an idle device, in one of its states. Holds what the policy computes from
// the device, which outlives it. Called for each prediction, from several threads.
using StartPolicy = std::function<std::unique_ptr<Policy>(InitialState state)>;

// Returns the states of a policy for which all idle devices are equal.
inline std::vector<InitialState> one_state(const Device&) { return {InitialState{}}; }

struct PolicyRow {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool places_clusters;
  // Whether each single block goes to an SM that has as much room as any SM, if all shared memory
  // counts on the device.
  bool most_room_first;
  // Returns the device as the policy's authors knew it: unchanged, or without some mechanisms.
  DeviceSpec (*sees)(DeviceSpec spec);
  StartPolicy (*make)(const Device& device);
  // The names of the components of its states.
  std::span<const std::string_view> state_names = {};
  // The states that an idle device can be in, at least one. The first is the default: all 0.
  std::vector<InitialState> (*states)(const Device& device) = one_state;
  // Whether states only decide which block is on which SM: every state puts equally many on each
  // SM, as long as blocks of a launch leave together.
  bool states_only_number_blocks = false;
  // Whether it may leave a block waiting for which an SM has room.
  bool may_decline = false;
};

// Returns all policies, from the weakest to the strongest.
std::span<const PolicyRow> policy_table();
// Returns the row of this name. Throws std::invalid_argument if there is none.
const PolicyRow& policy_named(std::string_view name);
// Returns the row of a policy that is not in the table: one of the caller's own.
const PolicyRow& own_policy();

// Does the work of Policy::place() for policies that decide block by block. choose() returns an SM
// with room for the next block; -1: there is none.
template <typename Choose>
size_t place_one_by_one(const std::span<int32_t> sms, const Commit& commit, Choose choose) {
  for (size_t placed = 0; placed < sms.size(); ++placed) {
    const int32_t sm = choose();
    if (sm < 0) return placed;
    commit(sm, 1);
    sms[placed] = sm;
  }
  return sms.size();
}

}  // namespace tbsched

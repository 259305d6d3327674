// The contract of a policy: it is asked for the SM of each block of a launch, as many as fit now.
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

  // Chooses an SM for up to sms.size() blocks, committing each, and sees the new state. Writes the
  // SMs in the order in which the hardware numbers the blocks, and returns how many. Stops at the
  // first block that fits nowhere, or at the first cluster; it is asked about the rest when there
  // may be room. `rooms` is for policies that ask about all SMs.
  virtual size_t place(const Demand& demand, const GpuState& gpu, Rooms& rooms,
                       const Commit& commit, std::span<int32_t> sms) = 0;
};

// What an idle device still remembers. The policy that enumerates the states knows what their
// components mean, and leaves at 0 those that it does not use.
struct InitialState {
  std::array<int32_t, 4> components{};

  bool operator==(const InitialState&) const = default;
};

// Starts the policy on an idle device, in one of its states. It holds what the policy computes from
// the device, which outlives it, and is called for each prediction, from several threads at once.
using StartPolicy = std::function<std::unique_ptr<Policy>(InitialState state)>;

// Of a policy for which all idle devices are alike.
inline std::vector<InitialState> one_state(const Device&) { return {InitialState{}}; }

struct PolicyRow {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool places_clusters;
  // Whether each single block goes to an SM with room for as many as any SM has room for.
  bool most_room_first;
  // The device as the policy's authors knew it: the identity, or with mechanisms left out.
  DeviceSpec (*sees)(DeviceSpec spec);
  StartPolicy (*make)(const Device& device);
  // The names of the components of its states.
  std::span<const std::string_view> state_names = {};
  // The states that an idle device can be in, at least one. The first is the default: all 0.
  std::vector<InitialState> (*states)(const Device& device) = one_state;
  // Whether states only say which block is on which SM: as many are on each SM in every state, as
  // long as blocks of a launch leave together.
  bool states_only_number_blocks = false;
};

std::span<const PolicyRow> policy_table();
// Throws std::invalid_argument where there is no such row.
const PolicyRow& policy_named(std::string_view name);

// For policies that decide block by block: choose() returns an SM with room, or -1.
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

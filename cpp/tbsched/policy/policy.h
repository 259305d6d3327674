// The contract of a policy: it is asked for the SM of each block of a launch, as many as fit now.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/gpu/commit.h"
#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/gpu/gpu_state.h"
#include "tbsched/hardware/gpu/rooms.h"
#include "tbsched/hardware/initial_state.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

class Policy {
 public:
  virtual ~Policy() = default;

  // Chooses an SM for up to sms.size() blocks, committing each, and sees the new state. Writes the
  // SMs in the order in which the hardware numbers the blocks, and returns how many. Stops at the
  // first block that fits nowhere, or at the first cluster. `rooms` is for policies that ask about
  // all SMs.
  virtual size_t place(const Demand& demand, const GpuState& gpu, Rooms& rooms,
                       const Commit& commit, std::span<int32_t> sms) = 0;
};

// Starts the policy on an idle device. It holds what the policy computes from the device, which
// outlives it, and is called for each prediction, from several threads at once.
using StartPolicy = std::function<std::unique_ptr<Policy>(InitialState state)>;

struct PolicyRow {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool places_clusters;
  // The device as the policy's authors knew it: the identity, or with mechanisms left out.
  DeviceSpec (*sees)(DeviceSpec spec);
  StartPolicy (*make)(const Device& device);
};

std::span<const PolicyRow> policy_table();
// Null where there is no such row.
const PolicyRow* find_policy(std::string_view name);

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

StartPolicy make_round_robin(const Device& device);
StartPolicy make_first_fit(const Device& device);
StartPolicy make_most_room(const Device& device);
StartPolicy make_algorithm1(const Device& device);
StartPolicy make_hopper(const Device& device);

}  // namespace tbsched

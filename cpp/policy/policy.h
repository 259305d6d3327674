// The contract of a policy: it is asked for the SM of each block of a launch, as many as fit now.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "model/device_spec.h"
#include "sm/demand.h"
#include "sm/gpu_state.h"
#include "sm/rooms.h"

namespace tbsched {

// Commits blocks of the launch to an SM that the policy chose. The engine does it; the policy sees
// the new state.
using Commit = std::function<void(int32_t sm, int32_t blocks)>;

class Policy {
 public:
  virtual ~Policy() = default;

  // Chooses an SM for up to sms.size() blocks, committing each. Writes the SMs in the order in
  // which the hardware numbers the blocks, and returns how many. Stops at the first block that fits
  // nowhere, or at the first cluster. `rooms` is for policies that ask about all SMs.
  virtual size_t place(const Demand& demand, const GpuState& gpu, Rooms& rooms,
                       const Commit& commit, std::span<int32_t> sms) = 0;
};

struct PolicyRow {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool places_clusters;
  // The device as the policy's authors knew it: the identity, or with mechanisms left out.
  DeviceSpec (*sees)(DeviceSpec spec);
  std::unique_ptr<Policy> (*make)(const DeviceSpec& spec, InitialState state);
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

std::unique_ptr<Policy> make_round_robin(const DeviceSpec& spec, InitialState state);
std::unique_ptr<Policy> make_first_fit(const DeviceSpec& spec, InitialState state);
std::unique_ptr<Policy> make_most_room(const DeviceSpec& spec, InitialState state);
std::unique_ptr<Policy> make_algorithm1(const DeviceSpec& spec, InitialState state);
std::unique_ptr<Policy> make_hopper(const DeviceSpec& spec, InitialState state);

}  // namespace tbsched

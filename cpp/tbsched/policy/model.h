// A device under a policy, with tables that depend on these two alone. Computed once, for any
// number of predictions; thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/gpu/device.h"
#include "tbsched/policy/launch_order.h"
#include "tbsched/policy/policy.h"

namespace tbsched {

class Model {
 public:
  // Throws std::invalid_argument where there is no policy or launch order of that name, or where
  // the policy does not suit the device.
  Model(const DeviceSpec& spec, std::string_view policy);
  explicit Model(const DeviceSpec& spec) : Model(spec, spec.policy) {}
  // A policy of the caller's own, without latent states. It may leave blocks waiting that have
  // room; it is given no clusters and no cooperative launches. coresident() refuses it.
  Model(const DeviceSpec& spec, StartPolicy start);
  // Not copyable: the policy's starter refers to the device.
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Returns the device as the policy sees it.
  const Device& device() const { return device_; }
  const PolicyRow& policy() const { return policy_; }
  // Returns whether each single block goes to an SM that has as much room as any SM.
  bool most_room_first() const {
    return policy_.most_room_first && device_.spec.shared_memory_threshold == 0;
  }
  const LaunchOrder& order() const { return order_; }
  // Returns the states in which an idle device can be; the first is the default.
  std::span<const InitialState> states() const { return states_; }
  // Returns the states in which launches may take different SMs, as long as their blocks leave
  // together.
  std::span<const InitialState> states_that_choose() const;
  // Returns a policy for an idle device in this state. Throws std::invalid_argument for an unknown
  // state.
  std::unique_ptr<Policy> start(const InitialState& state) const;

 private:
  const PolicyRow& policy_;
  Device device_;
  const LaunchOrder& order_;
  std::vector<InitialState> states_;
  StartPolicy start_;
};

}  // namespace tbsched

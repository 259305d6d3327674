// A device under a policy, with all that follows from the two alone: computed once, for any number
// of predictions, on several threads at once.
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
  // the policy cannot be that of the device.
  Model(const DeviceSpec& spec, std::string_view policy);
  explicit Model(const DeviceSpec& spec) : Model(spec, spec.policy) {}
  // What starts the policy knows where the device is.
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // As the policy sees it.
  const Device& device() const { return device_; }
  const PolicyRow& policy() const { return policy_; }
  const LaunchOrder& order() const { return order_; }
  // That an idle device can be in; the first is the default.
  std::span<const InitialState> states() const { return states_; }
  // Those in which the SMs that launches take may differ, as long as their blocks leave together.
  std::span<const InitialState> states_that_choose() const;
  // Throws std::invalid_argument where the state is none of them.
  std::unique_ptr<Policy> start(const InitialState& state) const;

 private:
  const PolicyRow& policy_;
  Device device_;
  const LaunchOrder& order_;
  std::vector<InitialState> states_;
  StartPolicy start_;
};

}  // namespace tbsched

// A device under a policy, with all that follows from the two alone: computed once, for any number
// of predictions, on several threads at once.
#pragma once

#include <memory>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/gpu/device.h"
#include "tbsched/policy/launch_order.h"
#include "tbsched/policy/policy.h"

namespace tbsched {

class Model {
 public:
  Model(const DeviceSpec& spec, const PolicyRow& policy)
      : device_(policy.sees(spec)),
        policy_(policy),
        order_(launch_order_named(spec.launch_order)),
        start_(policy.make(device_)) {}
  // What starts the policy knows where the device is.
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // As the policy sees it.
  const Device& device() const { return device_; }
  const PolicyRow& policy() const { return policy_; }
  const LaunchOrder& order() const { return order_; }
  std::unique_ptr<Policy> start(const InitialState state) const { return start_(state); }

 private:
  Device device_;
  const PolicyRow& policy_;
  const LaunchOrder& order_;
  StartPolicy start_;
};

}  // namespace tbsched

#include "tbsched/policy/model.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace tbsched {

Model::Model(const DeviceSpec& spec, const std::string_view policy)
    : policy_(policy_named(policy)),
      device_(policy_.sees(spec)),
      order_(launch_order_named(spec.launch_order)),
      states_(policy_.states(device_)),
      start_(policy_.make(device_)) {}

Model::Model(const DeviceSpec& spec, StartPolicy start)
    : policy_(own_policy()),
      device_(policy_.sees(spec)),
      order_(launch_order_named(spec.launch_order)),
      states_(policy_.states(device_)),
      start_(std::move(start)) {}

std::span<const InitialState> Model::states_that_choose() const {
  return states().first(policy_.states_only_number_blocks ? 1 : states_.size());
}

std::unique_ptr<Policy> Model::start(const InitialState& state) const {
  if (std::ranges::find(states_, state) == states_.end()) {
    std::string given;
    for (const int32_t component : state.components) {
      given += (given.empty() ? "" : ", ") + std::to_string(component);
    }
    throw std::invalid_argument("initial state: (" + given + ") is none of the " +
                                std::to_string(states_.size()) + " that " + device_.spec.name +
                                " can be in under policy '" + std::string(policy_.name) + "'");
  }
  return start_(state);
}

}  // namespace tbsched

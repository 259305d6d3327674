// The order in which waiting launches are considered, and whether a launch that does not fit holds
// up those behind it. Launches of equal urgency keep their order of arrival.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"

namespace tbsched {

struct LaunchOrder {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool by_priority;   // the more urgent launch first
  bool head_of_line;  // a launch that does not fit whole holds up those behind it,
  bool on_own_sms;    // on the SMs that it can use; else on all SMs
};

// Returns all launch orders.
std::span<const LaunchOrder> launch_order_table();
// Returns the launch order of this name. Throws std::invalid_argument if there is none.
const LaunchOrder& launch_order_named(std::string_view name);

// Returns the launch's priority within the range of the device, as CUDA clamps it. The driver's own
// launches have theirs.
int32_t priority_of(const Launch& launch, const DeviceSpec& spec);

// Returns the urgency of a launch where the order is by priority: the lowest number is the most
// urgent. That is the launch's priority, or the highest one for cooperative launches. Source:
// traces ways/cooperative.
int32_t urgency_of(const Launch& launch, const DeviceSpec& spec);

}  // namespace tbsched

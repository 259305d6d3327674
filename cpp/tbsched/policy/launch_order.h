// The order in which waiting launches are considered, and whether a launch that does not fit holds
// up those behind it. Launches of equal rank keep their order of arrival.
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

std::span<const LaunchOrder> launch_order_table();
// Throws std::invalid_argument if there is no such row.
const LaunchOrder& launch_order_named(std::string_view name);

// Returns the launch's priority within the range of the device, as CUDA clamps it. The driver's own
// launches have theirs.
int32_t priority_of(const Launch& launch, const DeviceSpec& spec);

// Returns the rank of a launch where the order is by priority: the lowest rank is the most urgent.
// Cooperative launches have the most urgent one. Source: traces ways/cooperative.
int32_t rank_of(const Launch& launch, const DeviceSpec& spec);

}  // namespace tbsched

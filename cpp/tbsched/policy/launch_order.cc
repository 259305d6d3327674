#include "tbsched/policy/launch_order.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "tbsched/program/quoted.h"

namespace tbsched {
namespace {

constexpr std::array kLaunchOrders = {
    LaunchOrder{"leftover",
                "by priority, then first come, first served; a launch that does not fit holds up "
                "those of the same and of less urgent priorities on the SMs that it can use",
                "ICCD 2023, section II-D; seen on an H200", true, true, true},
    LaunchOrder{"fifo", "first come, first served over all priorities",
                "for comparison: streams without priorities", false, true, true},
    LaunchOrder{"pass_by", "as leftover, but what fits passes a launch that does not",
                "for comparison: a scheduler that leaves no room unused", true, false, true},
    LaunchOrder{"one_line", "as leftover, but a launch that does not fit holds up those on all SMs",
                "for comparison: a scheduler that knows no partitions", true, true, false},
};

}  // namespace

std::span<const LaunchOrder> launch_order_table() { return kLaunchOrders; }

const LaunchOrder& launch_order_named(const std::string_view name) {
  const auto row = std::ranges::find(kLaunchOrders, name, &LaunchOrder::name);
  if (row != kLaunchOrders.end()) return *row;
  std::string message = "launch_order: " + quoted(name) + " is unknown; there are";
  for (const LaunchOrder& known : kLaunchOrders) message.append(" ").append(known.name);
  throw std::invalid_argument(message);
}

int32_t priority_of(const Launch& launch, const DeviceSpec& spec) {
  if (!launch.has_runtime) return launch.priority;
  return std::clamp(launch.priority, 1 - spec.priority_levels, 0);
}

int32_t urgency_of(const Launch& launch, const DeviceSpec& spec) {
  return launch.cooperative ? 1 - spec.priority_levels : priority_of(launch, spec);
}

}  // namespace tbsched

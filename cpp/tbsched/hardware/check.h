// Checks of a device. All of them throw std::invalid_argument, which names the field, the value and
// the limit.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "tbsched/hardware/device_spec.h"

namespace tbsched {

void check(const DeviceSpec& spec);

// Refuses values that contradict NVIDIA's documentation for the device's compute capability, except
// for fields whose paths ("limits.warps_per_sm") are in `measured`.
void check_documented(const DeviceSpec& spec, const std::set<std::string>& measured);

// For readers of a spec: refuses a number that is too large for its type; returns the layout of a
// name.
[[noreturn]] void refuse_outside(const Field& field, std::string_view value);
Layout layout_named(const Field& field, std::string_view name);

}  // namespace tbsched

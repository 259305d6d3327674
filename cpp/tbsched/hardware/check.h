// Whether a device makes sense. All of these throw std::invalid_argument, which names the field,
// the value and the limit.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "tbsched/hardware/device_spec.h"

namespace tbsched {

void check(const DeviceSpec& spec);

// Refuses what NVIDIA documents otherwise for the device's compute capability, but for the fields
// of which the paths ("limits.warps_per_sm") are in `measured`.
void check_documented(const DeviceSpec& spec, const std::set<std::string>& measured);

// For those who read a spec: a number that is too large for its type, and the name of a layout.
[[noreturn]] void refuse_outside(const Field& field, std::string_view value);
Layout layout_named(const Field& field, std::string_view name);

}  // namespace tbsched

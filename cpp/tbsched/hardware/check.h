// Checks of a device. All of them throw std::invalid_argument, which names the field, the value and
// the limit.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "tbsched/hardware/device_spec.h"

namespace tbsched {

// Refuses a device whose fields are out of range, or contradict each other.
void check(const DeviceSpec& spec);

// Refuses values that contradict NVIDIA's documentation for the device's compute capability, except
// for fields whose paths ("limits.warps_per_sm") are in `measured`.
void check_documented(const DeviceSpec& spec, const std::set<std::string>& measured);

// Refuses a number that is outside of the range of its field. `value`: the number in digits.
[[noreturn]] void refuse_outside(const Field& field, std::string_view value);
// Returns the layout of a name that a spec gives to a field.
Layout layout_named(const Field& field, std::string_view name);

}  // namespace tbsched

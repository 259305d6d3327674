// A device from Python: anything with the attributes of tbsched.DeviceSpec.
#pragma once

#include <pybind11/pybind11.h>

#include "tbsched/hardware/device_spec.h"

namespace tbsched {

// Returns the spec that has the attributes of `device`, whose types are those of the fields. A
// number that is too large for its field throws std::invalid_argument.
DeviceSpec spec_of(const pybind11::object& device);

// Adds the checks of devices to the module.
void bind_device_spec(pybind11::module_& module);

}  // namespace tbsched

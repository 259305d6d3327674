// A device from Python: anything with the attributes of tbsched.DeviceSpec.
#pragma once

#include <pybind11/pybind11.h>

#include "tbsched/hardware/device_spec.h"

namespace tbsched {

// The types of the attributes are those of the fields. A number that is too large for its field
// throws std::invalid_argument.
DeviceSpec spec_of(const pybind11::object& device);

void bind_device_spec(pybind11::module_& module);

}  // namespace tbsched

// Capacity and coresidency for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace tbsched {

// Adds the questions whether launches are resident together to the module.
void bind_together(pybind11::module_& module);

}  // namespace tbsched

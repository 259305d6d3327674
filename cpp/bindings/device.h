// Devices, policies and latent states for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace tbsched {

// Adds models, initial states, policies and green context splits to the module.
void bind_device(pybind11::module_& module);

}  // namespace tbsched

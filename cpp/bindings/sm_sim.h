// The simulator of warp schedulers, caches and memory for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace tbsched {

// Adds the simulator and its parameters, counters and schedulers to the module.
void bind_sm_sim(pybind11::module_& module);

}  // namespace tbsched

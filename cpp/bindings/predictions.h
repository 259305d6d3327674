// Predictions for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace tbsched {

// Adds sequences and their predictions to the module.
void bind_predictions(pybind11::module_& module);

}  // namespace tbsched

// tbsched._core: the predictor for Python. Specs and sequences come validated from the Python side.
#include <pybind11/pybind11.h>

#include "bindings/device.h"
#include "bindings/predictions.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The predictor: state of the SMs, policies and the loop over events.";
  tbsched::bind_device(module);
  tbsched::bind_predictions(module);
}

// tbsched._core: the predictor for Python. Sequences come validated from the Python side.
#include <pybind11/pybind11.h>

#include "bindings/device.h"
#include "bindings/device_spec.h"
#include "bindings/neighbours.h"
#include "bindings/predictions.h"
#include "bindings/sm_sim.h"
#include "bindings/together.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The predictor: state of the SMs, policies and the loop over events.";
  tbsched::bind_device_spec(module);
  tbsched::bind_device(module);
  tbsched::bind_neighbours(module);
  tbsched::bind_predictions(module);
  tbsched::bind_sm_sim(module);
  tbsched::bind_together(module);
}

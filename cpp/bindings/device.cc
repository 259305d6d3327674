#include "bindings/device.h"

#include <pybind11/stl.h>

#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "bindings/device_spec.h"
#include "tbsched/policy/launch_order.h"
#include "tbsched/policy/model.h"

namespace py = pybind11;

namespace tbsched {
namespace {

const PolicyRow& policy_named(const std::string& name) {
  if (const PolicyRow* const row = find_policy(name)) return *row;
  std::ostringstream message;
  message << "policy: '" << name << "' is unknown; there are";
  const char* separator = " ";
  for (const PolicyRow& row : policy_table()) {
    message << std::exchange(separator, ", ") << row.name;
  }
  throw py::value_error(message.str());
}

template <typename Row>
py::list rows_in_python(const std::span<const Row> table) {
  py::list rows;
  for (const Row& row : table) rows.append(py::make_tuple(row.name, row.summary, row.source));
  return rows;
}

}  // namespace

void bind_device(py::module_& module) {
  py::class_<Model>(module, "Model")
      .def(py::init([](const py::object& spec, const std::string& policy) {
             return std::make_unique<Model>(spec_of(spec), policy_named(policy));
           }),
           py::arg("spec"), py::arg("policy"));

  py::class_<InitialState>(module, "InitialState")
      .def(py::init<int32_t, int32_t>(), py::arg("first_gpc"), py::arg("first_singleton"));

  module.def(
      "policies", [] { return rows_in_python(policy_table()); },
      "The policy table: (name, summary, source) per row.");
  module.def(
      "launch_orders", [] { return rows_in_python(launch_order_table()); },
      "The orders of launches: (name, summary, source) per row.");
}

}  // namespace tbsched

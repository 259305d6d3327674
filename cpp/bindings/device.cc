#include "bindings/device.h"

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "bindings/device_spec.h"
#include "bindings/python_policy.h"
#include "tbsched/hardware/gpu/partitions.h"
#include "tbsched/policy/launch_order.h"
#include "tbsched/policy/model.h"

namespace py = pybind11;

namespace tbsched {
namespace {

// Returns (name, summary, source) of each row of a table.
template <typename Row>
py::list rows_in_python(const std::span<const Row> table) {
  py::list rows;
  for (const Row& row : table) rows.append(py::make_tuple(row.name, row.summary, row.source));
  return rows;
}

// Returns each initial state with its components by name.
py::list states_in_python(const Model& model) {
  py::list result;
  for (const InitialState& state : model.states()) {
    py::dict components;
    size_t index = 0;
    for (const std::string_view name : model.policy().state_names) {
      components[py::cast(name)] = state.components[index++];
    }
    result.append(py::make_tuple(state, std::move(components)));
  }
  return result;
}

// Returns the names of the components of a state, by row of the policy table.
py::list state_names_in_python() {
  py::list result;
  for (const PolicyRow& row : policy_table()) {
    py::list names;
    for (const std::string_view name : row.state_names) names.append(name);
    result.append(py::tuple(std::move(names)));
  }
  return result;
}

}  // namespace

void bind_device(py::module_& module) {
  py::class_<Model>(module, "Model")
      .def(py::init([](const py::object& spec,
                       const std::variant<std::string_view, py::function>& policy) {
             const auto* const name = std::get_if<std::string_view>(&policy);
             return name ? std::make_unique<Model>(spec_of(spec), *name)
                         : std::make_unique<Model>(spec_of(spec),
                                                   python_policy(std::get<py::function>(policy)));
           }),
           py::arg("spec"), py::arg("policy"))
      .def("states", &states_in_python,
           "The latent states of an idle device, each with its components by name.")
      .def(
          "processing_blocks",
          [](const Model& model) { return model.device().spec.processing_blocks; },
          "How many of them an SM has as the policy sees it.");

  py::class_<InitialState>(module, "InitialState");

  module.def(
      "split_sms",
      [](const py::object& spec, const int32_t min_sms, const std::optional<int32_t> groups,
         const bool ignore_coscheduling, const bool max_cluster) {
        Split split = split_sms(spec_of(spec), {min_sms, groups, ignore_coscheduling, max_cluster});
        std::vector<std::vector<int32_t>> groups_sms;
        for (SplitGroup& group : split.groups) groups_sms.push_back(std::move(group.sms));
        return py::make_tuple(std::move(groups_sms), std::move(split.rest));
      },
      py::arg("spec"), py::arg("min_sms"), py::arg("groups"), py::arg("ignore_coscheduling"),
      py::arg("max_cluster"), "The SMs of each group of a green context split, and of the rest.");

  module.def(
      "policies", [] { return rows_in_python(policy_table()); },
      "The policy table: (name, summary, source) per row.");
  module.def("state_names", &state_names_in_python,
             "The names of the components of a latent state, per row of the policy table.");
  module.def(
      "launch_orders", [] { return rows_in_python(launch_order_table()); },
      "The orders of launches: (name, summary, source) per row.");
}

}  // namespace tbsched

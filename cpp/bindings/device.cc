#include "bindings/device.h"

#include <pybind11/stl.h>

#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>

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

Layout layout_named(const std::string& name) {
  if (name == "contiguous") return Layout::contiguous;
  if (name == "circular") return Layout::circular;
  if (name == "pooled") return Layout::pooled;
  throw py::value_error("layout: '" + name + "' is not one of contiguous, circular, pooled");
}

template <typename Row>
py::list rows_in_python(const std::span<const Row> table) {
  py::list rows;
  for (const Row& row : table) rows.append(py::make_tuple(row.name, row.summary, row.source));
  return rows;
}

}  // namespace

void bind_device(py::module_& module) {
  py::class_<Mechanisms>(module, "Mechanisms")
      .def(py::init([](const bool strict_round_robin, const bool warp_skip,
                       const std::string& registers, const std::string& shared_memory,
                       const bool shared_memory_configuration, const bool configuration_per_tpc,
                       const bool configuration_headroom,
                       const bool explicit_carveout_is_upper_bound,
                       const bool local_memory_configuration, const bool clusters_seek_idle_sms,
                       const bool clusters_take_whole_tpcs) {
             return Mechanisms{.strict_round_robin = strict_round_robin,
                               .warp_skip = warp_skip,
                               .registers = layout_named(registers),
                               .shared_memory = layout_named(shared_memory),
                               .shared_memory_configuration = shared_memory_configuration,
                               .configuration_per_tpc = configuration_per_tpc,
                               .configuration_headroom = configuration_headroom,
                               .explicit_carveout_is_upper_bound = explicit_carveout_is_upper_bound,
                               .local_memory_configuration = local_memory_configuration,
                               .clusters_seek_idle_sms = clusters_seek_idle_sms,
                               .clusters_take_whole_tpcs = clusters_take_whole_tpcs};
           }),
           py::kw_only(), py::arg("strict_round_robin"), py::arg("warp_skip"), py::arg("registers"),
           py::arg("shared_memory"), py::arg("shared_memory_configuration"),
           py::arg("configuration_per_tpc"), py::arg("configuration_headroom"),
           py::arg("explicit_carveout_is_upper_bound"), py::arg("local_memory_configuration"),
           py::arg("clusters_seek_idle_sms"), py::arg("clusters_take_whole_tpcs"));

  py::class_<DeviceSpec>(module, "DeviceSpec")
      .def(py::init([](std::string name, std::vector<int32_t> tpc_of_sm,
                       std::vector<int32_t> gpc_of_sm, std::vector<int32_t> sm_preference,
                       const int32_t processing_blocks, const int32_t blocks_per_sm,
                       const int32_t cluster_blocks_per_sm, const int32_t warps_per_sm,
                       const int32_t registers_per_sm, const int32_t register_unit,
                       const int32_t shared_memory_unit, const int32_t shared_memory_reserve,
                       std::vector<int32_t> shared_memory_configurations,
                       const int32_t local_memory_initial, const int32_t local_memory_unit,
                       const Mechanisms& mechanisms, std::string launch_order,
                       const int32_t hardware_queues, const int32_t resident_grids,
                       const int64_t launch_latency_ns, const int64_t completion_latency_ns,
                       const int64_t exit_latency_ns, const int64_t event_latency_ns,
                       const int64_t legacy_latency_ns, const int64_t launch_switch_ns) {
             return DeviceSpec{
                 .name = std::move(name),
                 .topology = {std::move(tpc_of_sm), std::move(gpc_of_sm), std::move(sm_preference)},
                 .processing_blocks = processing_blocks,
                 .blocks_per_sm = blocks_per_sm,
                 .cluster_blocks_per_sm = cluster_blocks_per_sm,
                 .warps_per_sm = warps_per_sm,
                 .registers_per_sm = registers_per_sm,
                 .register_unit = register_unit,
                 .shared_memory_unit = shared_memory_unit,
                 .shared_memory_reserve = shared_memory_reserve,
                 .shared_memory_configurations = std::move(shared_memory_configurations),
                 .local_memory_initial = local_memory_initial,
                 .local_memory_unit = local_memory_unit,
                 .mechanisms = mechanisms,
                 .launch_order = std::move(launch_order),
                 .hardware_queues = hardware_queues,
                 .resident_grids = resident_grids,
                 .launch_latency_ns = launch_latency_ns,
                 .completion_latency_ns = completion_latency_ns,
                 .exit_latency_ns = exit_latency_ns,
                 .event_latency_ns = event_latency_ns,
                 .legacy_latency_ns = legacy_latency_ns,
                 .launch_switch_ns = launch_switch_ns};
           }),
           py::kw_only(), py::arg("name"), py::arg("tpc_of_sm"), py::arg("gpc_of_sm"),
           py::arg("sm_preference"), py::arg("processing_blocks"), py::arg("blocks_per_sm"),
           py::arg("cluster_blocks_per_sm"), py::arg("warps_per_sm"), py::arg("registers_per_sm"),
           py::arg("register_unit"), py::arg("shared_memory_unit"),
           py::arg("shared_memory_reserve"), py::arg("shared_memory_configurations"),
           py::arg("local_memory_initial"), py::arg("local_memory_unit"), py::arg("mechanisms"),
           py::arg("launch_order"), py::arg("hardware_queues"), py::arg("resident_grids"),
           py::arg("launch_latency_ns"), py::arg("completion_latency_ns"),
           py::arg("exit_latency_ns"), py::arg("event_latency_ns"), py::arg("legacy_latency_ns"),
           py::arg("launch_switch_ns"));

  py::class_<Model>(module, "Model")
      .def(py::init([](const DeviceSpec& spec, const std::string& policy) {
             return std::make_unique<Model>(spec, policy_named(policy));
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

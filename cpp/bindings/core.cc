// tbsched._core: the predictor for Python. Specs and sequences come validated from the Python side.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/event_table.h"
#include "tbsched/engine/bulk/bulk.h"
#include "tbsched/engine/bulk/matching_state.h"
#include "tbsched/engine/predict.h"
#include "tbsched/policy/launch_order.h"
#include "tbsched/policy/model.h"

namespace py = pybind11;

// A sequence is built event by event; it is never converted from a list.
PYBIND11_MAKE_OPAQUE(tbsched::Sequence)

namespace tbsched {
namespace {

// The vector's memory becomes the array's, without a copy.
template <typename Value>
py::array_t<Value> to_array(std::vector<Value>&& values) {
  auto owned = std::make_unique<std::vector<Value>>(std::move(values));
  const py::capsule keeper(owned.get(),
                           [](void* data) { delete static_cast<std::vector<Value>*>(data); });
  const std::vector<Value>& kept = *owned.release();
  return py::array_t<Value>(static_cast<py::ssize_t>(kept.size()), kept.data(), keeper);
}

// One member of each row as an array.
template <typename Row, typename Value>
py::array_t<Value> column(const std::vector<Row>& rows, Value Row::* const member) {
  std::vector<Value> values(rows.size());
  std::ranges::transform(rows, values.begin(), member);
  return to_array(std::move(values));
}

Layout layout_named(const std::string& name) {
  if (name == "contiguous") return Layout::contiguous;
  if (name == "circular") return Layout::circular;
  if (name == "pooled") return Layout::pooled;
  throw py::value_error("layout: '" + name + "' is not one of contiguous, circular, pooled");
}

// What limits the blocks that are not placed, in Python's words.
py::object words(const Refusal refusal) {
  return refusal == Refusal::none ? py::object(py::none()) : py::cast(name(refusal));
}

// Of each launch; blocks that were placed before the next event share one array with those after
// all events if nothing was placed later.
py::list in_python(std::vector<LaunchTrace>&& traces, const bool warp_slots) {
  py::list result;
  for (LaunchTrace& trace : traces) {
    const auto blocks = static_cast<py::ssize_t>(trace.smid.size());
    const py::object slots =
        warp_slots ? to_array(std::move(trace.warp_slots)).reshape({blocks, py::ssize_t{-1}})
                   : py::object(py::none());
    const py::object smid = to_array(std::move(trace.smid));
    const py::object final_smid =
        trace.final_smid.empty() ? smid : to_array(std::move(trace.final_smid));
    result.append(py::make_tuple(smid, final_smid, words(trace.limiter), slots));
  }
  return result;
}

py::tuple in_python(Timeline&& timeline) {
  const std::vector<BlockTime>& blocks = timeline.blocks;
  const std::vector<Wait>& waits = timeline.waits;
  std::vector<int32_t> causes;
  for (const Wait& wait : waits) causes.push_back(static_cast<int32_t>(wait.cause));
  return py::make_tuple(
      py::make_tuple(column(blocks, &BlockTime::sm), column(blocks, &BlockTime::start_ns),
                     column(blocks, &BlockTime::end_ns)),
      py::make_tuple(column(waits, &Wait::launch), column(waits, &Wait::behind),
                     column(waits, &Wait::begin_ns), column(waits, &Wait::end_ns),
                     to_array(std::move(causes))),
      to_array(std::move(timeline.hardware_queue)));
}

py::list predict_in_python(const Model& model, const Sequence& sequence, const InitialState state,
                           const bool warp_slots) {
  std::vector<LaunchTrace> traces;
  {
    const py::gil_scoped_release unlocked;
    traces = predict(model, sequence, state, warp_slots);
  }
  return in_python(std::move(traces), warp_slots);
}

py::tuple timeline_in_python(const Model& model, const Sequence& sequence, const InitialState state,
                             std::vector<int64_t> issue_ns) {
  Timeline timeline;
  {
    const py::gil_scoped_release unlocked;
    timeline = predict_timeline(model, sequence, state, std::move(issue_ns));
  }
  return in_python(std::move(timeline));
}

py::list predict_many_in_python(const Model& model, const std::vector<const Sequence*>& sequences,
                                const InitialState state, const int64_t launch_interval_ns,
                                const bool warp_slots, const int32_t threads) {
  std::vector<Prediction> predictions;
  {
    const py::gil_scoped_release unlocked;
    predictions = predict_many(model, sequences, state, launch_interval_ns, warp_slots, threads);
  }
  py::list result;
  for (Prediction& prediction : predictions) {
    if (auto* const traces = std::get_if<std::vector<LaunchTrace>>(&prediction)) {
      result.append(in_python(std::move(*traces), warp_slots));
    } else {
      result.append(in_python(std::move(std::get<Timeline>(prediction))));
    }
  }
  return result;
}

std::optional<size_t> explain_in_python(const Model& model, const Sequence& sequence,
                                        const std::vector<InitialState>& states,
                                        const Numbers& smid) {
  const std::span seen(smid.data(), static_cast<size_t>(smid.size()));
  const py::gil_scoped_release unlocked;
  return explaining_state(model, sequence, states, seen);
}

py::list until_refused_in_python(const Model& model, const Numbers& cells, const Bounds& bounds,
                                 const InitialState state, const int32_t threads) {
  const EventTable table = event_table(cells, bounds);
  std::vector<UntilRefused> found;
  {
    const py::gil_scoped_release unlocked;
    found = predict_until_refused(model, table, state, threads);
  }
  py::list result;
  for (UntilRefused& one : found) {
    result.append(py::make_tuple(to_array(std::move(one.smid)), one.events));
  }
  return result;
}

std::vector<int32_t> explain_many_in_python(const Model& model, const Numbers& cells,
                                            const Bounds& bounds,
                                            const std::vector<InitialState>& states,
                                            const std::vector<Numbers>& smid,
                                            const int32_t threads) {
  const EventTable table = event_table(cells, bounds);
  if (smid.size() != table.sequences()) {
    throw py::value_error("smid: an array for each sequence is needed");
  }
  std::vector<std::span<const int32_t>> seen;
  for (const Numbers& blocks : smid) {
    seen.emplace_back(blocks.data(), static_cast<size_t>(blocks.size()));
  }
  const py::gil_scoped_release unlocked;
  return explaining_states(model, table, states, seen, threads);
}

py::list capacities_in_python(const Model& model, const Sequence& sequence,
                              const InitialState state) {
  py::list result;
  for (const auto& rooms : capacities(model, sequence, state)) {
    std::vector<int32_t> blocks;
    py::tuple limiters(rooms.size());
    for (size_t sm = 0; sm < rooms.size(); ++sm) {
      blocks.push_back(rooms[sm].blocks);
      limiters[sm] = name(rooms[sm].limiter);
    }
    result.append(py::make_tuple(to_array(std::move(blocks)), limiters));
  }
  return result;
}

template <typename Row>
py::list rows_in_python(const std::span<const Row> table) {
  py::list rows;
  for (const Row& row : table) rows.append(py::make_tuple(row.name, row.summary, row.source));
  return rows;
}

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

PYBIND11_MODULE(_core, module) {
  module.doc() = "The predictor: state of the SMs, policies and the loop over events.";

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
                       const int32_t max_cluster, const Mechanisms& mechanisms,
                       std::string launch_order, const int32_t hardware_queues,
                       const int32_t resident_grids, const int64_t launch_latency_ns,
                       const int64_t completion_latency_ns, const int64_t exit_latency_ns,
                       const int64_t event_latency_ns, const int64_t legacy_latency_ns,
                       const int64_t launch_switch_ns) {
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
                 .max_cluster = max_cluster,
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
           py::arg("local_memory_initial"), py::arg("local_memory_unit"), py::arg("max_cluster"),
           py::arg("mechanisms"), py::arg("launch_order"), py::arg("hardware_queues"),
           py::arg("resident_grids"), py::arg("launch_latency_ns"),
           py::arg("completion_latency_ns"), py::arg("exit_latency_ns"),
           py::arg("event_latency_ns"), py::arg("legacy_latency_ns"), py::arg("launch_switch_ns"));

  py::class_<Model>(module, "Model")
      .def(py::init<const DeviceSpec&, std::string_view>(), py::arg("spec"), py::arg("policy"))
      .def("states", &states_in_python,
           "The latent states of an idle device, each with its components by name.");

  py::class_<InitialState>(module, "InitialState");

  py::class_<Sequence>(module, "Sequence")
      .def(py::init<>())
      .def(
          "launch",
          [](Sequence& self, const int32_t blocks, const int32_t threads, const int32_t registers,
             const int32_t shared_memory, const int32_t local_memory,
             const std::optional<int32_t> carveout, const int32_t cluster,
             const std::optional<int32_t> stream, const int32_t priority,
             const std::optional<py::array_t<int64_t, py::array::c_style>>& duration_ns) {
            Launch launch{.blocks = blocks,
                          .threads = threads,
                          .registers = registers,
                          .shared_memory = shared_memory,
                          .local_memory = local_memory,
                          .carveout = carveout,
                          .cluster = cluster,
                          .stream = stream,
                          .priority = priority};
            if (duration_ns) {
              launch.duration_ns = {duration_ns->data(), duration_ns->data() + duration_ns->size()};
            }
            self.emplace_back(std::move(launch));
          },
          py::arg("blocks"), py::arg("threads"), py::arg("registers"), py::arg("shared_memory"),
          py::arg("local_memory"), py::arg("carveout").none(true), py::arg("cluster"),
          py::arg("stream").none(true), py::arg("priority"), py::arg("duration_ns").none(true))
      .def(
          "release",
          [](Sequence& self, const int32_t launch) {
            self.emplace_back(Release{.launch = launch});
          },
          py::arg("launch"))
      .def(
          "record_event",
          [](Sequence& self, const int32_t event, const int32_t stream) {
            self.emplace_back(RecordEvent{.event = event, .stream = stream});
          },
          py::arg("event"), py::arg("stream"))
      .def(
          "wait_event",
          [](Sequence& self, const int32_t event, const int32_t stream) {
            self.emplace_back(WaitEvent{.event = event, .stream = stream});
          },
          py::arg("event"), py::arg("stream"));
  module.attr("LEGACY_STREAM") = kLegacyStream;

  module.def("predict", &predict_in_python, py::arg("model"), py::arg("sequence"), py::arg("state"),
             py::arg("warp_slots"),
             "A list of (smid, final_smid, limiter, warp_slots) per launch; the arrays are int32 "
             "(blocks,), the last (blocks, warps) or None.");
  module.def("predict_many", &predict_many_in_python, py::arg("model"), py::arg("sequences"),
             py::arg("state"), py::arg("launch_interval_ns"), py::arg("warp_slots"),
             py::arg("threads"),
             "For each sequence what predict() or, where launches have durations, "
             "predict_timeline() returns.");
  module.def("explaining_state", &explain_in_python, py::arg("model"), py::arg("sequence"),
             py::arg("states"), py::arg("smid"),
             "The index of the first state that puts every block where `smid` has it, or None.");
  module.def(
      "predict_until_refused", &until_refused_in_python, py::arg("model"), py::arg("cells"),
      py::arg("bounds"), py::arg("state"), py::arg("threads"),
      "For each sequence of a table of events the SMs of all blocks, and how many events: up "
      "to and with the first launch that is not placed whole.");
  module.def("explaining_states", &explain_many_in_python, py::arg("model"), py::arg("cells"),
             py::arg("bounds"), py::arg("states"), py::arg("smid"), py::arg("threads"),
             "For each sequence of a table of events the index of the first state that puts every "
             "block where `smid` has it, or -1.");
  module.def("capacities", &capacities_in_python, py::arg("model"), py::arg("sequence"),
             py::arg("state"), "A list of (blocks, limiter) per launch; both are per SM.");
  module.def(
      "predict_timeline", &timeline_in_python, py::arg("model"), py::arg("sequence"),
      py::arg("state"), py::arg("issue_ns"),
      "Three things: of each block its SM, start and end; of each wait its launch, whom it is "
      "behind, begin, end and cause; and the hardware queue of each launch.");
  module.def(
      "policies", [] { return rows_in_python(policy_table()); },
      "The policy table: (name, summary, source) per row.");
  module.def("state_names", &state_names_in_python,
             "The names of the components of a latent state, per row of the policy table.");
  module.def(
      "launch_orders", [] { return rows_in_python(launch_order_table()); },
      "The orders of launches: (name, summary, source) per row.");
  py::list causes;
  for (const std::string_view cause : kRefusalNames) causes.append(cause);
  module.attr("CAUSES") = py::tuple(causes);
}

}  // namespace tbsched

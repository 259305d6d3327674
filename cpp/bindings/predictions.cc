#include "bindings/predictions.h"

#include <pybind11/numpy.h>

#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/event_table.h"
#include "bindings/events.h"
#include "bindings/neighbours.h"
#include "bindings/signals.h"
#include "tbsched/engine/bulk/as_recorded.h"
#include "tbsched/engine/bulk/bulk.h"
#include "tbsched/engine/bulk/matching_state.h"
#include "tbsched/engine/bulk/outcomes.h"
#include "tbsched/engine/bulk/shortest.h"
#include "tbsched/engine/predict.h"
#include "tbsched/sim/clock.h"
#include "tbsched/sim/copy_engines.h"
#include "tbsched/sim/driver_kernels.h"
#include "tbsched/sim/time_slicing.h"

namespace py = pybind11;

namespace tbsched {
namespace {

// Returns the name of a cause; None if there is none.
py::object cause_name(const Refusal refusal) {
  return refusal == Refusal::none ? py::object(py::none()) : py::cast(name(refusal));
}

// Returns the traces by launch. Blocks placed before the next event share one array with those
// after all events if nothing was placed later.
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
    result.append(py::make_tuple(smid, final_smid, cause_name(trace.limiter), slots));
  }
  return result;
}

// Returns a name as Python's string: the inverse of utf8_of() in events.cc.
py::str text(const std::string& utf8) {
  PyObject* const string =
      PyUnicode_DecodeUTF8(utf8.data(), static_cast<py::ssize_t>(utf8.size()), "surrogatepass");
  if (string == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(string);
}

// Returns None, or of each launch that hangs (launch, started, cause, behind), the events whose
// calls never return, and of each value that a stream waits for (GPU, name, value, what it is).
py::object in_python(const std::optional<Hang>& hang) {
  if (!hang) return py::none();
  py::list launches;
  for (const HungLaunch& hung : hang->launches) {
    launches.append(py::make_tuple(hung.launch, hung.started, cause_name(hung.cause), hung.behind));
  }
  py::list values;
  for (const AwaitedValue& value : hang->values) {
    values.append(py::make_tuple(value.gpu, text(value.name), value.value, value.current));
  }
  return py::make_tuple(launches, hang->calls, values);
}

// Returns a timeline as what bind_predictions() says of predict_timeline.
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
                     to_array(std::move(causes)), column(waits, &Wait::limiters)),
      to_array(std::move(timeline.hardware_queue)),
      timeline.issued_ns.empty() ? py::object(py::none()) : to_array(std::move(timeline.issued_ns)),
      py::make_tuple(column(timeline.transfers, &TransferTime::start_ns),
                     column(timeline.transfers, &TransferTime::end_ns)),
      py::make_tuple(column(timeline.calls, &CallTime::begin_ns),
                     column(timeline.calls, &CallTime::end_ns)),
      in_python(timeline.hang));
}

// Predicts where the blocks of a sequence of held launches go. Returns the traces by launch.
py::list predict_in_python(const Model& model, const Sequence& sequence, const InitialState state,
                           const bool warp_slots) {
  std::vector<LaunchTrace> traces;
  {
    const Unlocked unlocked;
    traces = predict(model, sequence, state, warp_slots);
  }
  return in_python(std::move(traces), warp_slots);
}

// Returns, for each distinct outcome of the races: its traces, how many races had it, and whether
// the deadline came before all were simulated.
py::list outcomes_in_python(const Model& model, const Sequence& sequence, const InitialState state,
                            const int32_t races, const double seconds) {
  std::vector<Outcome> distinct;
  {
    const Unlocked unlocked;
    distinct = outcomes(model, sequence, state, races, Deadline(seconds));
  }
  py::list result;
  for (Outcome& outcome : distinct) {
    result.append(
        py::make_tuple(in_python(std::move(outcome.launches), false), outcome.races, outcome.cut));
  }
  return result;
}

// Predicts where blocks go if races end as they were recorded. Returns the traces by launch.
// `seen`: by launch, the SMs before the next event and after all events.
py::list as_recorded_in_python(const Model& model, const Sequence& sequence,
                               const InitialState state,
                               const std::vector<std::pair<Numbers, Numbers>>& seen) {
  const auto span = [](const Numbers& blocks) {
    return std::span(blocks.data(), static_cast<size_t>(blocks.size()));
  };
  std::vector<SeenLaunch> launches;
  for (const auto& [smid, final_smid] : seen) launches.push_back({span(smid), span(final_smid)});
  std::vector<LaunchTrace> traces;
  {
    const Unlocked unlocked;
    traces = predict_as_recorded(model, sequence, state, launches);
  }
  return in_python(std::move(traces), false);
}

using Times = std::optional<std::vector<int64_t>>;

// Returns when hosts make their calls, of what tbsched.prediction.calls gives: times, gaps, or an
// interval.
HostCalls to_calls(Times&& issue_ns, Times&& gap_ns, const int64_t interval_ns, Times&& called_ns) {
  if (issue_ns) {
    return CallTimes{std::move(*issue_ns), std::move(called_ns).value_or(std::vector<int64_t>{})};
  }
  if (gap_ns) return CallGaps{std::move(*gap_ns)};
  return CallIntervals{interval_ns};
}

// Predicts a timed sequence. Returns its timeline with a row for each block.
py::tuple timeline_in_python(const Model& model, const Sequence& sequence, const InitialState state,
                             Times issue_ns, Times gap_ns, const int64_t interval_ns,
                             Times called_ns, std::vector<int32_t> turns,
                             const GivenNeighbours& neighbours) {
  HostCalls calls =
      to_calls(std::move(issue_ns), std::move(gap_ns), interval_ns, std::move(called_ns));
  Timeline timeline;
  {
    const Unlocked unlocked;
    const std::optional<Neighbours> known = to_neighbours(neighbours);
    timeline = predict_timeline(model, sequence, state, std::move(calls), std::move(turns),
                                known ? &*known : nullptr);
  }
  return in_python(std::move(timeline));
}

// Predicts a timed sequence. Returns its timeline with a row for each launch.
py::tuple launches_in_python(const Model& model, const Sequence& sequence, const InitialState state,
                             Times issue_ns, Times gap_ns, const int64_t interval_ns,
                             Times called_ns) {
  HostCalls calls =
      to_calls(std::move(issue_ns), std::move(gap_ns), interval_ns, std::move(called_ns));
  Timeline timeline;
  {
    const Unlocked unlocked;
    timeline =
        predict_timeline(model, sequence, state, std::move(calls), {}, nullptr, Detail::launches);
  }
  return in_python(std::move(timeline));
}

// Models and states of GPUs. Each model outlives its use.
using GivenGpus = std::vector<std::pair<const Model*, InitialState>>;

// Returns the GPUs with which a simulation begins.
std::vector<StartingGpu> to_gpus(const GivenGpus& given) {
  std::vector<StartingGpu> gpus;
  for (const auto& [model, state] : given) gpus.push_back({model, state});
  return gpus;
}

// Predicts a timed sequence over several GPUs. Returns its timeline.
py::tuple timeline_of_gpus_in_python(const GivenGpus& gpus, const Sequence& sequence,
                                     Times issue_ns, Times gap_ns, const int64_t interval_ns,
                                     Times called_ns) {
  HostCalls calls =
      to_calls(std::move(issue_ns), std::move(gap_ns), interval_ns, std::move(called_ns));
  Timeline timeline;
  {
    const Unlocked unlocked;
    timeline = predict_timeline(to_gpus(gpus), sequence, std::move(calls));
  }
  return in_python(std::move(timeline));
}

// Predicts processes that share a GPU. Returns their timelines, and the process, begin and end of
// each turn.
py::tuple processes_in_python(const Model& model, const std::vector<const Sequence*>& programs,
                              const InitialState state,
                              std::vector<std::tuple<Times, Times, int64_t, Times>> given,
                              const std::optional<size_t> last, std::vector<size_t> slots,
                              std::vector<int64_t> slice_ns) {
  std::vector<HostCalls> calls;
  for (auto& [issue_ns, gap_ns, interval_ns, called_ns] : given) {
    calls.push_back(
        to_calls(std::move(issue_ns), std::move(gap_ns), interval_ns, std::move(called_ns)));
  }
  ProcessTimelines processes;
  {
    const Unlocked unlocked;
    processes = predict_processes(model, programs, state, std::move(calls), last,
                                  {std::move(slots), std::move(slice_ns)});
  }
  const std::vector<Turn>& turns = processes.turns;
  py::list timelines;
  for (Timeline& timeline : processes.timelines) timelines.append(in_python(std::move(timeline)));
  return py::make_tuple(timelines, column(turns, &Turn::process), column(turns, &Turn::begin_ns),
                        column(turns, &Turn::end_ns));
}

// Predicts every sequence separately. Returns, for each, its traces or its timeline.
py::list predict_many_in_python(const Model& model, const std::vector<const Sequence*>& sequences,
                                const InitialState state, const int64_t launch_interval_ns,
                                const bool warp_slots, const int32_t threads) {
  std::vector<Prediction> predictions;
  {
    const Unlocked unlocked;
    predictions = predict_many(model, sequences, state, launch_interval_ns, warp_slots, threads);
  }
  py::list result;
  for (Prediction& prediction : predictions) {
    std::visit(Overloaded{
                   [&](std::vector<LaunchTrace>& traces) {
                     result.append(in_python(std::move(traces), warp_slots));
                   },
                   [&](Timeline& timeline) { result.append(in_python(std::move(timeline))); },
               },
               prediction);
  }
  return result;
}

// Returns the index of the first state that puts every block where it was seen; none: no state
// does.
std::optional<size_t> matching_state_in_python(const Model& model, const Sequence& sequence,
                                               const std::vector<InitialState>& states,
                                               const Numbers& smid) {
  const std::span seen(smid.data(), static_cast<size_t>(smid.size()));
  const Unlocked unlocked;
  return matching_state(model, sequence, states, seen);
}

// Predicts each sequence of a table up to the first launch that is not placed whole. Returns, for
// each, the SMs of all blocks, the number of events, and what refused blocks.
py::list until_refused_in_python(const Model& model, const Numbers& cells, const Bounds& bounds,
                                 const py::tuple& partitions, const InitialState state,
                                 const int32_t threads) {
  const EventTable table = event_table(cells, bounds, partitions);
  std::vector<UntilRefused> predictions;
  {
    const Unlocked unlocked;
    predictions = predict_until_refused(model, table, state, threads);
  }
  py::list result;
  for (UntilRefused& prediction : predictions) {
    result.append(py::make_tuple(to_array(std::move(prediction.smid)), prediction.events,
                                 cause_name(prediction.limiter)));
  }
  return result;
}

// Returns, for sequences of one launch each, how many of its blocks the driver would allow if it
// were cooperative.
std::vector<int32_t> allowed_at_once_in_python(const Model& model, const Numbers& cells,
                                               const Bounds& bounds, const py::tuple& partitions) {
  const EventTable table = event_table(cells, bounds, partitions);
  const Unlocked unlocked;
  return allowed_at_once(model, table);
}

// Returns, for each sequence of a table, the index of the first state that puts every block where
// it was seen, or -1.
std::vector<int32_t> matching_states_in_python(const Model& model, const Numbers& cells,
                                               const Bounds& bounds, const py::tuple& partitions,
                                               const std::vector<InitialState>& states,
                                               const std::vector<Numbers>& smid,
                                               const int32_t threads) {
  const EventTable table = event_table(cells, bounds, partitions);
  std::vector<std::span<const int32_t>> seen;
  for (const Numbers& blocks : smid) {
    seen.emplace_back(blocks.data(), static_cast<size_t>(blocks.size()));
  }
  const Unlocked unlocked;
  return matching_states(model, table, states, seen, threads);
}

// Returns the first of the orders with the shortest makespan, and that in ns; none: none is below
// the limit.
std::optional<std::pair<size_t, int64_t>> shortest_order_in_python(
    const Model& model, const Sequence& sequence, const Numbers& orders, const InitialState state,
    Times gap_ns, const int64_t interval_ns, const int64_t limit_ns, const int32_t threads) {
  const std::span rows(orders.data(), static_cast<size_t>(orders.size()));
  const HostCalls calls = to_calls(std::nullopt, std::move(gap_ns), interval_ns, std::nullopt);
  const Unlocked unlocked;
  const std::optional<Shortest> shortest =
      shortest_order(model, sequence, rows, state, calls, limit_ns, threads);
  if (!shortest) return std::nullopt;
  return std::pair(shortest->order, shortest->makespan_ns);
}

// Returns the contents of SMs as columns; the warps of a row are those in each processing block.
py::tuple in_python(Snapshot&& snapshot, const Model& model) {
  const size_t processing_blocks = model.device().spec.processing_blocks;
  std::vector<int32_t> launch, sm, blocks, warps, registers, shared_memory;
  std::vector<uint64_t> warp_slots;
  for (const auto& [owner, footprint] : snapshot.blocks) {
    launch.push_back(owner);
    sm.push_back(footprint.sm);
    blocks.push_back(footprint.blocks);
    warp_slots.push_back(footprint.warp_slots);
    warps.insert(warps.end(), footprint.warps.begin(), footprint.warps.begin() + processing_blocks);
  }
  for (const Demand& demand : snapshot.demands) {
    registers.push_back(demand.registers_per_warp);
    shared_memory.push_back(demand.shared_memory);
  }
  const py::array rows = to_array(std::move(warps));
  return py::make_tuple(
      py::make_tuple(to_array(std::move(launch)), to_array(std::move(sm)),
                     to_array(std::move(blocks)),
                     rows.attr("reshape")(-1, static_cast<py::ssize_t>(processing_blocks)),
                     to_array(std::move(warp_slots))),
      py::make_tuple(column(snapshot.pieces, &SharedMemoryPiece::launch),
                     column(snapshot.pieces, &SharedMemoryPiece::sm),
                     column(snapshot.pieces, &SharedMemoryPiece::begin),
                     column(snapshot.pieces, &SharedMemoryPiece::end)),
      to_array(std::move(snapshot.configured)), to_array(std::move(snapshot.turns)),
      to_array(std::move(registers)), to_array(std::move(shared_memory)));
}

// Returns the contents of every SM after so many events of a sequence.
py::tuple snapshot_after_in_python(const Model& model, const Sequence& sequence,
                                   const InitialState state, const size_t events) {
  Snapshot snapshot;
  {
    const Unlocked unlocked;
    snapshot = snapshot_after(model, sequence, state, events);
  }
  return in_python(std::move(snapshot), model);
}

// Returns the contents of every SM at a time of a timed sequence.
py::tuple snapshot_at_in_python(const Model& model, const Sequence& sequence,
                                const InitialState state, Times issue_ns, Times gap_ns,
                                const int64_t interval_ns, Times called_ns, const int64_t at_ns,
                                const GivenNeighbours& neighbours) {
  HostCalls calls =
      to_calls(std::move(issue_ns), std::move(gap_ns), interval_ns, std::move(called_ns));
  Snapshot snapshot;
  {
    const Unlocked unlocked;
    const std::optional<Neighbours> known = to_neighbours(neighbours);
    snapshot =
        snapshot_at(model, sequence, state, std::move(calls), at_ns, known ? &*known : nullptr);
  }
  return in_python(std::move(snapshot), model);
}

// Returns the contents of every SM of one of several GPUs at a time of a timed sequence.
py::tuple snapshot_of_gpu_in_python(const GivenGpus& gpus, const Sequence& sequence, Times issue_ns,
                                    Times gap_ns, const int64_t interval_ns, Times called_ns,
                                    const int32_t gpu, const int64_t at_ns) {
  HostCalls calls =
      to_calls(std::move(issue_ns), std::move(gap_ns), interval_ns, std::move(called_ns));
  Snapshot snapshot;
  {
    const Unlocked unlocked;
    snapshot = snapshot_at(to_gpus(gpus), sequence, std::move(calls), gpu, at_ns);
  }
  return in_python(std::move(snapshot), *gpus.at(gpu).first);
}

// Whether a copy engine moves the bytes of a copy or memset; and the blocks of the driver's kernel
// for it, and nanoseconds of each, 0 without one.
using TransferNeeds = std::tuple<bool, int32_t, int64_t>;

// Returns what each copy and memset of a sequence that is no node of a graph needs.
std::vector<TransferNeeds> transfers_in_python(const Model& model, const Sequence& sequence) {
  const DeviceSpec& spec = model.device().spec;
  const Clock clock;
  CopyEngines engines(spec, clock);
  std::vector<TransferNeeds> result;
  const auto add = [&](const auto& transfer) {
    const auto index = static_cast<int32_t>(result.size());
    engines.set_transfers(index + 1);
    engines.add(index, transfer);
    const std::optional<Launch> kernel = driver_kernel(spec, transfer);
    result.emplace_back(engines.has_engine(index), kernel ? kernel->blocks : 0,
                        kernel ? kernel->duration_ns.front() : 0);
  };
  for (const Event& event : sequence) {
    std::visit(Overloaded{
                   [&](const Copy& copy) { add(copy); },
                   [&](const Memset& memset) { add(memset); },
                   [](const auto&) {},
               },
               event);
  }
  return result;
}

// Returns, by launch, three arrays per SM: the number of blocks that fit, the limiter of that
// number, and all its limiters.
py::list capacities_in_python(const Model& model, const Sequence& sequence,
                              const InitialState state) {
  py::list result;
  for (const auto& rooms : capacities(model, sequence, state)) {
    std::vector<int32_t> blocks;
    std::vector<uint8_t> limiters;
    std::vector<Refusals> all_limiters;
    for (const LimitedRoom& on_sm : rooms) {
      blocks.push_back(on_sm.room.blocks);
      limiters.push_back(static_cast<uint8_t>(on_sm.room.limiter));
      all_limiters.push_back(on_sm.limiters);
    }
    result.append(py::make_tuple(to_array(std::move(blocks)), to_array(std::move(limiters)),
                                 to_array(std::move(all_limiters))));
  }
  return result;
}

}  // namespace

void bind_predictions(py::module_& module) {
  py::class_<Sequence>(module, "Sequence").def(py::init(&to_sequence), py::arg("events"));

  module.def("predict", &predict_in_python, py::arg("model"), py::arg("sequence"), py::arg("state"),
             py::arg("warp_slots"),
             "A list of (smid, final_smid, limiter, warp_slots) per launch; the arrays are int32 "
             "(blocks,), the last (blocks, warps) or None.");
  module.def("transfers", &transfers_in_python, py::arg("model"), py::arg("sequence"),
             "For each copy and memset that is no node of a graph: whether a copy engine does it, "
             "and the driver's kernel: its blocks, and nanoseconds of each; 0 without a kernel.");
  module.def(
      "outcomes", &outcomes_in_python, py::arg("model"), py::arg("sequence"), py::arg("state"),
      py::arg("races"), py::arg("seconds"),
      "Of so many races, what predict() returns for each outcome, how many races had it, and "
      "whether the time ended before all were played; the likeliest first.");
  module.def("predict_as_recorded", &as_recorded_in_python, py::arg("model"), py::arg("sequence"),
             py::arg("state"), py::arg("seen"),
             "What predict() returns, with each block that finds room while others leave where "
             "it was seen: smid and final_smid per launch.");
  module.def("predict_many", &predict_many_in_python, py::arg("model"), py::arg("sequences"),
             py::arg("state"), py::arg("launch_interval_ns"), py::arg("warp_slots"),
             py::arg("threads"),
             "For each sequence what predict() or, where launches have durations, "
             "predict_timeline() returns.");
  module.def("matching_state", &matching_state_in_python, py::arg("model"), py::arg("sequence"),
             py::arg("states"), py::arg("smid"),
             "The index of the first state that puts every block where `smid` has it, or None.");
  module.def(
      "predict_until_refused", &until_refused_in_python, py::arg("model"), py::arg("cells"),
      py::arg("bounds"), py::arg("partitions"), py::arg("state"), py::arg("threads"),
      "For each sequence of a table of events the SMs of all blocks, and how many events: up "
      "to and with the first launch that is not placed whole; and what refused its blocks.");
  module.def("allowed_at_once", &allowed_at_once_in_python, py::arg("model"), py::arg("cells"),
             py::arg("bounds"), py::arg("partitions"),
             "Of a table of launches, one in each sequence: how many blocks of each the driver "
             "would allow a cooperative launch.");
  module.def("matching_states", &matching_states_in_python, py::arg("model"), py::arg("cells"),
             py::arg("bounds"), py::arg("partitions"), py::arg("states"), py::arg("smid"),
             py::arg("threads"),
             "For each sequence of a table of events the index of the first state that puts every "
             "block where `smid` has it, or -1.");
  module.def("shortest_order", &shortest_order_in_python, py::arg("model"), py::arg("sequence"),
             py::arg("orders"), py::arg("state"), py::arg("gap_ns"), py::arg("interval_ns"),
             py::arg("limit_ns"), py::arg("threads"),
             "The first of the orders, rows of the numbers of all events, of the shortest "
             "makespan, and that in ns; None: none is below the limit. Gaps move with events.");
  module.def("capacities", &capacities_in_python, py::arg("model"), py::arg("sequence"),
             py::arg("state"),
             "A list of (blocks, limiter, limiters) per launch, each an array with an item per SM: "
             "the index among CAUSES of one, and all of them, a bit of that index each.");
  module.def("snapshot_after", &snapshot_after_in_python, py::arg("model"), py::arg("sequence"),
             py::arg("state"), py::arg("events"),
             "What every SM holds after so many events: of each footprint its launch, SM, blocks, "
             "warps per processing block and warp slots; of each piece of shared memory its "
             "launch, SM, begin and end; the configuration and the turn of each SM; registers per "
             "warp and shared memory of each launch.");
  module.def("snapshot_at", &snapshot_at_in_python, py::arg("model"), py::arg("sequence"),
             py::arg("state"), py::arg("issue_ns"), py::arg("gap_ns"), py::arg("interval_ns"),
             py::arg("called_ns"), py::arg("at_ns"), py::arg("neighbours"),
             "The same at so many ns of a timed sequence.");
  module.def(
      "predict_timeline", &timeline_in_python, py::arg("model"), py::arg("sequence"),
      py::arg("state"), py::arg("issue_ns"), py::arg("gap_ns"), py::arg("interval_ns"),
      py::arg("called_ns"), py::arg("turns"), py::arg("neighbours"),
      "Seven things: of each block its SM, start and end; of each wait its launch, whom it is "
      "behind, begin, end, cause, and all causes, a bit each; the hardware queue of each launch; "
      "when the host called for it, or None; of each copy and memset its start and end; and of "
      "each call its begin and end, if gaps are given; and None or, if it hangs, of each launch "
      "that "
      "does (launch, blocks that start, cause, behind), the events whose calls never return, and "
      "of each value that a stream waits for (GPU, name, value, what it is). Of launches that may "
      "go on at the same "
      "time, the one of the least of `turns` is first. With `neighbours` (for each launch its "
      "shares and waits) blocks slow each "
      "other.");
  module.def("predict_launches", &launches_in_python, py::arg("model"), py::arg("sequence"),
             py::arg("state"), py::arg("issue_ns"), py::arg("gap_ns"), py::arg("interval_ns"),
             py::arg("called_ns"),
             "What predict_timeline() returns, but a row for each launch in the place of its "
             "blocks: an SM, the first start and the last end.");
  module.def("predict_gpus", &timeline_of_gpus_in_python, py::arg("gpus"), py::arg("sequence"),
             py::arg("issue_ns"), py::arg("gap_ns"), py::arg("interval_ns"), py::arg("called_ns"),
             "What predict_timeline() returns, for a (model, state) per GPU.");
  module.def("snapshot_of_gpu_at", &snapshot_of_gpu_in_python, py::arg("gpus"), py::arg("sequence"),
             py::arg("issue_ns"), py::arg("gap_ns"), py::arg("interval_ns"), py::arg("called_ns"),
             py::arg("gpu"), py::arg("at_ns"),
             "What snapshot_at() returns, of one of several GPUs.");
  module.def(
      "predict_processes", &processes_in_python, py::arg("model"), py::arg("programs"),
      py::arg("state"), py::arg("calls"), py::arg("last"), py::arg("slots"), py::arg("slice_ns"),
      "What predict_timeline() returns for each program, and of each turn its process, begin "
      "and end. `slots`: the process of each slot of a round. `slice_ns`: by process.");
  py::list causes;
  for (const std::string_view cause : kRefusalNames) causes.append(cause);
  module.attr("MAX_TIMED_BLOCKS") = kMaxTimedBlocks;
  module.attr("CAUSES") = py::tuple(causes);
}

}  // namespace tbsched

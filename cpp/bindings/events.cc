#include "bindings/events.h"

#include <pybind11/gil_safe_call_once.h>
#include <pybind11/numpy.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace py = pybind11;

namespace tbsched {
namespace {

using Nanoseconds = py::array_t<int64_t, py::array::c_style | py::array::forcecast>;

// The name of an attribute, created once.
class Attribute {
 public:
  explicit Attribute(const char* const name) : name_(PyUnicode_InternFromString(name)) {
    if (!name_) throw py::error_already_set();
  }

  // Returns the attribute of an object. The functions below convert it: None to none, and True to a
  // flag.
  py::object of(const py::handle object) const {
    PyObject* const value = PyObject_GetAttr(object.ptr(), name_);
    if (value == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(value);
  }
  int32_t int_of(const py::handle object) const { return to_int32(of(object)); }
  std::optional<int32_t> optional_int_of(const py::handle object) const {
    const py::object value = of(object);
    return value.is_none() ? std::nullopt : std::optional(to_int32(value));
  }
  bool flag_of(const py::handle object) const { return of(object).ptr() == Py_True; }

  // Returns a value of the attribute as an integer. Throws ValueError beyond 32 bits.
  int32_t to_int32(const py::handle value) const {
    const long given = PyLong_AsLong(value.ptr());
    if (given == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    if (!std::in_range<int32_t>(given)) {
      throw py::value_error(std::string(py::str(name_)) + ": " + std::to_string(given) +
                            " is beyond 32 bits");
    }
    return static_cast<int32_t>(given);
  }

 private:
  PyObject* name_;  // lives as long as the process
};

// Values that events share: each becomes one object, however often it occurs.
template <typename Value>
class Cache {
 public:
  // Returns the value of a Python object: convert(given) at the first call for it.
  template <typename Convert>
  std::shared_ptr<const Value> of(const py::handle given, const Convert& convert) {
    if (!given.is(last_)) {
      PyObject* const index = PyDict_GetItemWithError(indices_.ptr(), given.ptr());
      if (PyErr_Occurred() != nullptr) throw py::error_already_set();
      if (index == nullptr) {
        values_.push_back(std::make_shared<const Value>(convert(given)));
        indices_[given] = values_.size() - 1;
      }
      last_ = py::reinterpret_borrow<py::object>(given);
      last_value_ = index == nullptr ? values_.back() : values_[PyLong_AsSize_t(index)];
    }
    return last_value_;
  }

 private:
  py::dict indices_;  // into values_, by Python object
  std::vector<std::shared_ptr<const Value>> values_;
  py::object last_;  // mostly the next one, too
  std::shared_ptr<const Value> last_value_;
};

// Returns a name in UTF-8. A damaged file may have half of a surrogate pair in a name.
std::string utf8_of(const py::handle name) {
  return name.attr("encode")("utf-8", "surrogatepass").cast<std::string>();
}

// What the events of a sequence share.
struct Shared {
  Cache<Partition> partitions;
  Cache<Graph> graphs;
  std::map<std::string, int32_t> kernels;  // by name

  // Returns the number of the kernel of this name; none for None.
  std::optional<int32_t> kernel(const py::handle name) {
    if (name.is_none()) return std::nullopt;
    const auto next = static_cast<int32_t>(kernels.size());
    return kernels.try_emplace(utf8_of(name), next).first->second;
  }
};

Launch launch_of(py::handle launch, Shared& shared);
GraphLaunch graph_launch_of(py::handle launched, Shared& shared);
Copy copy_of(py::handle copy);
Memset memset_of(py::handle memset);
Release release_of(py::handle release);
Synchronize synchronize_of(py::handle awaited);
HostFunction host_function_of(py::handle function);
HostCall host_call_of(py::handle call);
template <typename Mark>
Mark mark_of(py::handle mark);
template <typename OfValue>
OfValue value_event_of(py::handle event);

// A kind of event: its class in tbsched.program.sequence, and its conversion to the core's event.
struct Kind {
  const char* name;
  Event (*convert)(py::handle event, Shared& shared);
};

constexpr std::array kKinds = {
    Kind{"Launch",
         [](const py::handle event, Shared& shared) -> Event { return launch_of(event, shared); }},
    Kind{"Release", [](const py::handle event, Shared&) -> Event { return release_of(event); }},
    Kind{"RecordEvent",
         [](const py::handle event, Shared&) -> Event { return mark_of<RecordEvent>(event); }},
    Kind{"WaitEvent",
         [](const py::handle event, Shared&) -> Event { return mark_of<WaitEvent>(event); }},
    Kind{"GraphLaunch",
         [](const py::handle event, Shared& shared) -> Event {
           return graph_launch_of(event, shared);
         }},
    Kind{"Copy", [](const py::handle event, Shared&) -> Event { return copy_of(event); }},
    Kind{"Memset", [](const py::handle event, Shared&) -> Event { return memset_of(event); }},
    Kind{"Synchronize",
         [](const py::handle event, Shared&) -> Event { return synchronize_of(event); }},
    Kind{"HostFunction",
         [](const py::handle event, Shared&) -> Event { return host_function_of(event); }},
    Kind{"HostCall", [](const py::handle event, Shared&) -> Event { return host_call_of(event); }},
    Kind{
        "WriteValue",
        [](const py::handle event, Shared&) -> Event { return value_event_of<WriteValue>(event); }},
    Kind{"WaitValue",
         [](const py::handle event, Shared&) -> Event { return value_event_of<WaitValue>(event); }},
};
static_assert(kKinds.size() == std::variant_size_v<Event>, "each kind of event has a row");

// Classes and names that are looked up once.
struct Python {
  std::array<PyTypeObject*, kKinds.size()> types{};  // as kKinds; live as long as the process
  Attribute executable{"_executable"};
  Attribute blocks{"blocks"};
  Attribute threads{"threads"};
  Attribute registers{"registers"};
  Attribute shared_memory{"shared_memory"};
  Attribute local_memory{"local_memory"};
  Attribute carveout{"carveout"};
  Attribute cluster{"cluster"};
  Attribute stream{"stream"};
  Attribute priority{"priority"};
  Attribute duration{"duration"};
  Attribute duration_ns{"duration_ns"};
  Attribute partition{"partition"};
  Attribute cooperative{"cooperative"};
  Attribute non_blocking{"non_blocking"};
  Attribute programmatic{"programmatic"};
  Attribute trigger{"trigger"};
  Attribute memory_wait{"memory_wait"};
  Attribute completion_event{"completion_event"};
  Attribute delay{"delay"};
  Attribute first_use{"first_use"};
  Attribute host{"host"};
  Attribute gpu{"gpu"};
  Attribute peer{"peer"};
  Attribute meets{"meets"};
  Attribute in_block_order{"in_block_order"};
  Attribute name{"name"};
  Attribute sms{"sms"};
  Attribute split{"split"};
  Attribute group{"group"};
  Attribute min_sms{"min_sms"};
  Attribute groups{"groups"};
  Attribute ignore_coscheduling{"ignore_coscheduling"};
  Attribute max_cluster{"max_cluster"};
  Attribute graph{"graph"};
  Attribute nodes{"nodes"};
  Attribute bytes{"bytes"};
  Attribute kind{"kind"};
  Attribute pinned{"pinned"};
  Attribute blocking{"blocking"};
  Attribute timing{"timing"};
  Attribute decided_edges{"_decided_edges"};
  Attribute deciders{"_deciders"};
  Attribute as_made{"_as_made"};
  Attribute times{"times"};
  Attribute runs{"_runs"};
  Attribute launch{"launch"};
  Attribute event{"event"};
  Attribute waits{"waits"};
  Attribute holds{"holds"};
  Attribute value{"value"};
  py::str legacy{"legacy"};
  PyTypeObject* copy;
  PyTypeObject* memset;
  PyTypeObject* host_function;
  PyTypeObject* record_event;
  PyTypeObject* wait_event;
  PyTypeObject* conditional;
  PyTypeObject* mem_alloc;
  PyTypeObject* mem_free;

  Python() {
    const py::module_ module = py::module_::import("tbsched.program.sequence");
    const auto type = [&](const char* const name) {
      return reinterpret_cast<PyTypeObject*>(py::object(module.attr(name)).release().ptr());
    };
    for (size_t kind = 0; kind < kKinds.size(); ++kind) types[kind] = type(kKinds[kind].name);
    copy = type("Copy");
    memset = type("Memset");
    host_function = type("HostFunction");
    record_event = type("RecordEvent");
    wait_event = type("WaitEvent");
    conditional = type("Conditional");
    mem_alloc = type("MemAlloc");
    mem_free = type("MemFree");
  }
};

// Returns the classes and names of Python, looked up at the first call.
const Python& python() {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<Python> storage;
  return storage.call_once_and_store_result([] { return Python(); }).get_stored();
}

// Returns the stream of an event: its number, kLegacyStream, or none for None.
std::optional<int32_t> stream_of(const py::handle event) {
  const Python& known = python();
  const py::object stream = known.stream.of(event);
  if (stream.is_none()) return std::nullopt;
  if (!PyUnicode_Check(stream.ptr())) return known.stream.to_int32(stream);
  if (!stream.equal(known.legacy)) {
    throw py::value_error("stream: " + std::string(py::repr(stream)) + " is no stream");
  }
  return kLegacyStream;
}

// Returns the stream of an event that must have one.
int32_t named_stream_of(const py::handle event) {
  const std::optional<int32_t> stream = stream_of(event);
  if (!stream)
    throw py::value_error("stream: None is only for launches, copies, memsets and host functions");
  return *stream;
}

// Returns seconds in nanoseconds, rounded as Launch.duration_ns does.
int64_t nanoseconds(const py::handle seconds) {
  const double given = PyFloat_AsDouble(seconds.ptr());
  if (given == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return static_cast<int64_t>(std::nearbyint(given * 1e9));
}

// Returns seconds in nanoseconds, rounded as Launch.duration_ns does; none for None.
std::optional<int64_t> maybe_nanoseconds(const py::handle seconds) {
  return seconds.is_none() ? std::nullopt : std::optional(nanoseconds(seconds));
}

// Returns the durations of a launch's blocks in ns: none, one for all, or one for each block.
std::vector<int64_t> durations_of(const py::handle launch) {
  const Python& known = python();
  const py::object duration = known.duration.of(launch);
  if (duration.is_none()) return {};
  if (PyFloat_Check(duration.ptr())) return {nanoseconds(duration)};
  const auto durations = known.duration_ns.of(launch)().cast<Nanoseconds>();
  return {durations.data(), durations.data() + durations.size()};
}

// Returns the core's partition for a tbsched.Partition.
Partition partition_of(const py::handle partition) {
  const Python& known = python();
  Partition result{.sms = known.sms.of(partition).cast<std::vector<int32_t>>(),
                   .group = known.group.optional_int_of(partition)};
  if (const py::object split = known.split.of(partition); !split.is_none()) {
    result.split = {.min_sms = known.min_sms.int_of(split),
                    .groups = known.groups.optional_int_of(split),
                    .ignore_coscheduling = known.ignore_coscheduling.flag_of(split),
                    .max_cluster = known.max_cluster.flag_of(split)};
  }
  return result;
}

// Returns the partition of a launch; null for None.
std::shared_ptr<const Partition> maybe_partition(const py::handle partition, Shared& shared) {
  return partition.is_none() ? nullptr : shared.partitions.of(partition, partition_of);
}

// Returns the core's launch for a tbsched.Launch.
Launch launch_of(const py::handle launch, Shared& shared) {
  const Python& known = python();
  Launch result{.blocks = known.blocks.int_of(launch),
                .threads = known.threads.int_of(launch),
                .registers = known.registers.int_of(launch),
                .shared_memory = known.shared_memory.int_of(launch),
                .local_memory = known.local_memory.int_of(launch),
                .carveout = known.carveout.optional_int_of(launch),
                .cluster = known.cluster.int_of(launch),
                .stream = stream_of(launch),
                .priority = known.priority.int_of(launch),
                .duration_ns = durations_of(launch),
                .partition = maybe_partition(known.partition.of(launch), shared),
                .cooperative = known.cooperative.flag_of(launch)};
  if (result.duration_ns.empty()) return result;  // the rest is of timed launches
  result.non_blocking = known.non_blocking.flag_of(launch);
  result.programmatic = known.programmatic.flag_of(launch);
  result.trigger_ns = maybe_nanoseconds(known.trigger.of(launch));
  result.memory_wait_ns = maybe_nanoseconds(known.memory_wait.of(launch));
  result.completion_event = known.completion_event.optional_int_of(launch);
  result.first_use = known.first_use.flag_of(launch);
  if (result.first_use) result.kernel = shared.kernel(known.name.of(launch));
  result.delay_ns = maybe_nanoseconds(known.delay.of(launch)).value_or(0);
  result.host = known.host.int_of(launch);
  result.gpu = known.gpu.int_of(launch);
  if (const py::object meets = known.meets.of(launch); !meets.is_none()) {
    result.meets = utf8_of(meets);
    result.in_block_order = known.in_block_order.flag_of(launch);
  }
  return result;
}

// Returns the core's copy for a tbsched.Copy.
Copy copy_of(const py::handle copy) {
  const Python& known = python();
  const auto kind = known.kind.of(copy).cast<std::string>();
  return {.bytes = known.bytes.of(copy).cast<int64_t>(),
          .kind = kind == "h2d"   ? CopyKind::h2d
                  : kind == "d2h" ? CopyKind::d2h
                  : kind == "p2p" ? CopyKind::p2p
                                  : CopyKind::d2d,
          .duration_ns = maybe_nanoseconds(known.duration.of(copy)),
          .stream = stream_of(copy),
          .pinned = known.pinned.flag_of(copy),
          .blocking = known.blocking.flag_of(copy),
          .non_blocking = known.non_blocking.flag_of(copy),
          .host = known.host.int_of(copy),
          .gpu = known.gpu.int_of(copy),
          .peer = known.peer.optional_int_of(copy).value_or(-1)};
}

// Returns the core's memset for a tbsched.Memset.
Memset memset_of(const py::handle memset) {
  const Python& known = python();
  return {.bytes = known.bytes.of(memset).cast<int64_t>(),
          .duration_ns = maybe_nanoseconds(known.duration.of(memset)),
          .stream = stream_of(memset),
          .non_blocking = known.non_blocking.flag_of(memset),
          .host = known.host.int_of(memset),
          .gpu = known.gpu.int_of(memset)};
}

// Returns the core's node for a node of a graph.
Node node_of(const py::handle node, Shared& shared) {
  const Python& known = python();
  if (PyObject_TypeCheck(node.ptr(), known.copy) != 0) return copy_of(node);
  if (PyObject_TypeCheck(node.ptr(), known.memset) != 0) return memset_of(node);
  if (PyObject_TypeCheck(node.ptr(), known.host_function) != 0) return host_function_of(node);
  if (PyObject_TypeCheck(node.ptr(), known.record_event) != 0) {
    return RecordEvent{.event = known.event.int_of(node)};
  }
  if (PyObject_TypeCheck(node.ptr(), known.wait_event) != 0) {
    return WaitEvent{.event = known.event.int_of(node)};
  }
  return launch_of(node, shared);
}

Graph graph_of(py::handle graph, Shared& shared);

// Returns the core's conditional node for a tbsched.Conditional.
Conditional conditional_of(const py::handle conditional, Shared& shared) {
  const Python& known = python();
  return {.body = std::make_shared<const Graph>(graph_of(known.graph.of(conditional), shared)),
          .times = known.times.int_of(conditional),
          .varies = py::len(known.runs.of(conditional)) > 0};
}

// Returns the core's graph for a tbsched.Graph.
Graph graph_of(const py::handle graph, Shared& shared) {
  const Python& known = python();
  Graph result{.edges = known.decided_edges.of(graph).cast<Edges>(),
               .deciders = known.deciders.of(graph).cast<std::vector<int32_t>>()};
  for (const py::handle node : known.nodes.of(graph)) {
    result.nodes.push_back(node_of(node, shared));
  }
  const py::object made = known.as_made.of(graph);
  if (made.is_none()) return result;
  const auto [parts, edges] = made.cast<std::pair<py::tuple, Edges>>();
  result.part_edges = edges;
  for (const py::handle part : parts) {
    if (PyObject_TypeCheck(part.ptr(), known.conditional) != 0) {
      result.parts.emplace_back(conditional_of(part, shared));
    } else if (PyObject_TypeCheck(part.ptr(), known.mem_alloc) != 0) {
      result.parts.emplace_back(MemAlloc{.name = utf8_of(known.name.of(part)),
                                         .bytes = known.bytes.of(part).cast<int64_t>()});
    } else if (PyObject_TypeCheck(part.ptr(), known.mem_free) != 0) {
      result.parts.emplace_back(MemFree{.name = utf8_of(known.name.of(part))});
    } else {
      std::visit([&](auto node) { result.parts.emplace_back(std::move(node)); },
                 node_of(part, shared));
    }
  }
  return result;
}

// Returns the core's launch of a graph for a tbsched.GraphLaunch.
GraphLaunch graph_launch_of(const py::handle launched, Shared& shared) {
  const Python& known = python();
  const auto convert = [&](const py::handle graph) { return graph_of(graph, shared); };
  const py::object executable = known.executable.of(launched);
  return {.graph = shared.graphs.of(known.graph.of(launched), convert),
          .executable = executable.is_none() ? nullptr : shared.graphs.of(executable, convert),
          .stream = named_stream_of(launched),
          .non_blocking = known.non_blocking.flag_of(launched),
          .host = known.host.int_of(launched),
          .gpu = known.gpu.int_of(launched)};
}

// Returns the core's release for a tbsched.Release.
Release release_of(const py::handle release) { return {.launch = python().launch.int_of(release)}; }

// Returns the core's event for a tbsched.RecordEvent or tbsched.WaitEvent.
template <typename Mark>
Mark mark_of(const py::handle mark) {
  const Python& known = python();
  Mark result{.event = known.event.int_of(mark),
              .stream = named_stream_of(mark),
              .host = known.host.int_of(mark),
              .gpu = known.gpu.int_of(mark)};
  if constexpr (requires { result.timing; }) result.timing = known.timing.flag_of(mark);
  return result;
}

// Returns the core's event for a tbsched.Synchronize.
Synchronize synchronize_of(const py::handle awaited) {
  const Python& known = python();
  return {.stream = stream_of(awaited),
          .event = known.event.optional_int_of(awaited),
          .host = known.host.int_of(awaited),
          .gpu = known.gpu.int_of(awaited)};
}

// Returns the core's event for a tbsched.HostFunction.
HostFunction host_function_of(const py::handle function) {
  const Python& known = python();
  return {.duration_ns = nanoseconds(known.duration.of(function)),
          .stream = stream_of(function),
          .non_blocking = known.non_blocking.flag_of(function),
          .host = known.host.int_of(function),
          .gpu = known.gpu.int_of(function)};
}

// Returns when a call has the driver: `holds` is a flag, or the text "throughout".
HostCall::Holds holds_of(const py::handle call) {
  const py::object given = python().holds.of(call);
  if (!py::isinstance<py::bool_>(given)) return HostCall::Holds::throughout;
  return given.cast<bool>() ? HostCall::Holds::for_its_duration : HostCall::Holds::never;
}

// Returns the core's event for a tbsched.HostCall.
HostCall host_call_of(const py::handle call) {
  const Python& known = python();
  return {.duration_ns = nanoseconds(known.duration.of(call)),
          .waits = !known.waits.of(call).is_none(),
          .stream = stream_of(call),
          .holds = holds_of(call),
          .host = known.host.int_of(call),
          .gpu = known.gpu.int_of(call)};
}

// Returns the core's event for a tbsched.WriteValue or tbsched.WaitValue.
template <typename OfValue>
OfValue value_event_of(const py::handle event) {
  const Python& known = python();
  return {.name = utf8_of(known.name.of(event)),
          .value = known.value.of(event).cast<int64_t>(),
          .stream = named_stream_of(event),
          .host = known.host.int_of(event),
          .gpu = known.gpu.int_of(event)};
}

// Returns the index into kKinds of an event's class; objects of derived classes count, too. Throws
// TypeError for another object.
size_t kind_of(const py::handle event) {
  const auto& types = python().types;
  PyTypeObject* const type = Py_TYPE(event.ptr());
  for (size_t kind = 0; kind < types.size(); ++kind) {
    if (type == types[kind]) return kind;
  }
  for (size_t kind = 0; kind < types.size(); ++kind) {
    if (PyType_IsSubtype(type, types[kind]) != 0) return kind;
  }
  std::string message = "events: one of";
  for (const Kind& kind : kKinds) message.append(" ").append(kind.name);
  throw py::type_error(message + " is needed, got " + std::string(py::repr(event)));
}

}  // namespace

Launch to_launch(const py::handle launch) {
  if (PyObject_TypeCheck(launch.ptr(), python().types[0]) == 0) {
    throw py::type_error("launch: a Launch is needed, got " + std::string(py::repr(launch)));
  }
  Shared shared;
  return launch_of(launch, shared);
}

std::vector<std::shared_ptr<const Partition>> to_partitions(const py::tuple& partitions) {
  std::vector<std::shared_ptr<const Partition>> result;
  for (const py::handle partition : partitions) {
    result.push_back(std::make_shared<const Partition>(partition_of(partition)));
  }
  return result;
}

Sequence to_sequence(const py::iterable& events) {
  Sequence sequence;
  Shared shared;
  sequence.reserve(py::len_hint(events));
  for (const py::handle event : events) {
    sequence.push_back(kKinds[kind_of(event)].convert(event, shared));
  }
  return sequence;
}

}  // namespace tbsched

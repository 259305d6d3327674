#include "bindings/events.h"

#include <pybind11/gil_safe_call_once.h>
#include <pybind11/numpy.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace py = pybind11;

namespace tbsched {
namespace {

using Nanoseconds = py::array_t<int64_t, py::array::c_style | py::array::forcecast>;

// The name of an attribute, made once.
class Attribute {
 public:
  explicit Attribute(const char* const name) : name_(PyUnicode_InternFromString(name)) {
    if (!name_) throw py::error_already_set();
  }

  py::object of(const py::handle object) const {
    PyObject* const value = PyObject_GetAttr(object.ptr(), name_);
    if (value == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(value);
  }
  int32_t number_of(const py::handle object) const { return number(of(object)); }
  std::optional<int32_t> maybe_of(const py::handle object) const {
    const py::object value = of(object);
    return value.is_none() ? std::nullopt : std::optional(number(value));
  }

  int32_t number(const py::handle value) const {
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

Launch launch_of(py::handle launch);
Release release_of(py::handle release);
template <typename Mark>
Mark mark_of(py::handle mark);

// A kind of event: its class in tbsched.program.sequence, and how it becomes the core's.
struct Kind {
  const char* name;
  Event (*convert)(py::handle event);
};

constexpr std::array kKinds = {
    Kind{"Launch", [](const py::handle event) -> Event { return launch_of(event); }},
    Kind{"Release", [](const py::handle event) -> Event { return release_of(event); }},
    Kind{"RecordEvent",
         [](const py::handle event) -> Event { return mark_of<RecordEvent>(event); }},
    Kind{"WaitEvent", [](const py::handle event) -> Event { return mark_of<WaitEvent>(event); }},
};
static_assert(kKinds.size() == std::variant_size_v<Event>, "each kind of event has a row");

// What is looked up once: classes and names.
struct Python {
  std::array<PyTypeObject*, kKinds.size()> types{};  // as kKinds; live as long as the process
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
  Attribute launch{"launch"};
  Attribute event{"event"};
  py::str legacy{"legacy"};

  Python() {
    const py::module_ module = py::module_::import("tbsched.program.sequence");
    for (size_t kind = 0; kind < kKinds.size(); ++kind) {
      py::object type = module.attr(kKinds[kind].name);
      types[kind] = reinterpret_cast<PyTypeObject*>(type.release().ptr());
    }
  }
};

const Python& python() {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<Python> storage;
  return storage.call_once_and_store_result([] { return Python(); }).get_stored();
}

// A number, LEGACY_STREAM, or none.
std::optional<int32_t> stream_of(const py::handle event) {
  const Python& known = python();
  const py::object stream = known.stream.of(event);
  if (stream.is_none()) return std::nullopt;
  if (!PyUnicode_Check(stream.ptr())) return known.stream.number(stream);
  if (!stream.equal(known.legacy)) {
    throw py::value_error("stream: " + std::string(py::repr(stream)) + " is no stream");
  }
  return kLegacyStream;
}

std::vector<int64_t> durations_of(const py::handle launch) {
  const Python& known = python();
  if (known.duration.of(launch).is_none()) return {};
  const auto durations = known.duration_ns.of(launch)().cast<Nanoseconds>();
  return {durations.data(), durations.data() + durations.size()};
}

Launch launch_of(const py::handle launch) {
  const Python& known = python();
  return {.blocks = known.blocks.number_of(launch),
          .threads = known.threads.number_of(launch),
          .registers = known.registers.number_of(launch),
          .shared_memory = known.shared_memory.number_of(launch),
          .local_memory = known.local_memory.number_of(launch),
          .carveout = known.carveout.maybe_of(launch),
          .cluster = known.cluster.number_of(launch),
          .stream = stream_of(launch),
          .priority = known.priority.number_of(launch),
          .duration_ns = durations_of(launch)};
}

Release release_of(const py::handle release) {
  return {.launch = python().launch.number_of(release)};
}

template <typename Mark>
Mark mark_of(const py::handle mark) {
  const std::optional<int32_t> stream = stream_of(mark);
  if (!stream) throw py::value_error("stream: None is no stream to record or wait in");
  return {.event = python().event.number_of(mark), .stream = *stream};
}

// Which of kKinds; an object of a class derived from it is one, too.
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
  return launch_of(launch);
}

Sequence to_sequence(const py::iterable& events) {
  Sequence sequence;
  sequence.reserve(py::len_hint(events));
  for (const py::handle event : events) {
    sequence.push_back(kKinds[kind_of(event)].convert(event));
  }
  return sequence;
}

}  // namespace tbsched

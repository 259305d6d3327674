#include "bindings/events.h"

#include <pybind11/numpy.h>

#include <optional>
#include <utility>

namespace py = pybind11;

namespace tbsched {

void bind_events(py::module_& module) {
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
}

}  // namespace tbsched

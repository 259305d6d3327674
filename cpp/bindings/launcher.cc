// tbsched._launcher: the GPU launcher as observe.py sees it.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cuda/cubin.h"
#include "cuda/error.h"
#include "cuda/gpu.h"
#include "cuda/probe_images.h"

namespace py = pybind11;

namespace tbsched {
namespace {

std::optional<int32_t> to_stream(const py::handle stream) {
  if (py::isinstance<py::str>(stream)) return kLegacyStream;
  return stream.cast<std::optional<int32_t>>();
}

Launch to_launch(const py::handle launch) {
  return {
      .blocks = launch.attr("blocks").cast<int32_t>(),
      .threads = launch.attr("threads").cast<int32_t>(),
      .registers = launch.attr("registers").cast<int32_t>(),
      .shared_memory = launch.attr("shared_memory").cast<int32_t>(),
      .local_memory = launch.attr("local_memory").cast<int32_t>(),
      .carveout = launch.attr("carveout").cast<std::optional<int32_t>>(),
      .cluster = launch.attr("cluster").cast<int32_t>(),
      .stream = to_stream(launch.attr("stream")),
      .priority = launch.attr("priority").cast<int32_t>(),
      .duration_ns = launch.attr("duration_ns")().cast<std::vector<int64_t>>(),
  };
}

Sequence to_sequence(const py::iterable& events) {
  Sequence sequence;
  for (const py::handle event : events) {
    const auto kind = py::type::of(event).attr("__name__").cast<std::string>();
    if (kind == "Launch") {
      sequence.emplace_back(to_launch(event));
    } else if (kind == "Release") {
      sequence.emplace_back(Release{event.attr("launch").cast<int32_t>()});
    } else {
      const auto number = event.attr("event").cast<int32_t>();
      const int32_t stream = to_stream(event.attr("stream")).value();
      if (kind == "RecordEvent") {
        sequence.emplace_back(RecordEvent{number, stream});
      } else {
        sequence.emplace_back(WaitEvent{number, stream});
      }
    }
  }
  return sequence;
}

std::chrono::nanoseconds to_duration(const char* const name, const double value,
                                     const double limit) {
  if (!(value > 0 && value <= limit)) {
    throw py::value_error(std::string(name) + ": " + std::to_string(value) +
                          " is not more than 0 and at most " + std::to_string(limit) + " seconds");
  }
  return std::chrono::nanoseconds(static_cast<int64_t>(value * 1e9));
}

template <typename To, typename From>
py::array_t<To> to_array(const std::vector<From>& values) {
  py::array_t<To> array(static_cast<py::ssize_t>(values.size()));
  std::copy(values.begin(), values.end(), array.mutable_data());
  return array;
}

py::dict to_dict(const MeasuredLaunch& measured) {
  py::dict dict;
  dict["smid"] = to_array<int32_t>(measured.placement.smid);
  dict["final_smid"] = to_array<int32_t>(measured.placement.final_smid);
  dict["start_ns"] = to_array<int64_t>(measured.start_ns);
  dict["end_ns"] = to_array<int64_t>(measured.end_ns);
  dict["issued_ns"] = measured.issued_ns;
  if (!measured.placement.warp_slots.empty()) {
    const auto blocks = static_cast<py::ssize_t>(measured.start_ns.size());
    dict["warp_slots"] =
        to_array<int32_t>(measured.placement.warp_slots).reshape({blocks, py::ssize_t{-1}});
  } else {
    dict["warp_slots"] = py::none();
  }
  return dict;
}

void python_signals() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

class LauncherGpu {
 public:
  LauncherGpu(const int32_t index, const bool from_ptx) {
    const py::gil_scoped_release no_gil;
    gpu_ = std::make_unique<cuda::Gpu>(index, from_ptx);
  }
  ~LauncherGpu() {
    // A forked child has neither the driver's state nor our threads: nothing there can be ended.
    if (getpid() != process_) static_cast<void>(gpu_.release());
  }
  LauncherGpu(const LauncherGpu&) = delete;
  LauncherGpu& operator=(const LauncherGpu&) = delete;

  py::list run(const py::iterable& events, const bool warp_slots, const double deadline,
               const double settle) {
    const Sequence sequence = to_sequence(events);
    const cuda::RunOptions options{
        .warp_slots = warp_slots,
        .deadline = to_duration("deadline", deadline, 3600),
        .settle = to_duration("settle", settle, 10),
        .interrupted = python_signals,
    };
    std::vector<MeasuredLaunch> measured;
    {
      cuda::Gpu& gpu = get();
      const py::gil_scoped_release no_gil;
      measured = gpu.observe(sequence, options);
    }
    py::list launches;
    for (const MeasuredLaunch& launch : measured) launches.append(to_dict(launch));
    return launches;
  }

  py::dict info() const {
    const cuda::DeviceProperties& properties = get().context().properties();
    const auto version = [](const int32_t major, const int32_t minor) {
      return std::to_string(major) + "." + std::to_string(minor);
    };
    py::dict dict;
    dict["name"] = properties.name;
    dict["sms"] = properties.sms;
    dict["compute_capability"] =
        version(properties.architecture / 10, properties.architecture % 10);
    dict["driver"] = get().context().surroundings().driver_version;
    dict["cuda"] = version(properties.driver_api / 1000, properties.driver_api % 1000 / 10);
    dict["uuid"] = properties.uuid;
    dict["max_connections"] = get().context().surroundings().max_connections;
    return dict;
  }

  std::vector<std::string> warnings() const { return get().context().surroundings().warnings; }
  int32_t resident(const py::handle launch) { return get().resident(to_launch(launch)); }
  std::pair<int32_t, int32_t> kernel_size(const py::handle launch) {
    return get().kernel_size(to_launch(launch));
  }

  void close() {
    if (!gpu_) return;
    get();
    const py::gil_scoped_release no_gil;
    gpu_.reset();
  }

 private:
  cuda::Gpu& get() const {
    if (!gpu_) throw py::value_error("this Gpu is closed");
    if (getpid() != process_) {
      throw cuda::NoGpu("this Gpu was opened before the process was forked; open it in the child");
    }
    return *gpu_;
  }

  const pid_t process_ = getpid();
  std::unique_ptr<cuda::Gpu> gpu_;
};

py::bytes to_bytes(const std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

py::bytes patch(const py::bytes& image, const int32_t registers, const int32_t local_memory) {
  const std::string_view text = image;
  return to_bytes(cuda::patch(std::as_bytes(std::span(text)), registers, local_memory));
}

py::dict images() {
  py::dict dict;
  for (const cuda::ProbeImage& image : cuda::probe_images()) {
    const std::string kind = image.is_ptx ? "compute_" : "sm_";
    dict[py::str(kind + std::to_string(image.architecture))] = to_bytes(image.bytes);
  }
  return dict;
}

template <typename... Arguments>
void raise(const char* const name, const Arguments&... arguments) {
  const py::object type = py::module_::import("tbsched.errors").attr(name);
  PyErr_SetObject(type.ptr(), type(arguments...).ptr());
}

void translate(const std::exception_ptr& error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const cuda::NoGpu& no_gpu) {
    raise("NoGpuError", no_gpu.what());
  } catch (const cuda::Unstable& unstable) {
    raise("UnstableMeasurement", unstable.what());
  } catch (const cuda::DeadlineExceeded& exceeded) {
    raise("DeadlineExceeded", exceeded.what());
  } catch (const cuda::CudaFailure& failure) {
    raise("CudaError", failure.call, failure.code, failure.detail);
  }
}

}  // namespace
}  // namespace tbsched

PYBIND11_MODULE(_launcher, module) {
  using tbsched::LauncherGpu;
  module.doc() = "Runs sequences of launches and releases on a real GPU.";
  py::register_local_exception_translator(
      [](std::exception_ptr error) { tbsched::translate(error); });

  py::class_<LauncherGpu>(module, "Gpu")
      .def(py::init<int32_t, bool>(), py::arg("index"), py::kw_only(), py::arg("from_ptx") = false)
      .def("run", &LauncherGpu::run, py::arg("events"), py::kw_only(), py::arg("warp_slots"),
           py::arg("deadline"), py::arg("settle"))
      .def("info", &LauncherGpu::info)
      .def("warnings", &LauncherGpu::warnings)
      .def("resident", &LauncherGpu::resident, py::arg("launch"))
      .def("kernel_size", &LauncherGpu::kernel_size, py::arg("launch"))
      .def("close", &LauncherGpu::close);
  module.def("patch", &tbsched::patch, py::arg("image"), py::arg("registers"),
             py::arg("local_memory"));
  module.def("images", &tbsched::images);
}

// tbsched._launcher: the GPU launcher for observe.py.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/event_table.h"
#include "bindings/events.h"
#include "bindings/signals.h"
#include "launcher/driver/context.h"
#include "launcher/driver/error.h"
#include "launcher/probe/cubin.h"
#include "launcher/probe/probe_images.h"
#include "launcher/run/batch.h"
#include "launcher/run/gpu.h"
#include "launcher/run/together.h"

namespace py = pybind11;

namespace tbsched {
namespace {

// Seconds; runs on several GPUs settle for as long as their blocks stay.
constexpr double kMinSettle = 0.001;
constexpr double kMaxSettle = 3600;

// Returns seconds as a duration; refuses one that is not more than 0 and at most `limit`. `name`:
// of the argument.
std::chrono::nanoseconds to_duration(const char* const name, const double value,
                                     const double limit) {
  if (!(value > 0 && value <= limit)) {
    throw py::value_error(std::string(name) + ": " + std::to_string(value) +
                          " is not more than 0 and at most " + std::to_string(limit) + " seconds");
  }
  return std::chrono::nanoseconds(static_cast<int64_t>(value * 1e9));
}

// Returns seconds as durations.
std::vector<std::chrono::nanoseconds> to_durations(const std::vector<double>& seconds) {
  std::vector<std::chrono::nanoseconds> durations;
  for (const double value : seconds) durations.emplace_back(static_cast<int64_t>(value * 1e9));
  return durations;
}

// Returns values as an array of another type.
template <typename To, typename From>
py::array_t<To> to_array(const std::vector<From>& values) {
  py::array_t<To> array(static_cast<py::ssize_t>(values.size()));
  std::copy(values.begin(), values.end(), array.mutable_data());
  return array;
}

// Returns what was measured of a launch, by the names of tbsched's traces.
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

// Returns the options of a run; refuses times, in seconds, that are out of range.
cuda::RunOptions to_options(const bool warp_slots, const double deadline, const double settle,
                            std::function<void()> interrupted) {
  return {
      .warp_slots = warp_slots,
      .deadline = to_duration("deadline", deadline, 3600),
      .settle = to_duration("settle", settle, 10),
      .interrupted = std::move(interrupted),
  };
}

// Returns an exception of tbsched.errors, given its class.
template <typename... Arguments>
py::object error_object(const char* const name, const Arguments&... arguments) {
  return py::module_::import("tbsched.errors").attr(name)(arguments...);
}

// Returns the launches, the times of the calls, and the meetings of an observation.
py::tuple in_python(const cuda::Observation& observation) {
  py::list launches;
  for (const MeasuredLaunch& launch : observation.launches) launches.append(to_dict(launch));
  return py::make_tuple(launches, observation.calls_ns, observation.met);
}

// Returns a version as in "12.4".
std::string version(const int32_t major, const int32_t minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

// Returns what identifies a GPU and its driver, by name.
py::dict identity_in_python(const cuda::DeviceProperties& properties,
                            const cuda::Surroundings& surroundings) {
  py::dict dict;
  dict["name"] = properties.name;
  dict["sms"] = properties.sms;
  dict["compute_capability"] = version(properties.architecture / 10, properties.architecture % 10);
  dict["driver"] = surroundings.driver_version;
  dict["cuda"] = version(properties.driver_api / 1000, properties.driver_api % 1000 / 10);
  dict["uuid"] = properties.uuid;
  dict["max_connections"] = surroundings.max_connections;
  return dict;
}

// Returns the properties of a GPU, without a context.
py::dict query(const int32_t index) {
  cuda::Identity identity;
  {
    const py::gil_scoped_release no_gil;
    identity = cuda::identify(index);
  }
  py::dict dict = identity_in_python(identity.properties, identity.surroundings);
  dict["mps"] = identity.surroundings.mps;
  dict["clusters"] = identity.properties.clusters;
  dict["copy_engines"] = identity.properties.copy_engines;
  dict["threads_per_block"] = identity.properties.threads_per_block;
  dict["blocks_per_sm"] = identity.properties.blocks_per_sm;
  dict["threads_per_sm"] = identity.properties.threads_per_sm;
  dict["registers_per_sm"] = identity.properties.registers_per_sm;
  dict["shared_memory_per_sm"] = identity.properties.shared_memory_per_sm;
  dict["shared_memory_reserve"] = identity.properties.shared_memory_reserve;
  dict["shared_memory_per_block"] = identity.properties.shared_memory_per_block;
  return dict;
}

// Deletes an object, except in a forked child: that has neither the driver's state nor our threads,
// so nothing can be ended there.
struct EndUnlessForked {
  template <typename Owned>
  void operator()(Owned* const owned) const {
    if (getpid() == process) std::default_delete<Owned>()(owned);
  }
  pid_t process = getpid();
};

// Sequences that run while Python continues.
class LauncherBatch {
 public:
  LauncherBatch(std::shared_ptr<cuda::Gpu> gpu, const bool warp_slots, const double settle)
      : warp_slots_(warp_slots),
        settle_(settle),
        batch_(std::make_unique<cuda::Batch>(std::move(gpu)).release()) {}

  // Adds a sequence, which runs after those before.
  void add(const py::iterable& events, const double deadline, cuda::Groups groups,
           const std::vector<double>& issue_times) {
    cuda::RunOptions options = to_options(warp_slots_, deadline, settle_, {});
    options.groups = std::move(groups);
    options.issue_times = to_durations(issue_times);
    get().add(to_sequence(events), options);
  }

  // Adds the sequences of a table of events, one after the other.
  void add_table(const Numbers& cells, const Bounds& bounds, const py::tuple& partitions,
                 const double deadline, const bool any_state) {
    cuda::Batch& batch = get();
    const EventTable table = event_table(cells, bounds, partitions);
    cuda::RunOptions options = to_options(warp_slots_, deadline, settle_, {});
    options.any_state = any_state;
    for (size_t k = 0; k < table.sequence_count(); ++k) batch.add(table.sequence(k), options);
  }

  // Returns what `run` would have returned, or raises its exception.
  py::tuple next() {
    const cuda::Batch::Result result = wait();
    if (result.error) std::rethrow_exception(result.error);
    return in_python(result.observation);
  }

  // Returns only the SMs of all blocks before the next event, for `count` sequences.
  py::list next_smids(const int64_t count) {
    py::list results;
    for (int64_t k = 0; k < count; ++k) results.append(smids(wait()));
    return results;
  }

  void close() {
    const py::gil_scoped_release no_gil;
    batch_.reset();
  }

 private:
  // Waits for the next sequence to end, and returns its result.
  cuda::Batch::Result wait() {
    cuda::Batch& batch = get();
    for (;;) {
      std::optional<cuda::Batch::Result> result;
      {
        const py::gil_scoped_release no_gil;
        result = batch.next(cuda::kBetweenInterrupts);
      }
      if (result) return std::move(*result);
      python_signals();
    }
  }

  // Returns the SMs, or the exception that explains why there are none; throws other exceptions.
  static py::object smids(const cuda::Batch::Result& result) {
    try {
      if (result.error) std::rethrow_exception(result.error);
    } catch (const cuda::Shared& shared) {
      return error_object("SharedGpu", shared.what());
    } catch (const cuda::Unstable& unstable) {
      return error_object("UnstableMeasurement", unstable.what());
    } catch (const cuda::DeadlineExceeded& exceeded) {
      return error_object("DeadlineExceeded", exceeded.what());
    }
    size_t blocks = 0;
    for (const MeasuredLaunch& launch : result.observation.launches)
      blocks += launch.placement.smid.size();
    py::array_t<int32_t> array(static_cast<py::ssize_t>(blocks));
    int32_t* next = array.mutable_data();
    for (const MeasuredLaunch& launch : result.observation.launches) {
      next = std::ranges::copy(launch.placement.smid, next).out;
    }
    return array;
  }

  // Returns the batch; refuses a closed one, and one of the process before a fork.
  cuda::Batch& get() const {
    if (!batch_) throw py::value_error("this batch is closed");
    if (getpid() != batch_.get_deleter().process) {
      throw cuda::NoGpu("this batch began before the process was forked");
    }
    return *batch_;
  }

  const bool warp_slots_;
  const double settle_;
  std::unique_ptr<cuda::Batch, EndUnlessForked> batch_;
};

class LauncherGpu {
 public:
  LauncherGpu(const int32_t index, const bool from_ptx) {
    const py::gil_scoped_release no_gil;
    gpu_ = {std::make_unique<cuda::Gpu>(index, from_ptx).release(), EndUnlessForked()};
  }
  LauncherGpu(const LauncherGpu&) = delete;
  LauncherGpu& operator=(const LauncherGpu&) = delete;

  // Runs a sequence, and returns what was observed.
  py::tuple run(const py::iterable& events, const bool warp_slots, const double deadline,
                const double settle, cuda::Groups groups, const std::vector<double>& issue_times) {
    const Sequence sequence = to_sequence(events);
    cuda::RunOptions options = to_options(warp_slots, deadline, settle, python_signals);
    options.groups = std::move(groups);
    options.issue_times = to_durations(issue_times);
    cuda::Observation observation;
    {
      cuda::Gpu& gpu = get();
      const py::gil_scoped_release no_gil;
      observation = gpu.observe(sequence, options);
    }
    return in_python(observation);
  }

  // Runs a part of a sequence on each GPU, all at once; returns what `run` would have returned.
  static py::list run_together(const std::vector<const LauncherGpu*>& gpus,
                               const std::vector<py::iterable>& events,
                               std::vector<cuda::Groups> groups, const double deadline,
                               const double settle) {
    if (gpus.empty() || events.size() != gpus.size() || groups.size() != gpus.size()) {
      throw py::value_error("parts: each GPU has events and groups");
    }
    std::vector<cuda::Part> parts;
    for (size_t k = 0; k < gpus.size(); ++k) {
      gpus[k]->get();
      parts.push_back({gpus[k]->gpu_, to_sequence(events[k]), std::move(groups[k])});
    }
    cuda::RunOptions options = to_options(false, deadline, kMinSettle, python_signals);
    options.settle = to_duration("settle", settle, kMaxSettle);
    std::vector<cuda::Observation> observations;
    {
      const py::gil_scoped_release no_gil;
      observations = cuda::observe_together(parts, options);
    }
    py::list by_part;
    for (const cuda::Observation& part : observations) by_part.append(in_python(part));
    return by_part;
  }

  std::unique_ptr<LauncherBatch> batch(const bool warp_slots, const double settle) const {
    get();
    return std::make_unique<LauncherBatch>(gpu_, warp_slots, settle);
  }

  // Returns the number of runs, and the seconds that each step of them took in all.
  py::dict time_spent() const {
    cuda::TimeSpent spent;
    {
      cuda::Gpu& gpu = get();
      const py::gil_scoped_release no_gil;
      spent = gpu.time_spent();
    }
    const auto seconds = [](const cuda::TimeSpent::Duration duration) {
      return std::chrono::duration<double>(duration).count();
    };
    py::dict dict;
    dict["runs"] = spent.runs;
    dict["plan"] = seconds(spent.plan);
    dict["launch"] = seconds(spent.launch);
    dict["release"] = seconds(spent.release);
    dict["clean_up"] = seconds(spent.clean_up);
    dict["synchronise"] = seconds(spent.synchronise);
    dict["judge"] = seconds(spent.judge);
    dict["settle"] = seconds(spent.settle);
    return dict;
  }

  uint64_t interruptions() const { return get().interruptions(); }

  py::dict info() const {
    return identity_in_python(get().context().properties(), get().context().surroundings());
  }

  bool mps() const { return get().context().surroundings().mps; }
  std::vector<std::string> warnings() const { return get().context().surroundings().warnings; }
  int32_t resident(const py::handle launch) { return get().resident(to_launch(launch)); }
  std::pair<int32_t, int32_t> kernel_size(const py::handle launch) {
    return get().kernel_size(to_launch(launch));
  }

  // Releases the GPU. Returns false if blocks are still resident; their resources are kept then.
  bool close() {
    if (!gpu_) return true;
    cuda::Gpu& gpu = get();
    const py::gil_scoped_release no_gil;
    // A batch that shares it goes on, and releases it.
    const bool drained = gpu_.use_count() > 1 || gpu.drained();
    gpu_.reset();
    return drained;
  }

 private:
  // Returns the GPU; refuses a closed one, and one of the process before a fork.
  cuda::Gpu& get() const {
    if (!gpu_) throw py::value_error("this Gpu is closed");
    if (getpid() != process_) {
      throw cuda::NoGpu("this Gpu was opened before the process was forked; open it in the child");
    }
    return *gpu_;
  }

  const pid_t process_ = getpid();
  std::shared_ptr<cuda::Gpu> gpu_;  // shared with batches
};

// Returns bytes as Python's.
py::bytes to_bytes(const std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns a kernel image in which the kernel needs so many registers and so much local memory.
py::bytes patch(const py::bytes& image, const int32_t registers, const int32_t local_memory) {
  const std::string_view text = image;
  return to_bytes(cuda::patch(std::as_bytes(std::span(text)), registers, local_memory));
}

// Returns what each kernel of an image needs: name, registers, bytes of static shared memory and of
// local memory, and blocks of a cluster.
py::list usage(const py::bytes& image) {
  const std::string_view text = image;
  py::list list;
  for (const cuda::KernelUsage& kernel : cuda::usage(std::as_bytes(std::span(text)))) {
    list.append(py::make_tuple(kernel.name, kernel.registers, kernel.static_shared_memory,
                               kernel.local_memory, kernel.cluster));
  }
  return list;
}

// Returns how the name of a kind of probe image begins.
std::string prefix(const cuda::ProbeKind kind) {
  if (kind == cuda::ProbeKind::plain) return "";
  if (kind == cuda::ProbeKind::body) return "body_";
  return kind == cuda::ProbeKind::dependent ? "dependent_" : "meeting_";
}

// Returns the bytes of every probe image by name, as "meeting_sm_90".
py::dict images() {
  py::dict dict;
  for (const cuda::ProbeImage& image : cuda::probe_images()) {
    const std::string name = prefix(image.kind) + (image.is_ptx ? "compute_" : "sm_");
    dict[py::str(name + std::to_string(image.architecture))] = to_bytes(image.bytes);
  }
  return dict;
}

// Sets an exception of tbsched.errors as Python's current one.
template <typename... Arguments>
void raise(const char* const name, const Arguments&... arguments) {
  const py::object error = error_object(name, arguments...);
  PyErr_SetObject(py::type::handle_of(error).ptr(), error.ptr());
}

// Raises the exception of Python that stands for one of the launcher; does nothing for others.
void translate(const std::exception_ptr& error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const cuda::NoGpu& no_gpu) {
    raise("NoGpuError", no_gpu.what());
  } catch (const cuda::Shared& shared) {
    raise("SharedGpu", shared.what());
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
  using tbsched::LauncherBatch;
  using tbsched::LauncherGpu;
  module.doc() = "Runs sequences of launches and releases on a real GPU.";
  py::register_local_exception_translator(
      [](std::exception_ptr error) { tbsched::translate(error); });

  py::class_<LauncherBatch>(module, "Batch")
      .def("add", &LauncherBatch::add, py::arg("events"), py::kw_only(), py::arg("deadline"),
           py::arg("groups") = tbsched::cuda::Groups(),
           py::arg("issue_times") = std::vector<double>())
      .def("add_table", &LauncherBatch::add_table, py::arg("cells"), py::arg("bounds"),
           py::arg("partitions"), py::kw_only(), py::arg("deadline"), py::arg("any_state"))
      .def("next", &LauncherBatch::next)
      .def("next_smids", &LauncherBatch::next_smids, py::arg("count"))
      .def("close", &LauncherBatch::close);
  py::class_<LauncherGpu>(module, "Gpu")
      .def(py::init<int32_t, bool>(), py::arg("index"), py::kw_only(), py::arg("from_ptx") = false)
      .def("run", &LauncherGpu::run, py::arg("events"), py::kw_only(), py::arg("warp_slots"),
           py::arg("deadline"), py::arg("settle"), py::arg("groups") = tbsched::cuda::Groups(),
           py::arg("issue_times") = std::vector<double>())
      .def("batch", &LauncherGpu::batch, py::kw_only(), py::arg("warp_slots"), py::arg("settle"))
      .def("time_spent", &LauncherGpu::time_spent)
      .def("interruptions", &LauncherGpu::interruptions)
      .def("info", &LauncherGpu::info)
      .def("warnings", &LauncherGpu::warnings)
      .def("mps", &LauncherGpu::mps)
      .def("resident", &LauncherGpu::resident, py::arg("launch"))
      .def("kernel_size", &LauncherGpu::kernel_size, py::arg("launch"))
      .def("close", &LauncherGpu::close);
  module.def("run_together", &LauncherGpu::run_together, py::arg("gpus"), py::arg("events"),
             py::arg("groups"), py::kw_only(), py::arg("deadline"), py::arg("settle"));
  module.def("gpus", &tbsched::cuda::gpus);
  module.def("query", &tbsched::query, py::arg("index"));
  module.def("patch", &tbsched::patch, py::arg("image"), py::arg("registers"),
             py::arg("local_memory"));
  module.def("usage", &tbsched::usage, py::arg("image"));
  module.def("images", &tbsched::images);
}

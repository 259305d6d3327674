#include "launcher/driver/surroundings.h"

#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "launcher/driver/shared_library.h"

namespace tbsched::cuda {
namespace {

// NVML's stable interface; its header does not come with every toolkit.
using NvmlDevice = void*;
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlInsufficientSize = 7;
constexpr unsigned kMigEnabled = 1;

// Returns the path of NVML: what TBSCHED_LIBNVML names, else its usual name.
const char* library_path() {
  const char* const chosen = std::getenv("TBSCHED_LIBNVML");
  return chosen != nullptr && *chosen != '\0' ? chosen : "libnvidia-ml.so.1";
}

// NVML for one GPU. If it is missing, all answers are "unknown", no, or 0.
class Nvml {
 public:
  explicit Nvml(const std::string& pci_bus_id) : library_(library_path()) {
    const auto init = library_.find<int (*)()>("nvmlInit_v2");
    initialised_ = init != nullptr && init() == kNvmlSuccess;
    const auto find_device =
        library_.find<int (*)(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByPciBusId_v2");
    if (!initialised_ || find_device == nullptr) return;
    if (find_device(pci_bus_id.c_str(), &device_) != kNvmlSuccess) device_ = nullptr;
  }
  ~Nvml() {
    const auto shutdown = library_.find<int (*)()>("nvmlShutdown");
    if (initialised_ && shutdown != nullptr) shutdown();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Returns the driver's version; none: unknown.
  std::optional<std::string> driver_version() const {
    const auto query = library_.find<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
    std::array<char, 96> text{};
    const bool known = initialised_ && query != nullptr &&
                       query(text.data(), static_cast<unsigned>(text.size())) == kNvmlSuccess;
    return known ? std::optional<std::string>(text.data()) : std::nullopt;
  }

  // Returns whether the GPU is known to be split by MIG.
  bool is_mig_enabled() const {
    const auto query =
        library_.find<int (*)(NvmlDevice, unsigned*, unsigned*)>("nvmlDeviceGetMigMode");
    unsigned current = 0;
    unsigned pending = 0;
    return device_ != nullptr && query != nullptr &&
           query(device_, &current, &pending) == kNvmlSuccess && current == kMigEnabled;
  }

  // Returns how many processes have a context on the GPU.
  unsigned count_processes() const {
    const auto query = library_.find<int (*)(NvmlDevice, unsigned*, void*)>(
        "nvmlDeviceGetComputeRunningProcesses_v3");
    unsigned count = 0;
    if (device_ == nullptr || query == nullptr) return 0;
    // Called without room for the answer, it returns the size of the answer.
    const int result = query(device_, &count, nullptr);
    return result == kNvmlSuccess || result == kNvmlInsufficientSize ? count : 0;
  }

 private:
  SharedLibrary library_;
  bool initialised_ = false;
  NvmlDevice device_ = nullptr;
};

// Returns the driver's version as its kernel module states it; none: unknown.
std::optional<std::string> kernel_module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const bool is_number = std::isdigit(static_cast<unsigned char>(word.front())) != 0;
    if (is_number && word.find('.') != std::string::npos) return word;
  }
  return std::nullopt;
}

// Returns a version of the driver's interface as text: "13.0" for 13000.
std::string api_version_text(const int32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Returns whether an MPS control daemon seems to run: its pipe exists.
bool has_mps_daemon() {
  const char* const chosen = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  const std::filesystem::path pipes = chosen != nullptr ? chosen : "/tmp/nvidia-mps";
  std::error_code ignored;
  return std::filesystem::exists(pipes / "control", ignored);
}

}  // namespace

Surroundings query_surroundings(const DeviceProperties& properties, const bool ours) {
  const Nvml nvml(properties.pci_bus_id);
  Surroundings surroundings;
  surroundings.driver_version = nvml.driver_version().value_or(
      kernel_module_version().value_or(api_version_text(properties.driver_api)));
  const char* const connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  surroundings.max_connections = connections != nullptr ? std::atoi(connections) : 0;
  if (nvml.is_mig_enabled() || properties.name.find(" MIG ") != std::string::npos) {
    surroundings.warnings.push_back(
        "MIG is enabled on this GPU: the SM numbers are those of a slice, not physical ones");
  }
  surroundings.mps = has_mps_daemon();
  if (surroundings.mps) {
    surroundings.warnings.push_back(
        "an MPS control daemon seems to run: under MPS the SM numbers are not physical ones, and "
        "other processes share the SMs");
  }
  const unsigned our_processes = ours ? 1 : 0;
  if (const unsigned processes = nvml.count_processes(); processes > our_processes) {
    surroundings.warnings.push_back(
        std::to_string(processes - our_processes) +
        " other process(es) use this GPU: their blocks take room and the "
        "observations may not be those of an idle GPU");
  }
  return surroundings;
}

}  // namespace tbsched::cuda

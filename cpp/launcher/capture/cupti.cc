#include "launcher/capture/cupti.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace tbsched::capture {
namespace {

// CUDA 12.6. Records only grow at their ends; this is the first with all fields that are read.
constexpr uint32_t kOldestVersion = 24;
constexpr std::array kLibraries = {"libcupti.so.13", "libcupti.so.12"};
// Folders of the library in the nvidia-cuda-cupti wheels, below the folder of all nvidia wheels.
constexpr std::array kWheelFolders = {"/cu13/lib", "/cuda_cupti/lib"};

// Adds the folders in which a loaded library suggests that CUPTI is: those of the nvidia wheels,
// and that of the runtime. For dl_iterate_phdr().
int add_folders_of(dl_phdr_info* const object, size_t, void* const folders) {
  const std::string_view path = object->dlpi_name;
  const size_t wheels = path.rfind("/nvidia/");
  const auto add = [&](std::string folder) {
    static_cast<std::set<std::string>*>(folders)->insert(std::move(folder));
  };
  if (wheels != std::string_view::npos) {
    for (const char* const folder : kWheelFolders) {
      add(std::string(path.substr(0, wheels)) + "/nvidia" + folder);
    }
  }
  if (path.find("libcudart") != std::string_view::npos) {
    add(std::string(path.substr(0, path.rfind('/'))));
  }
  return 0;
}

// Returns folders to search for CUPTI: next to loaded libraries, in this Python installation, in
// the toolkit.
std::vector<std::string> search_folders() {
  std::set<std::string> loaded_folders;
  dl_iterate_phdr(add_folders_of, &loaded_folders);
  std::vector<std::string> folders(loaded_folders.begin(), loaded_folders.end());
  Dl_info this_library{};
  if (dladdr(reinterpret_cast<const void*>(&load_cupti), &this_library) != 0 &&
      this_library.dli_fname != nullptr) {
    const std::string_view path = this_library.dli_fname;
    const std::string_view package = path.substr(0, path.rfind('/'));
    for (const char* const folder : kWheelFolders) {
      folders.push_back(std::string(package) + "/../nvidia" + folder);
    }
  }
  const char* const home = std::getenv("CUDA_HOME");
  for (const std::string toolkit : {home != nullptr ? home : "", "/usr/local/cuda"}) {
    if (toolkit.empty()) continue;
    folders.push_back(toolkit + "/extras/CUPTI/lib64");
    folders.push_back(toolkit + "/lib64");
  }
  return folders;
}

// Opens the CUPTI that TBSCHED_CUPTI names, else one that is loaded already (a second one in a
// process would see nothing), else the first one found. Throws std::runtime_error if there is none.
void* open_cupti() {
  constexpr int mode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  if (const char* const given = std::getenv("TBSCHED_CUPTI"); given != nullptr && *given != '\0') {
    if (void* const handle = dlopen(given, mode)) return handle;
    const char* const why = dlerror();
    throw std::runtime_error(std::string("TBSCHED_CUPTI: ") + (why != nullptr ? why : given));
  }
  for (const char* const name : kLibraries) {
    if (void* const handle = dlopen(name, mode | RTLD_NOLOAD)) return handle;
  }
  for (const char* const name : kLibraries) {
    for (const std::string& folder : search_folders()) {
      if (void* const handle = dlopen((folder + "/" + name).c_str(), mode)) return handle;
    }
    if (void* const handle = dlopen(name, mode)) return handle;
  }
  throw std::runtime_error(
      "CUPTI is missing: no libcupti.so.13 or libcupti.so.12 was found; install the package "
      "nvidia-cuda-cupti or a CUDA toolkit, or name the library in TBSCHED_CUPTI");
}

}  // namespace

void Cupti::check(const CUptiResult result, const char* const call) const {
  if (result == CUPTI_SUCCESS) return;
  const char* name = nullptr;
  const bool has_name = result_string(result, &name) == CUPTI_SUCCESS && name != nullptr;
  const std::string shown = has_name ? name : "error " + std::to_string(result);
  throw std::runtime_error(std::string(call) + ": " + shown);
}

Cupti load_cupti() {
  void* const library = open_cupti();
  const auto find = [&](auto& function, const char* const symbol) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr) {
      throw std::runtime_error(std::string("this CUPTI is too old: it has no ") + symbol +
                               "; CUDA 12.6 or later is needed");
    }
  };
  Cupti cupti;
  find(cupti.result_string, "cuptiGetResultString");  // check() needs it
  find(cupti.get_version, "cuptiGetVersion");
  uint32_t version = 0;
  cupti.check(cupti.get_version(&version), "cuptiGetVersion");
  if (version < kOldestVersion) {
    throw std::runtime_error("this CUPTI is too old: version " + std::to_string(version) +
                             "; CUDA 12.6, version " + std::to_string(kOldestVersion) +
                             ", or later is needed");
  }
  find(cupti.timestamp, "cuptiGetTimestamp");
  find(cupti.callback_name, "cuptiGetCallbackName");
  find(cupti.subscribe, "cuptiSubscribe");
  find(cupti.unsubscribe, "cuptiUnsubscribe");
  find(cupti.enable_callback, "cuptiEnableCallback");
  find(cupti.register_callbacks, "cuptiActivityRegisterCallbacks");
  find(cupti.enable, "cuptiActivityEnable");
  find(cupti.enable_and_dump, "cuptiActivityEnableAndDump");
  find(cupti.disable, "cuptiActivityDisable");
  find(cupti.enable_driver_api, "cuptiActivityEnableDriverApi");
  find(cupti.enable_runtime_api, "cuptiActivityEnableRuntimeApi");
  find(cupti.enable_all_sync_records, "cuptiActivityEnableAllSyncRecords");
  find(cupti.flush_all, "cuptiActivityFlushAll");
  find(cupti.next_record, "cuptiActivityGetNextRecord");
  find(cupti.dropped_records, "cuptiActivityGetNumDroppedRecords");
  find(cupti.stream_id, "cuptiGetStreamIdEx");
  find(cupti.device_id, "cuptiGetDeviceId");
  find(cupti.graph_id, "cuptiGetGraphExecId");
  find(cupti.node_id, "cuptiGetGraphNodeId");
  return cupti;
}

}  // namespace tbsched::capture

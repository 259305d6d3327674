#include "launcher/capture/launched.h"

#include <cuda.h>

#include <optional>

#include "launcher/capture/driver.h"

namespace tbsched::capture {
namespace {

// What distinguishes kernels of the same name.
struct Resources {
  int registers = 0;      // per thread
  int shared_memory = 0;  // static, bytes
};

// Returns the resources that ask(value, attribute) gives; none: it refuses.
template <typename Ask>
std::optional<Resources> resources_by(const Ask& ask) {
  Resources found;
  if (ask(&found.registers, CU_FUNC_ATTRIBUTE_NUM_REGS) != CUDA_SUCCESS) return std::nullopt;
  if (ask(&found.shared_memory, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  return found;
}

// Returns the resources of a loaded function, or of a kernel without a context, which the driver's
// function for functions refuses; none: the driver does not say.
std::optional<Resources> resources_of(const uint64_t handle) {
  static const auto of_function =
      driver_function<decltype(&cuFuncGetAttribute)>("cuFuncGetAttribute");
  static const auto of_kernel =
      driver_function<decltype(&cuKernelGetAttribute)>("cuKernelGetAttribute");
  static const auto device_of = driver_function<decltype(&cuCtxGetDevice)>("cuCtxGetDevice");
  if (of_function == nullptr || of_kernel == nullptr || device_of == nullptr) return std::nullopt;
  const auto found = resources_by([&](int* const value, const CUfunction_attribute attribute) {
    return of_function(value, attribute, reinterpret_cast<CUfunction>(handle));
  });
  CUdevice device = 0;
  if (found || device_of(&device) != CUDA_SUCCESS) return found;
  return resources_by([&](int* const value, const CUfunction_attribute attribute) {
    return of_kernel(value, attribute, reinterpret_cast<CUkernel>(handle), device);
  });
}

}  // namespace

const Function& LaunchedFunctions::find(const uint64_t handle, const char* const symbol,
                                        const bool is_loaded) {
  const std::string name = symbol != nullptr ? symbol : "";
  {
    const std::lock_guard lock(mutex_);
    const auto found = found_.find(handle);
    if (found != found_.end() && found->second.function->name == name &&
        (found->second.function->kernel != nullptr || found->second.was_loaded || !is_loaded)) {
      return *found->second.function;
    }
  }
  const Kernel* const kernel = kernel_of(handle, name, is_loaded);
  const std::lock_guard lock(mutex_);
  const Function& found = *all_.insert({name, kernel, &launches_[name]}).first;
  found_[handle] = {&found, is_loaded};
  return found;
}

const Kernel* LaunchedFunctions::kernel_of(const uint64_t handle, const std::string& name,
                                           const bool is_loaded) {
  const Kernel* const only = modules_.only(name);
  if (only != nullptr || !is_loaded) return only;
  const std::vector<const Kernel*> named = modules_.find(name);
  if (named.empty()) return nullptr;
  const auto resources = resources_of(handle);
  if (!resources) return nullptr;
  const Kernel* found = nullptr;
  for (const Kernel* const each : named) {
    if (each->usage.registers != resources->registers ||
        each->usage.static_shared_memory != resources->shared_memory) {
      continue;
    }
    if (found != nullptr && !are_alike(*each, *found)) return nullptr;  // not known which
    found = each;
  }
  return found;
}

void LaunchedFunctions::forget() {
  const std::lock_guard lock(mutex_);
  found_.clear();
  ++generation_;
}

}  // namespace tbsched::capture

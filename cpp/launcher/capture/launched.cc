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
  Resources resources;
  if (ask(&resources.registers, CU_FUNC_ATTRIBUTE_NUM_REGS) != CUDA_SUCCESS) return std::nullopt;
  if (ask(&resources.shared_memory, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  return resources;
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
  const auto resources = resources_by([&](int* const value, const CUfunction_attribute attribute) {
    return of_function(value, attribute, reinterpret_cast<CUfunction>(handle));
  });
  CUdevice device = 0;
  if (resources || device_of(&device) != CUDA_SUCCESS) return resources;
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
    const auto known = found_.find(handle);
    if (known != found_.end() && known->second.function->name == name &&
        (known->second.function->kernel != nullptr || known->second.was_loaded || !is_loaded)) {
      return *known->second.function;
    }
  }
  const Kernel* const kernel = kernel_of(handle, name, is_loaded);
  const std::lock_guard lock(mutex_);
  const Function& function = *all_.insert({name, kernel, &launches_[name]}).first;
  found_[handle] = {&function, is_loaded};
  return function;
}

const Kernel* LaunchedFunctions::kernel_of(const uint64_t handle, const std::string& name,
                                           const bool is_loaded) {
  const Kernel* const only = modules_.only(name);
  if (only != nullptr || !is_loaded) return only;
  const std::vector<const Kernel*> named = modules_.find(name);
  if (named.empty()) return nullptr;
  const auto resources = resources_of(handle);
  if (!resources) return nullptr;
  const Kernel* match = nullptr;
  for (const Kernel* const each : named) {
    if (each->usage.registers != resources->registers ||
        each->usage.static_shared_memory != resources->shared_memory) {
      continue;
    }
    if (match != nullptr && !are_alike(*each, *match)) return nullptr;  // not known which
    match = each;
  }
  return match;
}

void LaunchedFunctions::forget() {
  const std::lock_guard lock(mutex_);
  found_.clear();
  ++generation_;
}

}  // namespace tbsched::capture

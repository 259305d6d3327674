#include "launcher/capture/surroundings.h"

#include <cuda.h>

#include <array>

#include "launcher/capture/driver.h"

namespace tbsched::capture {
namespace {

// Functions of the driver; null: it has none of that name.
struct Driver {
  decltype(&cuStreamGetFlags) flags = driver_function<decltype(flags)>("cuStreamGetFlags");
  decltype(&cuStreamGetPriority) priority =
      driver_function<decltype(priority)>("cuStreamGetPriority");
  decltype(&cuDeviceGetName) name = driver_function<decltype(name)>("cuDeviceGetName");
  decltype(&cuDeviceGetAttribute) attribute =
      driver_function<decltype(attribute)>("cuDeviceGetAttribute");
#if CUDA_VERSION >= 12050
  decltype(&cuStreamGetCtx_v2) contexts = driver_function<decltype(contexts)>("cuStreamGetCtx_v2");
  decltype(&cuGreenCtxGetDevResource) resource =
      driver_function<decltype(resource)>("cuGreenCtxGetDevResource");
#endif
};

// Returns the number of SMs of the green context of a stream; 0: it has none.
uint32_t green_sms_of(const Driver& driver, const CUstream stream) {
#if CUDA_VERSION >= 12050
  CUcontext context = nullptr;
  CUgreenCtx green = nullptr;
  CUdevResource resource{};
  if (driver.contexts != nullptr && driver.resource != nullptr &&
      driver.contexts(stream, &context, &green) == CUDA_SUCCESS && green != nullptr &&
      driver.resource(green, &resource, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS) {
    return resource.sm.smCount;
  }
#endif
  return 0;
}

}  // namespace

std::optional<Surroundings> surroundings_of(const Cupti& cupti, const Operation& operation,
                                            const CUcontext context) {
  static const Driver driver;
  if (driver.flags == nullptr || driver.priority == nullptr || driver.name == nullptr ||
      driver.attribute == nullptr) {
    return std::nullopt;
  }
  Surroundings surroundings{.context = operation.context, .stream = operation.stream};
  unsigned flags = 0;
  std::array<char, 256> name{};
  if (cupti.device_id(context, &surroundings.device) != CUPTI_SUCCESS ||
      cupti.stream_id(context, nullptr, 0, &surroundings.null_stream) != CUPTI_SUCCESS ||
      driver.flags(operation.handle, &flags) != CUDA_SUCCESS ||
      driver.priority(operation.handle, &surroundings.priority) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  const auto device = static_cast<CUdevice>(surroundings.device);
  const auto query = [&](int32_t& value, const CUdevice_attribute attribute) {
    return driver.attribute(&value, attribute, device) == CUDA_SUCCESS;
  };
  if (driver.name(name.data(), static_cast<int>(name.size() - 1), device) != CUDA_SUCCESS ||
      !query(surroundings.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) ||
      !query(surroundings.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) ||
      !query(surroundings.sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) {
    return std::nullopt;
  }
  surroundings.name = name.data();
  surroundings.green_sms = green_sms_of(driver, operation.handle);
  surroundings.is_blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  return surroundings;
}

}  // namespace tbsched::capture

#include "launcher/driver/context.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace tbsched::cuda {
namespace {

// Returns the device of an index. Throws NoGpu if there is none.
CUdevice find_device(const Driver& driver, const int32_t index) {
  const int32_t count = gpus();
  if (index < 0 || index >= count) {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    throw NoGpu("looked for GPU " + std::to_string(index) + "; the CUDA driver shows " +
                std::to_string(count) + " (CUDA_VISIBLE_DEVICES is " +
                (visible != nullptr ? "'" + std::string(visible) + "'" : "not set") + ")");
  }
  CUdevice device = 0;
  driver.device_get(&device, index);
  return device;
}

// Returns whether this process has made the primary context of a device.
bool is_active(const Driver& driver, const CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  driver.primary_context_get_state(device, &flags, &active);
  return active != 0;
}

// Returns the bytes of local memory per thread that an unused context of the device has: the
// smallest size ever seen, as the context may have grown for an earlier user of this GPU.
size_t initial_local_memory(const CUdevice device, const size_t current_size) {
  static std::mutex mutex;
  static std::map<CUdevice, size_t> smallest;
  const std::scoped_lock lock(mutex);
  const auto known = smallest.try_emplace(device, current_size).first;
  return known->second = std::min(known->second, current_size);
}

}  // namespace

int32_t gpus() {
  int count = 0;
  Driver::get().device_get_count(&count);
  return count;
}

Identity identify(const int32_t index) {
  const Driver& driver = Driver::get();
  const CUdevice device = find_device(driver, index);
  const DeviceProperties properties = query_properties(driver, device);
  return {properties, query_surroundings(properties, is_active(driver, device))};
}

PrimaryContext::PrimaryContext(const Driver& driver, const CUdevice device)
    : driver_(driver), device_(device) {
  driver_.primary_context_retain(&handle_, device_);
}

PrimaryContext::~PrimaryContext() { driver_.primary_context_release.code(device_); }

Context::Context(const int32_t index)
    : driver_(Driver::get()),
      device_(find_device(driver_, index)),
      properties_(query_properties(driver_, device_)),
      // Queried before the context exists, which would count as a user of the GPU.
      surroundings_(query_surroundings(properties_, is_active(driver_, device_))),
      primary_(driver_, device_) {
  const CurrentContext current(*this);
  size_t local_memory = 0;
  driver_.context_get_limit(&local_memory, CU_LIMIT_STACK_SIZE);
  local_memory_ = initial_local_memory(device_, local_memory);
  driver_.stream_priority_range(&least_urgent_, &most_urgent_);
}

void Context::shrink_local_memory() const {
  size_t current_size = 0;
  driver_.context_get_limit(&current_size, CU_LIMIT_STACK_SIZE);
  if (current_size != local_memory_) driver_.context_set_limit(CU_LIMIT_STACK_SIZE, local_memory_);
}

}  // namespace tbsched::cuda

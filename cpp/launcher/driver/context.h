// The primary context of one GPU.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "launcher/driver/device_properties.h"
#include "launcher/driver/driver.h"
#include "launcher/driver/surroundings.h"

namespace tbsched::cuda {

// Reference-counted by the driver: created for the first user, destroyed after the last.
class PrimaryContext {
 public:
  PrimaryContext(const Driver& driver, CUdevice device);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  CUcontext handle() const { return handle_; }

 private:
  const Driver& driver_;
  const CUdevice device_;
  CUcontext handle_ = nullptr;
};

// Returns the number of GPUs that the driver shows. Throws NoGpu if there is no usable driver.
int32_t gpus();

// Properties of a GPU, without a context. Throws NoGpu if there is no such device.
struct Identity {
  DeviceProperties properties;
  Surroundings surroundings;
};
Identity identify(int32_t index);

class Context {
 public:
  // Throws NoGpu if there is no such device.
  explicit Context(int32_t index);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return driver_; }
  const DeviceProperties& properties() const { return properties_; }
  // Returns the priority that the driver makes of this one, which may be outside its range.
  int32_t clamped(const int32_t priority) const {
    return std::clamp(priority, most_urgent_, least_urgent_);
  }
  const Surroundings& surroundings() const { return surroundings_; }
  CUcontext handle() const { return primary_.handle(); }
  CUdevice device() const { return device_; }
  // Bytes per thread of an unused context.
  size_t local_memory() const { return local_memory_; }

  // Resets local memory to its initial size. It grows with launches that need more, for the life of
  // the context. The context must be current, and the GPU idle.
  void shrink_local_memory() const;

 private:
  const Driver& driver_;
  CUdevice device_ = 0;
  DeviceProperties properties_;
  Surroundings surroundings_;
  PrimaryContext primary_;
  size_t local_memory_ = 0;
  int32_t least_urgent_ = 0;
  int32_t most_urgent_ = 0;
};

// Makes a context the calling thread's current one, and puts the former one back.
class CurrentContext {
 public:
  explicit CurrentContext(const Context& context)
      : CurrentContext(context.driver(), context.handle()) {}
  // nullptr: the current context stays.
  CurrentContext(const Driver& driver, const CUcontext context)
      : driver_(driver), pushed_(context != nullptr) {
    if (pushed_) driver_.context_push(context);
  }
  ~CurrentContext() {
    CUcontext popped = nullptr;
    if (pushed_) driver_.context_pop.code(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Driver& driver_;
  const bool pushed_;
};

}  // namespace tbsched::cuda

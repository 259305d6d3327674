// The primary context of one GPU.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "launcher/driver/device_properties.h"
#include "launcher/driver/driver.h"
#include "launcher/driver/surroundings.h"

namespace tbsched::cuda {

// The primary context of a device. The driver counts its users: it is created for the first, and
// destroyed after the last.
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

// What is known of a GPU without a context.
struct Identity {
  DeviceProperties properties;
  Surroundings surroundings;
};
// Returns the properties of a GPU without making a context. Throws NoGpu if there is no such
// device.
Identity identify(int32_t index);

// A GPU with its primary context.
class Context {
 public:
  // Opens a GPU. Throws NoGpu if there is no such device.
  explicit Context(int32_t index);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return driver_; }
  const DeviceProperties& properties() const { return properties_; }
  // Returns the priority that the driver makes of this one: the nearest in its range.
  int32_t clamped(const int32_t priority) const {
    return std::clamp(priority, most_urgent_, least_urgent_);
  }
  const Surroundings& surroundings() const { return surroundings_; }
  CUcontext handle() const { return primary_.handle(); }
  CUdevice device() const { return device_; }
  // Returns the bytes of local memory per thread of an unused context.
  size_t local_memory() const { return local_memory_; }

  // Resets local memory to its initial size. Local memory grows with launches that need more, for
  // the life of the context. The context must be current, and the GPU idle.
  void shrink_local_memory() const;

 private:
  const Driver& driver_;
  CUdevice device_ = 0;
  DeviceProperties properties_;
  Surroundings surroundings_;
  PrimaryContext primary_;
  size_t local_memory_ = 0;   // initial, bytes per thread
  int32_t least_urgent_ = 0;  // priority
  int32_t most_urgent_ = 0;   // priority; lower than least_urgent_
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

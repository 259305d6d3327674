// What is taken from a context and given back. Each needs the context to be current.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "launcher/driver/driver.h"

namespace tbsched::cuda {

class Module {
 public:
  Module(const Driver& driver, const std::span<const std::byte> image) : driver_(driver) {
    driver_.module_load_data(&handle_, image.data());
  }
  ~Module() { driver_.module_unload.code(handle_); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  CUfunction function(const char* const name) const {
    CUfunction function = nullptr;
    driver_.module_get_function(&function, handle_, name);
    return function;
  }

 private:
  const Driver& driver_;
  CUmodule handle_ = nullptr;
};

// Pinned host memory that the GPU reads and writes.
class MappedMemory {
 public:
  MappedMemory(const Driver& driver, const size_t size)
      : host_(allocate(driver, size), Free{&driver}), size_(size) {
    driver.host_device_pointer(&device_, host_.get(), 0);
  }

  std::span<std::byte> bytes() const { return {host_.get(), size_}; }

  // Where the GPU sees `host`, which points into bytes(). Null stays null.
  template <typename Value>
  Value* on_device(Value* const host) const {
    if (host == nullptr) return nullptr;
    const auto offset = reinterpret_cast<const std::byte*>(host) - host_.get();
    return reinterpret_cast<Value*>(device_ + static_cast<size_t>(offset));
  }

 private:
  struct Free {
    void operator()(std::byte* const host) const { driver->host_free.code(host); }
    const Driver* driver;
  };

  static std::byte* allocate(const Driver& driver, const size_t size) {
    void* memory = nullptr;
    driver.host_alloc(&memory, size, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
    return static_cast<std::byte*>(memory);
  }

  std::unique_ptr<std::byte, Free> host_;
  size_t size_;
  CUdeviceptr device_ = 0;
};

// Memory of the GPU that blocks reach without the bus.
template <typename Value>
class DeviceMemory {
 public:
  explicit DeviceMemory(const Driver& driver) : driver_(driver) {}
  ~DeviceMemory() { give_back(); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Makes room for at least `count` values. True: the memory is new, and nobody has set it.
  bool reserve(const size_t count) {
    if (count <= count_) return false;
    give_back();
    const size_t grown = std::max(count, 2 * count_);
    count_ = 0;
    driver_.memory_alloc(&address_, grown * sizeof(Value));
    count_ = grown;
    return true;
  }
  void write(const std::span<const Value> values) {
    driver_.copy_to_device(address_, values.data(), values.size_bytes());
    driver_.context_synchronize();  // the copy may end after the call, and other streams not wait
  }

  size_t size() const { return count_; }
  Value* at(const size_t index) const {
    return reinterpret_cast<Value*>(address_ + index * sizeof(Value));
  }

 private:
  void give_back() {
    if (count_ != 0) driver_.memory_free.code(address_);
  }

  const Driver& driver_;
  CUdeviceptr address_ = 0;
  size_t count_ = 0;
};

class CudaStream {
 public:
  // `flags`: CU_STREAM_DEFAULT and the legacy stream wait for each other's work.
  CudaStream(const Driver& driver, const CUstream_flags flags, const int32_t priority)
      : driver_(driver) {
    driver_.stream_create(&handle_, flags, priority);
  }
  ~CudaStream() { driver_.stream_destroy.code(handle_); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  CUstream handle() const { return handle_; }

 private:
  const Driver& driver_;
  CUstream handle_ = nullptr;
};

// A point in a stream that other streams wait for.
class StreamEvent {
 public:
  explicit StreamEvent(const Driver& driver) : driver_(driver) {
    driver_.event_create(&handle_, CU_EVENT_DISABLE_TIMING);
  }
  ~StreamEvent() { driver_.event_destroy.code(handle_); }
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;

  CUevent handle() const { return handle_; }

 private:
  const Driver& driver_;
  CUevent handle_ = nullptr;
};

// Streams of one priority, made when first needed and kept.
class StreamPool {
 public:
  const CudaStream& at(const Driver& driver, const int32_t priority, const size_t index) {
    auto& streams = streams_[priority];
    while (streams.size() <= index) {
      streams.push_back(std::make_unique<CudaStream>(driver, CU_STREAM_NON_BLOCKING, priority));
    }
    return *streams[index];
  }

 private:
  std::map<int32_t, std::vector<std::unique_ptr<CudaStream>>> streams_;
};

}  // namespace tbsched::cuda

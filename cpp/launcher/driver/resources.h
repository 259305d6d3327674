// Resources of a context, released by their destructors. The context must be current.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/driver/driver.h"

namespace tbsched::cuda {

// Loaded code, for all contexts of the GPU, including those of partitions.
class Library {
 public:
  Library(const Driver& driver, const std::span<const std::byte> image) : driver_(driver) {
    driver_.library_load_data(&handle_, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
  ~Library() { driver_.library_unload.code(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Returns the kernel of a name. Throws CudaFailure if there is none.
  CUkernel kernel(const char* const name) const {
    CUkernel kernel = nullptr;
    driver_.library_get_kernel(&kernel, handle_, name);
    return kernel;
  }

 private:
  const Driver& driver_;
  CUlibrary handle_ = nullptr;
};

// Pinned host memory that the GPU reads and writes.
class MappedMemory {
 public:
  MappedMemory(const Driver& driver, const size_t size)
      : host_(allocate(driver, size), Free{&driver}), size_(size) {
    driver.host_device_pointer(&device_, host_.get(), 0);
  }

  std::span<std::byte> bytes() const { return {host_.get(), size_}; }

  // Returns the GPU's address of `host`, which points into bytes(); nullptr for nullptr.
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
  ~DeviceMemory() { release(); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Makes room for at least `count` values. Returns true if the memory is new and uninitialised.
  bool reserve(const size_t count) {
    if (count <= count_) return false;
    release();
    const size_t grown = std::max(count, 2 * count_);
    count_ = 0;
    driver_.memory_alloc(&address_, grown * sizeof(Value));
    count_ = grown;
    return true;
  }
  // Copies values to the beginning of the memory, and waits for the copy.
  void write(const std::span<const Value> values) {
    driver_.copy_to_device(address_, values.data(), values.size_bytes());
    driver_.context_synchronize();  // the copy may end after the call, and other streams do not
                                    // wait for it
  }

  size_t size() const { return count_; }
  CUdeviceptr address() const { return address_; }
  // Returns the GPU's address of a value.
  Value* at(const size_t index) const {
    return reinterpret_cast<Value*>(address_ + index * sizeof(Value));
  }

 private:
  // Frees the memory.
  void release() {
    if (count_ != 0) driver_.memory_free.code(address_);
  }

  const Driver& driver_;
  CUdeviceptr address_ = 0;
  size_t count_ = 0;  // values for which there is room
};

// Some of the GPU's SMs. Work in streams of this context runs there alone.
class GreenContext {
 public:
  // `sms`: from a split.
  GreenContext(const Context& context, const CUdevResource& sms)
      : GreenContext(context.driver(), context.device(), sms) {
    driver_.context_from_green(&context_, handle_);
  }
  ~GreenContext() { driver_.green_context_destroy.code(handle_); }
  GreenContext(const GreenContext&) = delete;
  GreenContext& operator=(const GreenContext&) = delete;

  CUgreenCtx handle() const { return handle_; }
  // Returns the context, which only one thread at a time may make current.
  CUcontext context() const { return context_; }
  int32_t sms() const { return sms_; }

 private:
  GreenContext(const Driver& driver, const CUdevice device, CUdevResource sms)
      : driver_(driver), sms_(static_cast<int32_t>(sms.sm.smCount)) {
    CUdevResourceDesc described = nullptr;
    driver_.describe_resource(&described, &sms, 1);
    driver_.green_context_create(&handle_, described, device, CU_GREEN_CTX_DEFAULT_STREAM);
  }

  const Driver& driver_;
  const int32_t sms_;
  CUgreenCtx handle_ = nullptr;
  CUcontext context_ = nullptr;
};

// A stream.
class CudaStream {
 public:
  // Creates a stream of the whole GPU. `flags`: with CU_STREAM_DEFAULT, this stream and the legacy
  // stream wait for each other's work.
  CudaStream(const Driver& driver, const CUstream_flags flags, const int32_t priority)
      : driver_(driver) {
    driver_.stream_create(&handle_, flags, priority);
  }
  // Creates a stream of a partition; these never wait for the legacy stream.
  CudaStream(const Driver& driver, const GreenContext& partition, const int32_t priority)
      : driver_(driver) {
    driver_.green_stream_create(&handle_, partition.handle(), CU_STREAM_NON_BLOCKING, priority);
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
  StreamEvent(const Driver& driver, const bool timing) : driver_(driver) {
    driver_.event_create(&handle_, timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
  }
  ~StreamEvent() { driver_.event_destroy.code(handle_); }
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;

  CUevent handle() const { return handle_; }

 private:
  const Driver& driver_;
  CUevent handle_ = nullptr;
};

// The partition and priority of a stream's launches.
struct Lane {
  const GreenContext* partition = nullptr;  // nullptr: the whole GPU
  int32_t priority = 0;
  auto operator<=>(const Lane&) const = default;
};

// Non-blocking streams, created when first needed and kept.
class StreamPool {
 public:
  // Returns the stream of an index in a lane, which is created if there is none.
  CUstream at(const Driver& driver, const Lane& lane, const size_t index) {
    auto& streams = streams_[lane];
    while (streams.size() <= index) streams.push_back(make(driver, lane));
    return streams[index]->handle();
  }
  // Destroys the streams of all partitions. Nothing may run in them.
  void drop_partitions() {
    std::erase_if(streams_, [](const auto& entry) { return entry.first.partition != nullptr; });
  }

 private:
  // Creates a stream.
  static std::unique_ptr<CudaStream> make(const Driver& driver, const Lane& lane) {
    if (lane.partition != nullptr) {
      return std::make_unique<CudaStream>(driver, *lane.partition, lane.priority);
    }
    return std::make_unique<CudaStream>(driver, CU_STREAM_NON_BLOCKING, lane.priority);
  }

  std::map<Lane, std::vector<std::unique_ptr<CudaStream>>> streams_;
};

}  // namespace tbsched::cuda

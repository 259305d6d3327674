// Properties of a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/driver/driver.h"

namespace tbsched::cuda {

// Memory is in bytes.
struct DeviceProperties {
  std::string name;
  std::string uuid;
  std::string pci_bus_id;
  int32_t architecture = 0;  // 90 for compute capability 9.0
  int32_t driver_api = 0;    // 13000 for 13.0
  int32_t sms = 0;
  int32_t threads_per_block = 0;
  int32_t registers_per_block = 0;
  int32_t shared_memory_per_block = 0;  // to which a kernel may opt in
  int32_t blocks_per_grid = 0;
  int32_t blocks_per_sm = 0;
  int32_t threads_per_sm = 0;
  int32_t registers_per_sm = 0;
  int32_t shared_memory_per_sm = 0;   // the largest configuration
  int32_t shared_memory_reserve = 0;  // of each block, the driver's own
  int32_t copy_engines = 0;
  bool clusters = false;
};

// Returns the properties of a device. Needs no context. Throws CudaFailure.
DeviceProperties query_properties(const Driver& driver, CUdevice device);

}  // namespace tbsched::cuda

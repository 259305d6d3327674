// Other activity on a GPU that would disturb a measurement, as far as NVML knows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/driver/device_properties.h"

namespace tbsched::cuda {

// The settings and the other users of a GPU.
struct Surroundings {
  std::string driver_version;         // such as 580.159.04
  int32_t max_connections = 0;        // CUDA_DEVICE_MAX_CONNECTIONS of new contexts; 0: not set
  bool mps = false;                   // a daemon seems to run: processes share the SMs
  std::vector<std::string> warnings;  // sentences
};

// Returns what NVML and the environment say of a GPU, with warnings for what would disturb a
// measurement. Never fails: unknown values are left out. `ours`: this process uses the GPU already.
Surroundings query_surroundings(const DeviceProperties& properties, bool ours);

}  // namespace tbsched::cuda

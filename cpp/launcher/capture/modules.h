// Resources of the kernels of loaded modules, as far as CUPTI's records lack them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "launcher/probe/cubin.h"

namespace tbsched::capture {

// Thread-safe.
class Modules {
 public:
  // `all`: every module of the process is going to be added.
  explicit Modules(const bool all) : knows_all_(all) {}

  void add(std::span<const std::byte> cubin);

  // Returns the resources of the kernel of a name that was loaded last.
  std::optional<cuda::KernelUsage> usage(const std::string& name) const;

  // Returns bytes per thread. Several kernels may have the name: CUPTI's numbers distinguish them.
  // None: unknown.
  std::optional<int32_t> local_memory(const std::string& name, int32_t registers,
                                      int32_t static_shared_memory) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::vector<cuda::KernelUsage>> modules_;
  // Only kernels with local memory: programs have many thousands without.
  std::unordered_map<std::string, std::vector<cuda::KernelUsage>> kernels_;
  const bool knows_all_;
};

}  // namespace tbsched::capture
